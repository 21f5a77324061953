"""Inner parts of the PICL importer: lines to records, records by processor, records to states."""
