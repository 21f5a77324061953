"""What the frozen program starts with."""

import os
import sys
from multiprocessing import freeze_support
from types import ModuleType

# Where this program's own libraries are must not reach the programs that it starts, such as those of
# experiments. The loader has read it already.
if sys.platform.startswith("linux"):
    before = os.environ.pop("LD_LIBRARY_PATH_ORIG", None)
    if before is None:
        os.environ.pop("LD_LIBRARY_PATH", None)
    else:
        os.environ["LD_LIBRARY_PATH"] = before

freeze_support()  # a process of a farm ends in here

# pyqtgraph imports Qt's modules for OpenGL, also where nothing is painted by it; they are not shipped.
for name in ("QtOpenGL", "QtOpenGLWidgets"):
    stand_in = sys.modules[f"PySide6.{name}"] = ModuleType(f"PySide6.{name}")
    stand_in.QOpenGLWidget = type("QOpenGLWidget", (), {})  # type: ignore[attr-defined]

from desktop import __main__ as program  # noqa: E402 - a process of a farm needs nothing of it

NAME = os.path.basename(sys.executable)
sys.exit(program.window() if NAME.startswith("phasewright-window") else program.main())
