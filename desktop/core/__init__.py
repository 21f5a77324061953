"""Computation on numbers and arrays, without files, clocks or Qt."""
