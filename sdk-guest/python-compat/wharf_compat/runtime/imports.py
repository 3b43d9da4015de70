"""Finds modules: those that are replaced inside of a plugin, and those that were kept in memory when it was built.

A component has no files of modules, so what is imported later has to be in its memory. The build keeps the compressed code of
the server's own modules and of its dependencies, and modules are made from it when they are first imported.
"""

from __future__ import annotations

import copy
import gc
import importlib.abc
import importlib.machinery
import importlib.util
import marshal
import opcode
import os
import re
import sys
import types
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any

ABSENT = {
    "ctypes", "_ctypes", "curses", "_curses", "fcntl", "grp", "pwd", "readline", "resource",
    "syslog", "termios", "tkinter", "_tkinter", "tty",
}  # fmt: skip
"""Modules of Python that do not exist inside of a plugin."""
UNUSED = ABSENT | {
    "antigravity", "bdb", "cProfile", "doctest", "ensurepip", "idlelib", "lib2to3", "multiprocessing", "pdb", "profile",
    "pstats", "pydoc", "pydoc_data", "site-packages", "test", "this", "trace", "turtle", "turtledemo", "unittest", "venv",
}  # fmt: skip
"""Modules of Python of which nothing is kept: tools of developers, and what needs processes."""
MULTIBYTE = ("_codecs_", "_multibytecodec")
"""The compiled parts of encodings of Chinese, Japanese and Korean."""
REPLACED = {
    "pydantic_core._pydantic_core": "wharf_compat.core",
    "rpds": "wharf_compat.absent.rpds",
    "rpds.rpds": "wharf_compat.absent.rpds",
    "ssl": "wharf_compat.absent.ssl_",
    "truststore": "wharf_compat.absent.ssl_",
    "fcntl": "wharf_compat.absent.hollow",
    "termios": "wharf_compat.absent.hollow",
    "tty": "wharf_compat.absent.hollow",
    "mmap": "wharf_compat.absent.mmap_",
    "_bz2": "wharf_compat.absent.bz2_",
    "_lzma": "wharf_compat.absent.lzma_",
    "ctypes": "wharf_compat.absent.ctypes_",
    "ctypes.util": "wharf_compat.absent.ctypes_",
    "websockets": "wharf_compat.absent.hollow",
    "keyring": "wharf_compat.absent.keyring_",
    "keyring.errors": "wharf_compat.absent.keyring_",
    "joserfc": "wharf_compat.absent.hollow",
    "cryptography": "wharf_compat.absent.hollow",
    "cryptography.hazmat.primitives.kdf.hkdf": "wharf_compat.absent.hkdf",
    "starlette": "wharf_compat.absent.hollow",
    "sse_starlette": "wharf_compat.absent.hollow",
    "python_multipart": "wharf_compat.absent.hollow",
    "uvicorn": "wharf_compat.absent.hollow",
    "uvloop": "wharf_compat.absent.hollow",
    "httptools": "wharf_compat.absent.hollow",
    "watchfiles": "wharf_compat.absent.hollow",
    "lxml.html": "wharf_compat.absent.lxml_html",
    "regex": "wharf_compat.absent.regex_",
    "orjson": "wharf_compat.absent.orjson",
    "beartype": "wharf_compat.absent.beartype_",
    "beartype.claw": "wharf_compat.absent.beartype_",
}
"""Modules that are made from another one, which is part of this package."""
HOLLOW = {name for name, by in REPLACED.items() if by.endswith(".hollow")}


compiled: dict[str, str] = {}
"""Modules of compiled packages that have no form in plain Python, with the name and version of the package."""


def _compiled(name: str) -> str | None:
    """Returns the package of a compiled module."""
    while name:
        if name in compiled:
            return compiled[name]
        name = name.rpartition(".")[0]
    return None


def _handled() -> bool | str:
    """Whether what imports a module handles that it is missing: it catches the error and goes on, or only asks whether there is one."""
    frame = sys._getframe(2)
    while frame is not None:
        code, file = frame.f_code, frame.f_code.co_filename
        if not file.startswith("<frozen importlib._bootstrap"):
            of = frame.f_globals.get("__name__", "")
            if of.startswith("importlib"):
                if code.co_name == "find_spec":
                    return "asks"
            elif of.startswith("wharf_compat"):
                return False
            elif _catches(code, frame.f_lasti):
                return True
            elif code.co_name != "<module>":
                return False
        frame = frame.f_back  # type: ignore[assignment]
    return False


CAUGHT = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


