"""The steps of the experiment window: program, design, run, read, compare."""
