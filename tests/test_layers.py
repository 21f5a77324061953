"""Who may import whom, read off the syntax trees and off a fresh interpreter."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parent.parent / "desktop"

# Each layer with the layers and packages it must not know. `errors`, `progress` and `environment` know
# nobody, `stopping` knows `progress` only.
FORBIDDEN = {
    "core": (
        "desktop.data",
        "desktop.workbench",
        "desktop.ui",
        "desktop.cli",
        "PySide6",
        "h5py",
    ),
    "data": ("desktop.workbench", "desktop.ui", "desktop.cli", "PySide6"),
    "workbench": ("desktop.ui", "desktop.cli", "PySide6", "h5py"),
    "ui": ("desktop.cli", "h5py", "numba"),
}


#: Where kernels may be: in `core`, and where `data` reads and stores traces (`trace` in the house).
KERNELS = (
    "core",
    "data/importers",
    "data/exporters",
    "data/store",
    *(
        f"data/{name}.py"
        for name in [
            "consistency",
            "following",
            "lines",
            "matching",
            "packing",
            "profile",
            "spill",
            "utilization",
        ]
    ),
)


class Function(NamedTuple):
    """What the rule for functions looks at. `given`: parameters but for the object's own; `lines`: of it;
    `first`: where it begins, with its decorators."""

    name: str
    given: int
    lines: int
    first: int
    decorators: frozenset[str]

    @classmethod
    def of(cls, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
        given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        return cls(
            node.name,
            len([one for one in given if one.arg not in ("self", "cls")]),
            (node.end_lineno or 0) - node.lineno,
            min([node, *node.decorator_list], key=lambda one: one.lineno).lineno,
            frozenset(ast.unparse(one) for one in node.decorator_list),
        )


@cache
def said_in(path: Path) -> tuple[set[str], list[str], list[Function]]:
    """Every module that a file imports, at whatever level, with the names taken from it; its classes; its
    functions."""
    text = path.read_text(encoding="utf-8")
    found, classes, functions = set(re.findall(r'import_module\("([\w.]+)"\)', text)), [], []
    left: list[ast.AST] = [ast.parse(text)]
    while left:
        # Statements only, as none is in an expression.
        for node in ast.iter_child_nodes(left.pop()):
            if isinstance(node, ast.expr):
                continue
            left.append(node)
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0 and node.module, f"{path} has a relative import"
                found.add(node.module)
                found.update(f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.ClassDef):
                classes.append(node.name)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions.append(Function.of(node))
    return found, classes, functions


def imports(path: Path) -> set[str]:
    return said_in(path)[0]


def modules(layer: str) -> list[Path]:
    return sorted((PACKAGE / layer).rglob("*.py"))


def knows(found: set[str], name: str) -> bool:
    return any(module == name or module.startswith(name + ".") for module in found)


@pytest.mark.parametrize("layer", FORBIDDEN)
def test_layers_import_only_downwards(layer):
    assert modules(layer)
    broken = {
        (path.name, name)
        for path in modules(layer)
        for name in FORBIDDEN[layer]
        if knows(imports(path), name)
    }
    assert not broken


#: What the frame has to itself: its pages, their commands, and the dialogs that go over all pages.
FRAME = {
    f"desktop.ui.{name}"
    for name in (
        "frame", "page", "commands", "palette", "preferences", "trace_page", "compare_page",
        "experiment_page", "model_page", "watch_page", "project_desk", "actions", "compare.actions",
        "experiment.actions", "model.actions",
    )
}  # fmt: skip


def test_imports_make_no_circles() -> None:
    """At whatever level, for the types alone too; but for those of the frame with its pages."""
    parts = {path: path.relative_to(PACKAGE.parent).with_suffix("").parts for path in PACKAGE.rglob("*.py")}
    names = {".".join(part).removesuffix(".__init__"): path for path, part in parts.items()}
    known = {name: (imports(path) & set(names)) - {name} for name, path in names.items()}
    for name, found in known.items():
        # The package of a module that is imported is none of its own: ``from desktop.ui import theme``.
        known[name] = {one for one in found if not any(other.startswith(one + ".") for other in found)}
    left = dict(known)
    while free := [name for name, found in left.items() if not found & set(left)]:
        for name in free:
            del left[name]
    while free := [name for name in left if not any(name in left[other] for other in left)]:
        for name in free:
            del left[name]
    assert set(left) <= FRAME


#: What makes kernels, in `desktop.core.jit`.
MAKERS = {"kernel", "arithmetic", "inlined", "formula"}


def test_kernels_are_in_core_and_where_traces_are_read_and_written():
    makers = {f"desktop.core.jit.{name}" for name in MAKERS} | {
        f"numba.{name}" for name in ("jit", "njit", "vectorize", "guvectorize", "cfunc")
    }
    found = {path for path in PACKAGE.rglob("*.py") if any(knows(imports(path), name) for name in makers)}
    homes = [PACKAGE / home for home in KERNELS]
    assert all(home.exists() for home in homes)
    assert not {path for path in found if not any(path.is_relative_to(home) for home in homes)}
    assert all(any(path.is_relative_to(home) for path in found) for home in homes), "a home without kernels"


def test_functions_are_short_and_take_few_parameters_or_say_why() -> None:
    """100 lines and 8 parameters, or a comment above with the reason. Kernels take arrays one by one."""
    for path in PACKAGE.rglob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        for one in said_in(path)[2]:
            many = one.given > 8 and not one.decorators & MAKERS
            why = lines[one.first - 2].strip().partition(": ")[0].lower()
            assert not many or why in ("# many", "# many and long"), (path.name, one.name)
            assert one.lines < 100 or why in ("# long", "# many and long"), (path.name, one.name)


def test_errors_progress_and_environment_know_nobody():
    for name in ("errors.py", "progress.py", "environment.py"):
        assert not knows(imports(PACKAGE / name), "desktop")
    known = {name for name in imports(PACKAGE / "stopping.py") if knows({name}, "desktop")}
    assert {name for name in known if not knows({name}, "desktop.progress")} <= {"desktop"}


def test_temporary_folders_and_named_files_are_made_in_one_place():
    """Which has them removed however the process is asked to end; nameless files go by themselves."""
    made = re.compile(r"\b(TemporaryDirectory|NamedTemporaryFile|mkdtemp|mkstemp)\(|\(TemporaryDirectory\[")
    found = {path.name for path in PACKAGE.rglob("*.py") if made.search(path.read_text(encoding="utf-8"))}
    assert found == {"atomic.py"}


def test_the_store_has_one_door_and_two_rooms_that_know_hdf5():
    store = PACKAGE / "data" / "store"
    assert {path for path in PACKAGE.rglob("*.py") if knows(imports(path), "h5py")} == {
        store / "reader.py",
        store / "writer.py",
    }
    rooms = [f"desktop.data.store.{path.stem}" for path in store.glob("*.py")]
    outside = [path for path in PACKAGE.rglob("*.py") if path.parent != store]
    assert not [path for path in outside if any(knows(imports(path), room) for room in rooms)]


def test_importers_do_not_know_each_other():
    from desktop.data.importers import FORMATS

    home = PACKAGE / "data" / "importers"
    for format_id in FORMATS:
        rooms = [home / f"{format_id}.py", *(home / f"_{format_id}").glob("*.py")]
        others = [name for other in FORMATS if other != format_id for name in (other, f"_{other}")]
        for path in rooms:
            assert not [o for o in others if knows(imports(path), f"desktop.data.importers.{o}")], path


@pytest.mark.parametrize("module", ["desktop.cli", "desktop.data.events"])
def test_light_modules_stay_light(module):
    heavy = {"PySide6", "pyqtgraph", "scipy", "pandas", "numba", "h5py"}
    code = f"import sys, {module}; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not heavy & set(loaded.stdout.split())


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("from desktop.cli import run\nrun(['--help'])", "pandas scipy numba"),
        ("from desktop.cli import run\nrun(['stats', 'curve.csv', '-n', '2'])", "pandas openpyxl"),
        (
            """from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication
