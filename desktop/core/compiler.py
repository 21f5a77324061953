"""Numba's compilation of functions that `desktop.core.jit` marks, and its cache of compiled ones."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from pathlib import Path
from threading import Lock, get_ident, local
from types import ModuleType
from typing import Any

from desktop import __version__
from desktop.environment import alone
from desktop.progress import Cancelled, at_work


class _Without(Loader):
    """An import hook that hides from numba, imported in this thread, what it does not need: scipy and yaml,
    which are optional for it, and in our own processes extensions of numba, for which it would search the
    metadata of all installed packages."""

    def __init__(self) -> None:
        self._thread = get_ident()

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if get_ident() != self._thread:
            return None
        if name in ("scipy", "yaml"):
            raise ModuleNotFoundError(name)
        return ModuleSpec(name, self) if name == "numba.core.entrypoints" and alone() else None

    def create_module(self, _: ModuleSpec) -> None:
        """Use the default module."""

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["init_all"] = lambda: None


_hook = _Without()
sys.meta_path.insert(0, _hook)
try:
    from llvmlite import binding
    from numba import float64, int64, njit, typeof, types
    from numba.core import event
    from numba.core.caching import IndexDataCacheFile
    from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
    from numba.core.runtime import rtsys
    from numba.extending import intrinsic
finally:
    sys.meta_path.remove(_hook)


class _Library(JITCodeLibrary):
    """The machine code of a kernel. Numba parses the cached intermediate code whenever a kernel is loaded,
    half of the loading time; here it is parsed only when a kernel that calls this one is compiled."""

    #: Kernels of other packages in this process are cached as by numba.
    ours = False
    _bitcode: bytes | None = None

    def serialize_using_object_code(self) -> tuple[object, ...]:
        name, kind, code = super().serialize_using_object_code()
        if not self.ours:
            return name, kind, code
        module = self._get_module_for_linking()
        every = (*module.functions, *module.global_variables)
        return name, kind, (*code, [one.name for one in every if not one.is_declaration])

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> object:
        name, _, (code, bitcode, *defined) = state
        if not defined:  # of another package
            return super()._unserialize(codegen, state)
        self = codegen.create_library(name)
        self.ours = True
        self.enable_object_caching()
        self._set_compiled_object(code)
        self._finalize_final_module()
        self._bitcode = bitcode
        codegen._engine._defined_symbols.update(*defined)
        return self

    def _get_module_for_linking(self) -> binding.ModuleRef:
        if self._shared_module is None and self._bitcode is not None:
            self._shared_module = binding.parse_bitcode(self._bitcode)
        return super()._get_module_for_linking()


JITCPUCodegen._library_class = _Library

#: Kernels compiled ahead for a class of processors, which the frozen program contains. They are written there
#: by a process with these environment variables, see packaging/freeze.py.
AHEAD = Path(__file__).parents[1] / "kernels"
COMPILE_AHEAD = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": "", "PHASEWRIGHT_COMPILE_AHEAD": "1"}
# Features of all processors of that class, by LLVM's names.
_KIND = frozenset(
    {"avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt"}
    | {"sse3", "sse4.1", "sse4.2", "ssse3", "xsave"}
)


class _KernelFiles(IndexDataCacheFile):
    """The files with a kernel's machine code, one for each set of argument types, and their index.

    Numba writes the index before the file it names, and two processes that compile a kernel for different
    types at the same time may choose the same file. Called with other types, machine code corrupts memory. So
    each file says what it holds; a file that holds something else, or cannot be read, is written anew.
    """

    def save(self, key: object, data: object) -> None:
        super().save(key, (self._source_stamp, key, data))

    def load(self, key: object) -> object:
        try:
            stamp, held, data = super().load(key) or (None, None, None)
        except Exception:  # unpickling a damaged file may raise any
            with suppress(OSError):
                self.flush()
            return None
        return data if (stamp, held) == (self._source_stamp, key) else None


def compiled(function: Callable[..., object], **options: Any) -> Any:
    """Numba's dispatcher of a function, without the interpreter lock and cached on disk where possible."""
    # Numba raises RuntimeError when neither the module's folder nor the user's cache folder is writable; then
    # the kernel is compiled in every process, which is slower.
    try:
        dispatcher = njit(nogil=True, cache=True, **options)(function)
    except RuntimeError:
        dispatcher = njit(nogil=True, **options)(function)
    else:
        _keep_on_disk(dispatcher, function.__module__, memory=options.get("_nrt", True))
    dispatcher.compile = partial(_unless_cancelled, dispatcher.compile)
    return dispatcher


