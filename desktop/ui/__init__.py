"""The window: PySide6 and pyqtgraph live here and nowhere else."""
