"""`setup`: finds the server's dependencies, and installs those that are written in Python into `deps/`.

pip resolves the dependencies for this machine. Then each package is replaced, left out, or downloaded as a wheel in plain
Python. A package that exists only compiled is named by a warning, and its modules in the lock: they can be imported, not used. The outcome is locked with hashes.
"""

from __future__ import annotations

import ast
import json
import re
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from . import from_source
from .core import PYDANTIC
from .core import __version__ as PYDANTIC_CORE
from .from_source import PLAIN, Sources
from .target import DEPS, CompatError, find, requirement

try:
    import tomllib
except ModuleNotFoundError:
    tomllib = None  # type: ignore[assignment]

LOCK = "wharf-requirements.lock"
COMPILED = "# compiled: "
"""How a line of the lock begins that names a package without a form in plain Python, and its modules."""
LEFT_OUT = {
    "starlette", "sse-starlette", "python-multipart", "uvicorn", "uvloop", "httptools", "watchfiles", "websockets",
    "cryptography", "cffi", "pycparser", "joserfc", "pywin32", "rpds-py", "orjson", "beartype",
    "secretstorage", "jeepney", "keyring", "pip", "setuptools", "wheel", "greenlet", "debugpy", "pytest", "ruff", "mypy", "black",
}  # fmt: skip
"""Packages that this package replaces, or that only a listening server needs."""
REPLACEMENTS = {"lxml": ("html5lib", "elementpath")}
"""Compiled packages of which a part is replaced, and what the replacement needs."""
PYTHON_HALF = {"pydantic-core": "pydantic_core", "rapidfuzz": "rapidfuzz"}
"""Compiled packages of which the part in Python is used: the compiled part is replaced, or the package does without it."""
ADVICE = {
    "numpy": "the statistics and math modules of Python do for small data",
    "pandas": "the csv module of Python reads tables",
    "lxml": '`lxml.html` can read and search pages; for the rest, use xml.etree.ElementTree, or BeautifulSoup with "html.parser"',
    "pillow": "no package in plain Python reads and writes images",
    "playwright": "a plugin cannot start a browser",
    "psycopg2-binary": "a plugin has no sockets, so databases are out of reach",
}


@dataclass
class Package:
    """A package that pip chose."""

    name: str
    version: str
    url: str
    digest: str
    is_built: bool = False
    """Whether its wheel was made from the archive with that digest, because an index has only the source."""

    @property
    def key(self) -> str:
        return re.sub(r"[-_.]+", "-", self.name).lower()

    @property
    def is_pure(self) -> bool:
        return self.url.endswith("-none-any.whl")


