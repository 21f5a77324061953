"""Files, formats and native libraries; no Qt."""
