"""Side panels of the window."""