def setup(said: str, project: Path, more: Sequence[str] = ()) -> str:
    """Installs the dependencies of a server, and `more` packages. Returns a summary."""
    started = time.monotonic()
    project.mkdir(parents=True, exist_ok=True)
    sources = Sources(project)
    sources.take()
    lock = project / LOCK
    wanted = [*requirements(said, project), *more]
    for one in more:
        from_source.check(one)
    head = f"# {json.dumps(sorted(wanted))}"
    if lock.is_file() and lock.read_text(encoding="utf-8").partition("\n")[0] == head:
        _tell(f"installing what {LOCK} says")
    else:
        _tell(f"resolving {', '.join(wanted)}")
        # The zones of the machine do not exist in a plugin.
        lines = _lock(sources, _resolve(sources, [*wanted, "tzdata"], requirement(said)))
        lock.write_text(f"{head}\n" + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    count = _install(sources, lock, project / DEPS)
    if requirement(said) is not None:
        find(said, project)
    return f"{count} packages in {project / DEPS}, locked in {lock.name}, in {time.monotonic() - started:.1f} s"


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


GONE = {
    "aifc", "asynchat", "asyncore", "audioop", "cgi", "cgitb", "chunk", "crypt", "distutils", "imghdr", "imp", "lib2to3", "mailcap",
    "msilib", "nis", "nntplib", "ossaudiodev", "pipes", "smtpd", "sndhdr", "spwd", "sunau", "telnetlib", "uu", "xdrlib",
}  # fmt: skip
"""Modules that older versions of Python had. Packages bring them back for newer ones."""


def _unshadow(deps: Path) -> None:
    """Removes modules of packages that have the name of one of Python's, which Python itself never imports: its own come first, and here
    the packages would."""
    for place in deps.iterdir():
        name = place.name.partition(".")[0]
        if name in sys.stdlib_module_names - GONE and (place.suffix == ".py" or (place / "__init__.py").is_file()):
            _tell(f"{place.name} of a package is left out: Python has a module of this name")
            shutil.rmtree(place) if place.is_dir() else place.unlink()


# What the server needs.


def requirements(said: str, project: Path) -> list[str]:
    """Returns the requirements of a server: of its inline metadata, requirements.txt, pyproject.toml, and its imports."""
    named = requirement(said)
    if named is not None:
        return [said.removeprefix("pypi:").partition("#")[0]]
    server = find(said, project)
    found: list[str] = []
    places = [server.main.parent] if server.main else []
    places += [one for one in (server.root, project) if one not in places]
    if server.main is not None:
        found = list(_inline(server.main.read_text(encoding="utf-8")))
    for place in places if not found else []:
        if not found and (place / "pyproject.toml").is_file():
            found = list(_pyproject(place / "pyproject.toml"))
        if not found and (place / "requirements.txt").is_file():
            found = list(_listed(place / "requirements.txt"))
    _tell(f"the server declares: {', '.join(found) or 'nothing'}")
    for one in found:
        from_source.check(one)
    known = {_key(one) for one in found}
    imported = set(_imports(server.main)) if server.main is not None else set()
    if "fastmcp" in imported and "fastmcp" not in known:
        found.append("fastmcp")
    elif "mcp" in {one.partition(".")[0] for one in imported} and not known & {"mcp", "fastmcp"}:
        # The two versions of the SDK differ in the name of this module.
        newer = any(one.startswith("mcp.server.mcpserver") for one in imported)
        found.append("mcp>=2,<3" if newer else "mcp<2")
    else:
        old = any(one.startswith("mcp.server.fastmcp") for one in imported)
        found = [_older(one) if old else one for one in found]
    for one, package in (
        ("httpx", "httpx"),
        ("requests", "requests"),
        ("bs4", "beautifulsoup4"),
        ("yaml", "pyyaml"),
        ("dotenv", "python-dotenv"),
    ):
        if one in imported and package not in known and not known:
            found.append(package)
    if not found:
        raise CompatError(
            f"{said} declares no dependencies, and imports neither `mcp` nor `fastmcp`: "
            "write them into requirements.txt or into its inline metadata"
        )
    return found


def _older(needed: str) -> str:
    """Bounds a requirement for the SDK, if it has no bound of its own, to the version that has the module `fastmcp`."""
    if re.fullmatch(r"mcp(\[.*\])?\s*(>=\s*1[\d.]*)?", needed.strip()):
        return f"{needed},<2" if ">" in needed else f"{needed}<2"
    return needed


def _key(text: str) -> str:
    found = re.match(r"\s*([A-Za-z0-9._-]+)", text)
    return re.sub(r"[-_.]+", "-", found[1]).lower() if found else ""


def _inline(source: str) -> Iterator[str]:
    """Reads the dependencies of inline metadata (PEP 723)."""
    found = re.search(r"(?m)^# /// script$\s(?P<content>(^#(| .*)$\s)+)^# ///$", source)
    if found:
        text = "".join(line[2:] if line.startswith("# ") else line[1:] for line in found["content"].splitlines(keepends=True))
        yield from _toml(text).get("dependencies") or []


def _pyproject(file: Path) -> Iterator[str]:
    yield from (_toml(file.read_text(encoding="utf-8")).get("project") or {}).get("dependencies") or []


def _toml(text: str) -> dict[str, Any]:
    if tomllib is None:
        raise CompatError("Python 3.11 or newer is needed to read pyproject.toml and inline metadata")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise CompatError(f"the dependencies cannot be read: {problem}") from None


def _listed(file: Path) -> Iterator[str]:
    for line in file.read_text(encoding="utf-8").splitlines():
        line = re.sub(r"(^|\s)#.*", "", line).strip()
        if line.startswith("-r "):
            yield from _listed(file.parent / line[3:].strip())
        elif line and not line.startswith("-"):
            yield line


def _imports(file: Path) -> Iterator[str]:
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except SyntaxError as problem:
        raise CompatError(f"{file.name}:{problem.lineno}: {problem.msg}") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)


