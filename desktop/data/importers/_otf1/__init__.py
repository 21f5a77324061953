"""Inner parts of the OTF importer: definitions, lines of events, streams, rows."""
