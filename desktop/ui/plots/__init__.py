"""Plot items of the window."""
