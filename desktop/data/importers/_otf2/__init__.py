"""Inner parts of the OTF2 importer: the library, what it calls, framing, definitions, rows."""