# What is installed.


def _resolve(sources: Sources, wanted: Sequence[str], server: tuple[str, str | None] | None) -> list[Package]:
    """Returns the packages to install. `server`: the name and version of the server, if it is a package. What a file imports, `requirements` knows."""
    pinned = [f"pydantic=={PYDANTIC}", f"pydantic-core=={PYDANTIC_CORE}"]
    try:
        found = _resolved(sources, wanted, pinned)
    except CompatError as problem:
        if "pydantic" not in str(problem) and "conflict" not in str(problem):
            raise
        # A bound that excludes the one version that plugins have: it is used all the same, because nothing else can run.
        found = [_pinned(sources, one) for one in _resolved(sources, wanted, [])]
        _tell(f"warning: {problem}")
        pinned = []
    sdk = next((one for one in found if one.key == "mcp"), None)
    if server is not None and sdk is not None and sdk.version.startswith("2.") and _is_older(sources, server[0], found):
        _tell(f"warning: {server[0]} was written for mcp 1 and does not say so: it gets that")
        found = [_pinned(sources, one) for one in _resolved(sources, wanted, [*pinned, "mcp<2"])]
    there = {one.key for one in found}
    needed = [name for one in found for name in REPLACEMENTS.get(one.key, ()) if name not in there]
    return found + [one for one in (_resolved(sources, needed, []) if needed else []) if one.key not in there]


def _pinned(sources: Sources, one: Package) -> Package:
    """Returns the version of a package that plugins have."""
    version = {"pydantic": PYDANTIC, "pydantic-core": PYDANTIC_CORE}.get(one.key)
    if version is None or version == one.version:
        return one
    return next(other for other in _resolved(sources, [f"{one.name}=={version}"], []) if other.key == one.key)


OLDER = re.compile(
    r"mcp\.server\.fastmcp|from mcp\.server import .*\bFastMCP\b|from mcp(\.[\w.]+)? import .*\bMcpError\b"
    r"|@\w+\.(list_tools|call_tool|list_resources|list_prompts|get_prompt)\(\)"
)
"""What only servers for version 1 of the SDK have in their source."""


def _is_older(sources: Sources, name: str, packages: Sequence[Package]) -> bool:
    """Whether the source of a server, which is one of these packages, is for version 1 of the SDK."""
    server = next((one for one in packages if one.key == _key(name)), None)
    if server is None or not server.is_pure:
        return False
    with tempfile.TemporaryDirectory() as folder:
        sources.pip("download", "--quiet", "--no-deps", "-d", folder, f"{server.name}=={server.version}")
        for wheel in Path(folder).glob("*.whl"):
            with zipfile.ZipFile(wheel) as files:
                return any(name.endswith(".py") and OLDER.search(files.read(name).decode("utf-8", "replace")) for name in files.namelist())
    return False


