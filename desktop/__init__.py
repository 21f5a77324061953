"""Phasewright: explain why a parallel program is slow."""

__version__ = "0.1.0"
