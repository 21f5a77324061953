"""The window of comparisons: its commands, the plot of runs and the table of matched phases."""
