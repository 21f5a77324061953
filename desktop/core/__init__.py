"""Numbers: no files, no clock, no Qt."""
