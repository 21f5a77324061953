"""The outside: files and native libraries; no Qt."""
