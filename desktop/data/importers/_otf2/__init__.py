"""Inner parts of the OTF2 importer: the engine that reads, the buffer it fills, definitions, rows."""
