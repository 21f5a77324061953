"""The notebooks of the handbook, run cell by cell as Jupyter would, without Jupyter.

.venv/bin/python packaging/notebooks.py      run them and keep what they show in resources/docs/notebooks
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "resources" / "docs" / "notebooks"
#: What Jupyter asks an object for, by the method's name; also as text.
WAYS = {"_repr_svg_": "image/svg+xml", "_repr_html_": "text/html"}


def ran(notebook: dict[str, Any], name: str) -> dict[str, Any]:
    """The notebook with the outputs of its cells, which are run in one namespace."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = []
    for count, cell in enumerate(notebook["cells"], 1):
        if cell["cell_type"] == "code":
            tree = ast.parse("".join(cell["source"]))
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            shown, said = None, io.StringIO()
            with contextlib.redirect_stdout(said):
                exec(compile(tree, name, "exec"), names)
                if last is not None:
                    shown = eval(compile(ast.Expression(last.value), name, "eval"), names)
            cell = cell | {"execution_count": count, "outputs": list(_outputs(shown, said.getvalue(), count))}
        cells.append(cell)
    return notebook | {"cells": cells}


def _outputs(shown: Any, said: str, count: int) -> Any:
    if said:
        yield {"name": "stdout", "output_type": "stream", "text": said.splitlines(keepends=True)}
    if shown is not None:
        found = {kind: getattr(shown, way)() for way, kind in WAYS.items() if hasattr(shown, way)}
        if "image/svg+xml" not in found:
            found["text/plain"] = repr(shown)
        data = {kind: text.splitlines(keepends=True) for kind, text in found.items()}
        yield {"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"}


def main() -> None:
    for path in sorted(FOLDER.glob("*.ipynb")):
        notebook = ran(json.loads(path.read_text(encoding="utf-8")), path.name)
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