def _catches(code: types.CodeType, at: int) -> bool:
    """Whether an `ImportError` at an instruction is caught in the same code, and neither raised further nor the end of the program."""
    import dis

    target = next((one.target for one in dis._parse_exception_table(code) if one.start <= at < one.end), None)  # type: ignore[attr-defined]
    if target is None:
        return False
    names: list[str] = []
    for one in dis.get_instructions(code):
        if one.offset < target or one.opname in ("PUSH_EXC_INFO", "NOP"):
            continue
        if one.opname in ("LOAD_NAME", "LOAD_GLOBAL"):
            names.append(str(one.argval))
        elif one.opname == "CHECK_EXC_MATCH":
            if not CAUGHT & set(names):
                return False
            names.clear()
        elif one.opname in ("RAISE_VARARGS", "RERAISE", "WITH_EXCEPT_START"):
            return False
        elif one.opname == "POP_EXCEPT":
            return not {"exit", "sys", "quit"} & set(names)
    return False


class _Replaced(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes the replaced modules. A hollow one has any name, and says what is missing when it is used."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        top = name.partition(".")[0]
        if top == "ctypes" and _handled():
            raise ModuleNotFoundError("Python's module `ctypes` does not exist inside of a plugin", name=name)
        if name in ("mmap", "_bz2", "_lzma") and sys.platform != "wasi":
            # The machine that builds has it.
            return None
        if name in REPLACED or top in HOLLOW:
            return importlib.machinery.ModuleSpec(name, self, is_package=top in HOLLOW or name in ("beartype", "ctypes", "keyring"))
        package = _compiled(name)
        if package is not None:
            handled = _handled()
            if handled == "asks":
                return None
            if handled:
                raise ModuleNotFoundError(f"`{name}` is not in this plugin: {package} is compiled for one kind of machine", name=name)
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        if top in ABSENT:
            raise ModuleNotFoundError(f"Python's module `{name}` does not exist inside of a plugin", name=name)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        by = REPLACED.get(spec.name)
        if by is None or by.endswith(".hollow"):
            from ..absent import hollow

            return hollow.module(spec.name, _compiled(spec.name))
        return importlib.import_module(by)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


class _Missing(importlib.abc.MetaPathFinder):
    """Says why a module is not found, where nothing else finds it."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if not kept.code or _handled() == "asks":
            return None
        # Packages such as six find modules of their own, by what they add to the end.
        later = sys.meta_path[sys.meta_path.index(self) + 1 :]
        if any(one.find_spec(name, path, target) is not None for one in later):
            return None
        top = name.partition(".")[0]
        if name in kept.left:
            why = "there was no room for it in the memory"
        elif top in UNUSED or top.startswith(MULTIBYTE):
            raise ModuleNotFoundError(f"Python's module `{name}` does not exist inside of a plugin", name=name)
        elif top in sys.stdlib_module_names:
            why = "the build keeps the modules of Python that the source of the server or of its packages names"
        elif top in kept.tops:
            why = "the build kept other modules of this package. Name it in the server's source"
        else:
            why = "it was not installed when the plugin was built"
        raise ModuleNotFoundError(f"`{name}` is not in this plugin: {why}", name=name)


class _Folder:
    """The modules of a kept package, for what looks for them, such as `pkgutil`."""

    def __init__(self, path: str) -> None:
        self.path = os.path.normpath(path)
        if not any(os.path.dirname(file) == self.path for file, _ in kept.seen.values()):
            raise ImportError(path)

    def find_spec(self, name: str, target: Any = None) -> None:
        """Finds nothing: `_Kept` does."""

    def iter_modules(self, prefix: str = "") -> Iterator[tuple[str, bool]]:
        found = set()
        if self.path == LIBRARY:
            raise OSError("the modules of Python cannot be listed inside of a plugin")
        for name, (file, package) in kept.seen.items():
            folder = os.path.dirname(os.path.dirname(file) if package else file)
            last = name.rpartition(".")[2]
            if folder == self.path and os.path.basename(file) != "__main__.py":
                found.add((prefix + last, package))
        yield from sorted(found)


class _Kept(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes modules from the code that the build kept."""

    def __init__(self) -> None:
        self.code: dict[str, tuple[bytes, str, bool]] = {}
        self.sources: dict[str, str] = {}
        """The files of modules whose code is read now, in a component for `wharf dev`."""
        self.left: set[str] = set()
        """The modules for whose code there was no room."""
        self.top = 0
        """The highest address of an object."""
        self.named: set[str] = set()
        """The names in the server's own code, among them the packages that it imports."""
        self.imported: set[str] = set()
        """What kept code imports, up to the first dot."""
        self.asked: set[str] = set()
        """What the server's own code imports, up to the first dot."""
        self.seen: dict[str, tuple[str, bool]] = {}
        """The files of all modules that were there when the plugin was built, and whether they are packages."""
        self.tops: set[str] = set()
        """The packages of which there is something."""
        self.source: Callable[[str], str] = lambda path: ""
        """Finds the text of a file of the server."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        found = self.code.get(name)
        if found is None:
            return None
        spec = importlib.machinery.ModuleSpec(name, self, origin=found[1], is_package=found[2])
        spec.has_location = True
        if found[2]:
            spec.submodule_search_locations = [os.path.dirname(found[1])]
        return spec

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        exec(self.get_code(module.__name__), module.__dict__)

    def get_resource_reader(self, name: str) -> Any:
        from importlib.readers import FileReader

        _, path, package = self.code[name]
        return FileReader(types.SimpleNamespace(path=path)) if package else None

    def get_data(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def get_source(self, name: str) -> str:
        text = self.source(self.code[name][1])
        if not text:
            raise ImportError(f"the source of `{name}` is not in this plugin", name=name)
        return text

    def find_distributions(self, context: Any = None) -> Iterator[Any]:
        from . import metadata

        return metadata.found(context)

    def get_code(self, name: str) -> Any:
        packed, path, _ = self.code[name]
        if name in self.sources:
            with open(self.sources[name], "rb") as file:
                return compile(file.read(), path, "exec", dont_inherit=True)
        return marshal.loads(zlib.decompress(packed))


kept, missing = _Kept(), _Missing()
WHOLE = {
    "annotated_types", "attr", "attrs", "authlib", "bin", "click", "cyclopts", "docutils", "griffe", "h11",
    "httpcore", "httpx_sse", "idna", "joserfc", "jsonschema", "jsonschema_path", "jsonschema_specifications", "jwt", "markdown_it", "mcp",
    "mcp_types", "mdurl", "multipart", "openapi_pydantic", "opentelemetry", "pydantic_core", "pydantic_settings", "pygments",
    "python_multipart", "referencing", "rich", "rich_rst", "sse_starlette", "starlette", "typing_inspection", "uvicorn", "websockets",
}  # fmt: skip
"""Packages of which nothing is kept: what servers need of them is imported when the framework is."""
SKIPPED = {"pydantic/deprecated", "pydantic/v1"}
"""Parts of other packages of which nothing is kept."""
_after: dict[str, list[Callable[[Any], None]]] = {}


class _Patching(importlib.abc.MetaPathFinder):
    """Calls functions on modules right after they are first imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in _after:
            return None
        functions, spec = _after.pop(name), None
        try:
            # What comes from a folder while the plugin is built comes from what was kept in a call.
            others = (one for one in sys.meta_path if one is not self)
            spec = next((found for one in others if (found := one.find_spec(name, path, target)) is not None), None)
        finally:
            if spec is None or spec.loader is None:
                _after[name] = functions
        if spec is None or spec.loader is None:
            return None
        # Others have the same loader.
        spec.loader = copy.copy(spec.loader)
        inner = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            inner(module)
            for function in functions:
                function(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def after(name: str, function: Callable[[Any], None]) -> None:
    """Calls a function with the module `name` as soon as it is imported."""
    if name in sys.modules:
        function(sys.modules[name])
    else:
        _after.setdefault(name, []).append(function)


def install() -> None:
    if not any(isinstance(one, _Replaced) for one in sys.meta_path):
        sys.meta_path[:0] = [_Replaced(), _Patching()]
        sys.meta_path += [kept, missing]
        sys.path_hooks.append(_Folder)
        for name, by in REPLACED.items():
            # What Python itself imported already is replaced too, where it exists only on the machine that builds.
            if name in sys.modules and name.startswith(("rpds", "pydantic_core")):
                sys.modules[name] = importlib.import_module(by)


LIMIT = 128 << 20
"""How much memory a plugin may have when it is built: componentize-py reads it at once, and wasmtime allows no more."""
RESERVE = 6 << 20
"""How much of it remains for what the build does after the code was kept."""
COMPILING = 40
"""How much memory the compilation of a byte of source may take. The plugin's memory does not shrink afterwards."""


def _room() -> int:
    """Returns how much memory is left above all objects. In a plugin, `id` counts from the start of the memory."""
    return LIMIT - RESERVE - kept.top if sys.platform == "wasi" else LIMIT


def keep(folders: Iterable[str], skip: Sequence[str] = (), own: bool = False, only: Container[str] | None = None) -> int:
    """Keeps the code of all modules in folders. Of packages, only modules that are not imported yet, and only while
    there is room: first the packages that the server's own code names, then the small ones. `own` code runs again. `only`: the
    packages and files of the folders that count.

    Returns how many bytes that takes."""
    total = 0
    if not own:
        kept.top = max(map(id, gc.get_objects()))
    for folder in folders:
        packages: dict[str, list[tuple[str, str, bool]]] = {}
        sizes: dict[str, int] = {}
        for root, names, files in os.walk(folder):
            if root == folder and only is not None:
                names[:], files = [one for one in names if one in only], [one for one in files if one in only]
            elif root == folder:
                kept.tops.update(names)
            names[:] = [
                one for one in names
                if one != "__pycache__" and not one.endswith((".dist-info", ".egg-info")) and one not in ("tests", "test", "node_modules")
                and not one.startswith(".") and os.path.relpath(os.path.join(root, one), folder) not in {*skip, *SKIPPED}
            ]  # fmt: skip
            for file in files:
                if not file.endswith(".py"):
                    continue
                path = os.path.join(root, file)
                name, package = _named(folder, path)
                if not name or not all(one.isidentifier() for one in name.split(".")):
                    continue
                kept.seen[name] = path, package
                if name.partition(".")[0] in WHOLE - kept.asked:
                    continue
                if name not in kept.code and (own or name not in sys.modules):
                    top = name.partition(".")[0]
                    packages.setdefault(top, []).append((name, path, package))
                    sizes[top] = sizes.get(top, 0) + os.path.getsize(path)
        for top in sorted(packages, key=lambda top: (top not in kept.named, sizes[top])):
            # Compressed code has less than half of the size of its source.
            fits = own or sizes[top] // 2 <= _room()
            for name, path, package in packages[top]:
                if fits and (own or os.path.getsize(path) * COMPILING <= _room()):
                    total += _keep(name, path, package, own)
                else:
                    kept.left.add(name)
    return total


def keep_python() -> int:
    """Keeps the code of the modules of Python that functions import: those of kept code, and those that are imported already."""
    functions = [one.__code__ for one in gc.get_objects() if isinstance(one, types.FunctionType)]
    kept.imported.update(name for code in functions for name in _imports(code))
    kept.imported.add("encodings")
    total, done = 0, set(UNUSED)
    while waiting := (kept.imported & sys.stdlib_module_names) - done:
        done |= waiting
        total += keep([LIBRARY], only={*waiting, *(f"{top}.py" for top in waiting)})
    return total


LIBRARY = os.path.dirname(opcode.__file__)
"""The place of Python's modules. The one that a frozen module such as `os` names does not exist in a component."""


def read_later(folder: str, now: str) -> None:
    """Lets the modules of a folder be read from another one when they are imported, and forgets those that are not there any more."""
    for name, (_, path, _) in list(kept.code.items()):
        if path.startswith(folder):
            del kept.code[name]
    for root, _, files in os.walk(now):
        for file in files:
            if file.endswith(".py"):
                place = os.path.join(root, file)
                path = folder + os.path.relpath(place, now)
                name, package = _named(folder, path)
                kept.code[name], kept.sources[name] = (b"", path, package), place


def _named(folder: str, path: str) -> tuple[str, bool]:
    """Returns the name of the module in a file, and whether it is a package."""
    parts = os.path.relpath(path, folder)[:-3].split(os.sep)
    package = parts[-1] == "__init__"
    return ".".join(parts[:-1] if package else parts), package


def _keep(name: str, path: str, package: bool, own: bool) -> int:
    try:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, OSError):
        # Files for other versions of Python are of no use here.
        return 0
    if own:
        kept.named.update(_names(code))
        kept.asked.update(_imports(code))
    kept.imported.update(_imports(code))
    packed = zlib.compress(marshal.dumps(code), 6)
    kept.code[name] = packed, path, package
    kept.top = max(kept.top, id(packed) + len(packed))
    return len(packed)


def _names(code: types.CodeType) -> Iterator[str]:
    """Yields the names in code and in its functions, up to the first dot, among them the packages that it imports."""
    yield from (one.partition(".")[0] for one in code.co_names)
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _names(one)


IMPORT_NAME, EXTENDED_ARG = opcode.opmap["IMPORT_NAME"], opcode.opmap["EXTENDED_ARG"]


DOTTED = re.compile(r"[A-Za-z_]\w*(\.\w+)*")


def _imports(code: types.CodeType) -> Iterator[str]:
    """Yields what code and its functions import, up to the first dot."""
    words, high = code.co_code, 0
    for at in range(0, len(words), 2):
        high = (high | words[at + 1]) << 8 if words[at] == EXTENDED_ARG else high
        if words[at] == IMPORT_NAME:
            # What lies between instructions may look like one.
            yield from (one.partition(".")[0] for one in code.co_names[high | words[at + 1] :][:1])
        if words[at] != EXTENDED_ARG:
            high = 0
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _imports(one)
        elif isinstance(one, str) and len(one) < 80 and DOTTED.fullmatch(one):
            # It may be a name for `importlib`.
            yield one.partition(".")[0]
