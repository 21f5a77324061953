"""Phasewright in Python and in notebooks.

    import phasewright as pw

    run = pw.open("traces.otf2")
    run.phases(4).to_frame()

Names and what of them is a contract: page Python of the handbook. The build puts this module at the top
level; all of it is in `desktop.notebook`. Nothing heavy is loaded before it is needed.
"""

from desktop import __version__ as __version__
from desktop.notebook import *  # noqa: F403 - its names are those of this module
from desktop.notebook import __all__ as __all__