def _resolved(sources: Sources, wanted: Sequence[str], bounds: Sequence[str]) -> list[Package]:
    with tempfile.TemporaryDirectory() as folder:
        constraints, report = Path(folder, "constraints.txt"), Path(folder, "report.json")
        constraints.write_text("".join(f"{one}\n" for one in bounds), encoding="utf-8")
        ran = sources.pip(
            "install",
            "--quiet",
            "--dry-run",
            "--ignore-installed",
            "--prefer-binary",
            "--report",
            str(report),
            "-c",
            str(constraints),
            *wanted,
        )
        if ran.returncode != 0:
            raise CompatError(_conflict(ran.stderr))
        said = json.loads(report.read_text(encoding="utf-8"))
    found = []
    for one in said["install"]:
        info, hashes = one["download_info"], one["download_info"].get("archive_info", {}).get("hashes", {})
        name, version, archive = one["metadata"]["name"], one["metadata"]["version"], sources.digest(info["url"])
        found.append(Package(name, version, info["url"], archive or hashes.get("sha256", ""), archive is not None))
    return found


def _conflict(said: str) -> str:
    lines = [line.removeprefix("ERROR: ").strip() for line in said.splitlines() if line.strip() and not line.startswith("WARNING")]
    about = [line for line in lines if "pydantic" in line and ("requested" in line or "depends on" in line)]
    if about and any("constraint" in line for line in lines):
        return (
            f"plugins have pydantic {PYDANTIC} and no other version, which does not fit: {'; '.join(about[:3])}. "
            "If it fails, use a version of the package that accepts it"
        )
    return f"pip: {from_source.last(said)}"


def _lock(sources: Sources, packages: Sequence[Package]) -> list[str]:
    lines, compiled = [], []
    with tempfile.TemporaryDirectory() as folder:
        for one in packages:
            if one.key in LEFT_OUT:
                _tell(f"{one.name} {one.version}: left out, because a plugin does not need it")
                continue
            if one.is_built or one.key in PYTHON_HALF or one.is_pure:
                lines.append(_line(one, one.digest, "source" if one.is_built else "half" if one.key in PYTHON_HALF else "wheel"))
                continue
            digest = _plain_wheel(sources, one, Path(folder))
            if digest is not None:
                lines.append(_line(one, digest, "wheel"))
            elif one.key in PLAIN:
                lines.append(_line(one, sources.fetch(f"{one.name}=={one.version}"), "source"))
            else:
                compiled.append(one)
        for one in compiled:
            _tell(f"warning: {_cannot(one)}")
            lines.append(f"{COMPILED}{one.name}=={one.version}: {' '.join(_modules(sources, one, Path(folder)))}")
    return sorted(lines)