def _keep_on_disk(dispatcher: Any, module: str, *, memory: bool) -> None:
    """Cache the machine code of a kernel of a module on disk. `memory`: whether it may make arrays."""
    cache = dispatcher._cache
    base = cache._impl.filename_base
    cache._cache_file = _KernelFiles(cache._cache_path, base, cache._impl.locator.get_source_stamp())
    keep = cache.save_overload

    def ahead() -> _KernelFiles:
        return _KernelFiles(str(AHEAD), f"{module}.{base}", __version__)

    def keep_if_possible(signature: object, compiled: Any) -> None:
        compiled.library.ours = True
        with suppress(OSError):  # such as a full disk: the kernel works, but is not cached
            keep(signature, compiled)
            if "PHASEWRIGHT_COMPILE_AHEAD" in os.environ:
                key = cache._index_key(signature, compiled.codegen)
                ahead().save((key[0], key[2]), cache._impl.reduce(compiled))

    def load(signature: object, target: Any) -> object:
        # Numba first loads its compiler's libraries (and scipy), which takes as long as numba itself;
        # compiled code needs only memory management, which is compiled in each process, and only where it is
        # used. Compiling loads the libraries as well.
        if memory:
            rtsys.initialize(target)
        with cache._guard_against_spurious_io_errors():
            if (loaded := cache._load_overload(signature, target)) is not None or not AHEAD.is_dir():
                return loaded
            key = cache._index_key(signature, target.codegen())
            if not {word[1:] for word in key[1][2].split(",") if word.startswith("+")} >= _KIND:
                return None
            loaded = ahead().load((key[0], key[2]))
            return None if loaded is None else cache._impl.rebuild(target, loaded)
        return None  # the file could not be read

    cache.save_overload, cache.load_overload = keep_if_possible, load


def address(dispatcher: Any, *arguments: object) -> int:
    """Address of the machine code of a kernel for arguments of these types; the kernel must outlive it."""
    types = tuple(typeof(one) for one in arguments)
    dispatcher.compile(types)
    compiled = dispatcher.overloads[types]
    return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


# Many: a kernel's arguments, one by one; numba passes their types, callers the values.
@intrinsic
def go_at(
    typing: Any, go: Any, tree: Any, s: Any, j: Any, o: Any, cj: Any, co: Any, e: Any, goal: Any
) -> Any:
    """Call the kernel at the address `go`, `desktop.core.spaces.go` of some space, so that one compiled
    kernel serves all spaces, including future ones."""
    parameters = (tree, int64, int64, float64, int64, float64, float64, float64)
    result = types.Tuple((int64, float64, float64, float64, float64, int64))

    def code(context: Any, builder: Any, _: object, values: Any) -> object:
        convention = context.call_conv
        kind = convention.get_function_type(result, parameters).as_pointer()
        called = builder.inttoptr(values[0], kind)
        return convention.call_function(builder, called, result, parameters, values[1:])[1]

    return result(go, *parameters), code


class _GivenUp(BaseException):
    """Ends the compilation of a kernel and of those that call it: numba takes an Exception for its own."""


class _Inside(local):
    """Whether this thread loads or compiles a kernel of ours; those of other packages are left alone."""

    kernel = False


_inside = _Inside()


def _unless_cancelled(begin: Callable[[object], object], signature: object) -> object:
    """Load or compile a kernel by `begin`, numba's own way.

    Raises
    ------
    Cancelled : the work of this thread was cancelled before another kernel was compiled.
    """
    outermost, _inside.kernel = not _inside.kernel, True
    try:
        return begin(signature)
    except _GivenUp:
        if outermost:
            raise Cancelled from None
        raise
    finally:
        _inside.kernel = not outermost


class _Compilations(event.Listener):
    """Counts kernels that are compiled rather than loaded, in all threads, and ends what is cancelled before
    the next one."""

    def __init__(self) -> None:
        self.started = self.under_way = 0
        self.listeners: list[Callable[[int, bool], None]] = []
        self._lock = Lock()

    def on_start(self, event: event.Event) -> None:
        self._change(1, 1)
        work = at_work()
        if _inside.kernel and work is not None and work.cancelled:
            raise _GivenUp  # `on_end` is called as well

    def on_end(self, event: event.Event) -> None:
        self._change(0, -1)

    def _change(self, started: int, under_way: int) -> None:
        with self._lock:
            self.started += started
            self.under_way += under_way
            state = self.started, self.under_way > 0
        for tell in tuple(self.listeners):
            tell(*state)


_compilations = _Compilations()
event.register("numba:compile", _compilations)


def watch(tell: Callable[[int, bool], None]) -> Callable[[], None]:
    """Call ``tell(n, more)`` whenever the compilation of a kernel begins or ends, in the thread that needs
    it. n: number of compilations begun in this process; `more`: some are under way. Returns a function that
    ends this."""
    _compilations.listeners.append(tell)
    return lambda: _compilations.listeners.remove(tell)
