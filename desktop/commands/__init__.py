"""Commands of the command line that are more than a page; each is loaded when it is asked for."""
