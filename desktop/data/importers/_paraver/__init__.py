"""Inner parts of the Paraver importer: header and labels, lines to rows, rows to nested regions."""
