"""Tests need no display, whoever starts them, and what they start need not compile the program anew."""

from __future__ import annotations

import os

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# A process that may not keep what Python compiles spends a third of a second on that whenever it starts.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