def _modules(sources: Sources, one: Package, folder: Path) -> list[str]:
    """Returns the modules that a compiled package has for this machine."""
    place = folder / one.key
    ran = sources.pip("download", "--quiet", "--no-deps", "--only-binary=:all:", "-d", str(place), f"{one.name}=={one.version}")
    wheels = list(place.glob("*.whl"))
    if ran.returncode != 0 or not wheels:
        raise CompatError(f"pip cannot download {one.name} {one.version}: {from_source.last(ran.stderr)}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        files = [PurePosixPath(name) for name in wheel.namelist() if name.endswith((".py", ".so", ".pyd"))]
    packages = {file.parent for file in files if file.name == "__init__.py"}
    found = set()
    for file in files:
        # The outermost package, or the module itself if it is in none, as in a namespace.
        outer = next((up for up in reversed(file.parents) if up in packages), file.parent / file.name.partition(".")[0])
        if all(part.isidentifier() for part in outer.parts):
            found.add(".".join(outer.parts))
    return sorted(found)


def compiled(project: Path) -> dict[str, str]:
    """Returns the modules that plugins cannot have because they are compiled, with the package of each."""
    try:
        lines = (project / LOCK).read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        if line.startswith(COMPILED):
            package, _, modules = line.removeprefix(COMPILED).partition(": ")
            found.update(dict.fromkeys(modules.split(), package.replace("==", " ")))
    return found


def _cannot(one: Package) -> str:
    advice = ADVICE.get(one.key, "use a package that is written in plain Python, or remove what needs it")
    return f"{one.name} {one.version} has compiled parts, which cannot run inside of a plugin; what needs it will fail: {advice}"


def _line(one: Package, digest: str, how: str) -> str:
    return f"{one.name}=={one.version} --hash=sha256:{digest} # {how}"


def _plain_wheel(sources: Sources, one: Package, folder: Path) -> str | None:
    """Returns the digest of the package's wheel in plain Python, if there is one besides the compiled wheels."""
    place = folder / one.key
    ran = sources.pip(
        "download", "--quiet", "--no-deps", "--only-binary=:all:", "--platform", "any", "--implementation", "py", "--abi", "none",
        "--python-version", "3.14", "-d", str(place), f"{one.name}=={one.version}",
    )  # fmt: skip
    return _digest(place) if ran.returncode == 0 else None


def _digest(folder: Path) -> str:
    import hashlib

    file = next(one for one in folder.iterdir() if one.is_file())
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _install(sources: Sources, lock: Path, deps: Path) -> int:
    """Installs what the lock says into a new folder, and replaces the old one by it."""
    groups: dict[str, list[str]] = {"wheel": [], "half": [], "source": []}
    for line in lock.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            needed, _, how = line.partition(" # ")
            groups[how].append(needed)
    stamp = deps / ".lock"
    text = lock.read_text(encoding="utf-8")
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == text:
        return sum(map(len, groups.values()))
    wheels = [sources.wheel(needed) for needed in groups["source"]]
    fresh = deps.with_name(f"{DEPS}.new")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    _tell(f"installing {sum(map(len, groups.values()))} packages into {deps}")
    _group(sources, groups["wheel"], fresh, ["--only-binary=:all:", "--platform", "any", "--implementation", "py", "--abi", "none",
                                             "--python-version", "3.14"])  # fmt: skip
    for wheel in wheels:
        _run(sources, fresh, [str(wheel)])
    for needed in groups["half"]:
        _half(sources, needed, fresh)
    for one in fresh.rglob("*.so"):
        # Parts of packages from source that were compiled although plain Python was asked for: Python falls back without them.
        one.unlink()
    _unshadow(fresh)
    stamp = fresh / ".lock"
    stamp.write_text(text, encoding="utf-8")
    shutil.rmtree(deps, ignore_errors=True)
    fresh.rename(deps)
    return sum(map(len, groups.values()))


def _group(sources: Sources, needed: Sequence[str], folder: Path, how: Sequence[str]) -> None:
    if not needed:
        return
    with tempfile.TemporaryDirectory() as place:
        listed = Path(place, "requirements.txt")
        listed.write_text("\n".join(needed) + "\n", encoding="utf-8")
        _run(sources, folder, ["--require-hashes", *how, "-r", str(listed)])


def _run(sources: Sources, folder: Path, what: Sequence[str]) -> None:
    ran = sources.pip("install", "--quiet", "--no-deps", "--no-compile", "--target", str(folder), "--upgrade", *what)
    if ran.returncode != 0:
        raise CompatError(f"pip cannot install what {LOCK} says: {from_source.last(ran.stderr)}")


def _half(sources: Sources, needed: str, folder: Path) -> None:
    """Installs the part of a package that is written in Python."""
    name = PYTHON_HALF[_key(needed)]
    with tempfile.TemporaryDirectory() as place:
        _group(sources, [needed], Path(place), ["--only-binary=:all:"])
        shutil.copytree(
            Path(place, name), folder / name, ignore=shutil.ignore_patterns("*.so", "*.pyd", "*.dylib", "__pycache__"), dirs_exist_ok=True
        )
        for one in Path(place).glob(f"{name}-*.dist-info"):
            shutil.copytree(one, folder / one.name, dirs_exist_ok=True)