app = QApplication([])
from desktop.ui.windows import Windows
from desktop.ui.settings import Settings
windows = Windows(app, Settings(QSettings('settings.ini', QSettings.Format.IniFormat)))
windows.open([])
for _ in range(5):
    app.processEvents()
assert any(window.isVisible() for window in app.topLevelWidgets())""",
            "pandas scipy openpyxl",
        ),
    ],
    ids=["help", "stats", "window"],
)
def test_tables_and_distributions_are_loaded_when_they_are_needed(
    code: str, unwanted: str, tmp_path: Path
) -> None:
    """Of scipy only kernels that are compiled look at its BLAS."""
    (tmp_path / "curve.csv").write_text("0,2\n1,3\n2,1\n4,2\n6,0\n")
    places = {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("CACHE", "STATE", "DATA", "CONFIG")}
    lines = "".join(f"    {line}\n" for line in code.splitlines())
    whole = (
        f"import os, sys\nbefore = set(sys.modules)\ntry:\n{lines}except SystemExit: pass\n"
        f"loaded = [name for name in set(sys.modules) - before if name.split('.')[0] in {unwanted.split()}]\n"
        "print('LOADED', *sorted(loaded))\nsys.stdout.flush()\nos._exit(0)"
    )
    environment = os.environ | places | {"QT_QPA_PLATFORM": "offscreen"}
    done = subprocess.run(
        [sys.executable, "-c", whole], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert done.stdout.splitlines()[-1:] == ["LOADED"], done.stdout[-500:] + done.stderr[-2000:]


def test_kernels_that_are_kept_are_loaded_without_the_compiler(tmp_path: Path) -> None:
    """The second import of each format finds all of them, and loads neither scipy nor what numba
    searches arrays with, which takes as long as numba itself."""
    data = PACKAGE.parent / "tests" / "data"
    traces = [PACKAGE.parent / "resources" / "samples" / "cholesky_16" / "traces.otf2"]
    traces += [data / "picl" / "v1-lu8-compact.trf", data / "paraver" / "farm_6.prv"]
    store = tmp_path / "x.h5"
    code = (
        "import sys\nfrom desktop.cli import run\n"
        f"code = [run(['import', one, '-o', {str(store)!r}, '--force']) for one in {[*map(str, traces)]!r}]\n"
        "unwanted = {'scipy.linalg', 'numba.np.arraymath'}\n"
        "print(code, *unwanted & {*sys.modules}, 'desktop.core.open_regions' in sys.modules)"
    )
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[0, 0, 0] True"


def test_numba_is_loaded_by_the_first_kernel_that_is_called() -> None:
    code = (
        "import sys, desktop.data.opening, desktop.data.importers.otf2\n"
        "from desktop.data.packing import Packer\nimport numpy as np\n"
        "before = 'numba' in sys.modules\nPacker()(np.arange(9))\nprint(before, 'numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_figures_and_reports_need_no_plots():
    code = "import sys, desktop.ui.reporting, desktop.ui.figures; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pyqtgraph" not in loaded.stdout.split()


def test_a_class_has_a_name_of_its_own() -> None:
    """In the whole package, so that a name says which one is meant."""
    found: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in said_in(path)[1]:
            found.setdefault(name, []).append(path.name)
    assert not {name: places for name, places in found.items() if len(places) > 1}
