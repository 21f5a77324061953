"""Commands of the command line: a module each, with `add_arguments` and `main`."""
