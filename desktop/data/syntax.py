"""Sources as tree-sitter's grammars read them: routines, loops, conditional blocks and calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from desktop.errors import ExperimentError, explained

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query

#: Suffix, in small letters -> language. A header is read as C++, which takes nearly all of C.
LANGUAGES = {
    **dict.fromkeys((".c",), "c"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".c++", ".cu", ".h", ".hh", ".hpp", ".hxx", ".inl"), "cpp"),
    **dict.fromkeys((".f", ".for", ".ftn", ".fpp", ".f90", ".f95", ".f03", ".f08"), "fortran"),
    ".py": "python",
}
#: Sources that are larger were made by a program, and a tree takes many times the room of its text.
_LARGEST = 8 << 20

_C = """
(function_definition) @routine
[(for_statement) (while_statement) (do_statement)] @loop
[(if_statement) (switch_statement) (else_clause)] @block
[(preproc_ifdef) (preproc_if) (preproc_else) (preproc_elif)] @condition
(call_expression function: (_) @call)
"""
_QUERIES = {
    "c": _C,
    "cpp": _C
    + """
(lambda_expression) @routine
(for_range_loop) @loop
[(namespace_definition) (class_specifier) (struct_specifier) (union_specifier)] @scope
""",
    "fortran": """
[(function) (subroutine) (program)] @routine
(module) @scope
(do_loop) @loop
[(if_statement) (select_case_statement)] @block
[(preproc_ifdef) (preproc_if) (preproc_else) (preproc_elif)] @condition
(subroutine_call subroutine: (_) @call)
(call_expression . (_) @call)
""",
    "python": """
(function_definition) @routine
(class_definition) @scope
[(for_statement) (while_statement)] @loop
[(if_statement) (with_statement) (try_statement) (match_statement)] @block
(call function: (_) @call)
""",
}


@dataclass(eq=False)
class Piece:
    """A routine, loop, block, condition, scope or call of a source. `name`: of a routine with its scopes, of
    a macro that is asked for, of what is called; else "". `line` from 1; `above`: what it stands in."""

    kind: str
    node: Node
    name: str
    line: int
    above: Piece | None = field(default=None, repr=False)

    def enclosing(self, *kinds: str) -> Piece | None:
        """The nearest around this of these kinds."""
        part = self.above
        while part is not None and part.kind not in kinds:
            part = part.above
        return part

    @property
    def construct(self) -> str:
        """The loop or block of a routine that is innermost here, as ``for loop``."""
        part: Piece | None = self
        while part is not None and part.kind not in ("loop", "block", "routine"):
            part = part.above
        if part is None or part.kind == "routine":
            return _WORDS.get(part.node.type, "function") if part is not None else "function"
        word = part.node.type.split("_")[0]
        return f"{word} {part.kind}"


_WORDS = {"subroutine": "routine", "program": "program"}


def language_of(name: str) -> str:
    """Of a source; "" of what is none that we read."""
    return LANGUAGES.get(PurePath(name).suffix.lower(), "")


def read_source(path: Path) -> bytes:
    """Raises `ExperimentError` where it cannot be read, or is too large to be one."""
    with explained(ExperimentError, file=path):
        if path.stat().st_size > _LARGEST:
            raise ExperimentError(f"is larger than {_LARGEST >> 20} MB", file=path, hint="is it a source?")
        return path.read_bytes()


@cache
def _tools(language: str) -> tuple[Parser, Query]:
    from tree_sitter import Language, Parser, Query

    grammar = Language(import_module(f"tree_sitter_{language}").language())
    return Parser(grammar), Query(grammar, _QUERIES[language])


def parse(text: bytes, language: str) -> Node:
    """The root of its tree."""
    return _tools(language)[0].parse(text).root_node


def parts_of(text: bytes, language: str) -> tuple[Piece, ...]:
    """In the order of the source; calls last, among what they stand in."""
    from tree_sitter import QueryCursor

    captured = [
        (node, kind)
        for kind, nodes in QueryCursor(_tools(language)[1]).captures(parse(text, language)).items()
        for node in nodes
    ]
    captured.sort(key=lambda one: (one[0].start_byte, -one[0].end_byte))
    open_parts: list[Piece] = []
    parts: list[Piece] = []
    for node, kind in captured:
        while open_parts and open_parts[-1].node.end_byte <= node.start_byte:
            open_parts.pop()
        above = open_parts[-1] if open_parts else None
        part = Piece(kind, node, "", node.start_point[0] + 1, above)
        if kind == "routine":
            part.name, part.line = _routine(part, language)
        elif kind == "scope":
            part.name = _text(_named(node))
        elif kind == "condition":
            part.name = _macro(node)
        elif kind == "call":
            part.name = _text(node).rpartition("::")[2].rpartition(".")[2]
        parts.append(part)
        if kind != "call":
            open_parts.append(part)
    return tuple(parts)


def _text(node: Node | None) -> str:
    return "" if node is None or node.text is None else " ".join(node.text.decode("utf-8", "replace").split())


def _named(node: Node) -> Node | None:
    """The name of a scope: of a module of Fortran in its first statement."""
    name = node.child_by_field_name("name")
    if name is None and node.named_child_count:
        first = node.named_child(0)
        name = (
            next((c for c in first.named_children if c.type in ("name", "identifier")), None)
            if first
            else None
        )
    return name


def _routine(part: Piece, language: str) -> tuple[str, int]:
    """What a routine is called, after the scopes that it stands in, and its line."""
    node = part.node
    sign = "." if language == "python" else "::"
    if node.type == "lambda_expression":
        outer = part.enclosing("routine")
        return f"lambda in {outer.name}" if outer else "lambda", node.start_point[0] + 1
    if language in ("c", "cpp"):
        name = _declared(node)
    elif language == "python":
        name = node.child_by_field_name("name")
    else:
        name = _named(node)
    scopes: list[str] = []
    outer = part.enclosing("scope", "routine")
    while outer is not None and language != "fortran":
        if outer.name:
            scopes.insert(0, outer.name)
        outer = outer.enclosing("scope") if outer.kind == "scope" else None  # a routine bears its scopes
    plain = sign.join((*scopes, without_templates(_text(name))))
    return plain, (name or node).start_point[0] + 1


def _declared(node: Node) -> Node | None:
    """The name in a definition of C or C++, under pointers, parentheses and parameters."""
    name = node.child_by_field_name("declarator")
    while name is not None:
        inner = name.child_by_field_name("declarator") or (
            next((c for c in name.named_children if c.type.endswith("declarator")), None)
            if name.type in ("reference_declarator", "parenthesized_declarator")
            else None
        )
        if inner is None:
            return name
        name = inner
    return None


def without_templates(name: str) -> str:
    """``V<T>::g`` as ``V::g``; of operators the sign stays."""
    head, operator, rest = name.partition("operator")
    depth, letters = 0, []
    for sign in head:
        depth += (sign == "<") - (sign == ">")
        if depth == 0 and sign != ">":
            letters.append(sign)
    return "".join(letters) + operator + rest


def _macro(node: Node) -> str:
    """Of ``#ifdef NAME`` and ``#if defined(NAME)`` the name; "" of every other condition."""
    if node.type == "preproc_ifdef":
        first = node.child(0)
        return _text(node.child_by_field_name("name")) if _text(first).replace(" ", "") == "#ifdef" else ""
    condition = node.child_by_field_name("condition") if node.type == "preproc_if" else None
    while condition is not None and condition.type == "parenthesized_expression":
        condition = condition.named_child(0)
    if condition is None or condition.type != "preproc_defined":
        return ""
    return _text(condition.named_child(0))
