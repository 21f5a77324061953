"""Inner parts of the OTF2 importer: the engine that reads, its buffer, definitions, rows."""
