"""Parts of the window of the factor model."""
