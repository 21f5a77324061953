"""Inner parts of the OTF2 importer: two engines that read, the buffer they fill, definitions, rows."""
