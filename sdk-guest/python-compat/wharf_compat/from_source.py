"""Packages that an index has only as source: pip fetches the archive and runs nothing of it, and another step builds a wheel from it.

Fetching needs a network and pip's settings, which the code of a package must not have. So here pip cannot start a program: where it would build, it
keeps the archive and ends. wharf then runs `wheel` without a network, without settings and with one folder to write, and starts `setup` again, which
gives pip the wheel. Without wharf, `setup` builds by itself, with the rights of the person who started it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

from .target import CompatError

try:
    import tomllib
except ModuleNotFoundError:
    tomllib = None  # type: ignore[assignment]

AGAIN = 75
"""The exit code of `setup` when `wheel` has to run before it goes on, and of pip here when it has kept an archive."""
APART = "WHARF_BUILDS_APART"
"""The variable with which wharf says that it runs `wheel` itself."""
PLAIN: dict[str, dict[str, str]] = {
    "markupsafe": {}, "pyyaml": {}, "msgpack": {"MSGPACK_PUREPYTHON": "1"}, "wrapt": {"WRAPT_INSTALL_EXTENSIONS": "false"},
    "aiohttp": {"AIOHTTP_NO_EXTENSIONS": "1"}, "frozenlist": {"FROZENLIST_NO_EXTENSIONS": "1"},
    "multidict": {"MULTIDICT_NO_EXTENSIONS": "1"}, "yarl": {"YARL_NO_EXTENSIONS": "1"}, "propcache": {"PROPCACHE_NO_EXTENSIONS": "1"},
    "charset-normalizer": {}, "simplejson": {}, "tornado": {}, "sqlalchemy": {"DISABLE_SQLALCHEMY_CEXT": "1"}, "lazy-object-proxy": {},
}  # fmt: skip
"""Compiled packages that are also built in plain Python, with the variables that ask for that."""

BUILDS = 32
"""The most builds of one `setup`."""
NEEDS = 64
"""The most requirements of one build."""
SECONDS = 600
"""How long one build may take."""
MAX_BYTES = 256 << 20
"""The largest archive and the largest wheel."""


class Apart(Exception):
    """`wheel` has to run first."""


class Sources:
    """The archives of a project, each in a folder named by its SHA-256, with what its build needs and the wheel that was made."""

    def __init__(self, project: Path) -> None:
        self.project, self.place, self.made = project, project / "sources", project / "wheels"
        self.next = self.place / "next"
        self._building: list[str] = []
        self._builds = 0

    def pip(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs pip, until it has wheels of all that it wants to build."""
        while (ran := self._run(*words)).returncode == AGAIN:
            self._build(_kept(ran))
        return ran

    def fetch(self, needed: str) -> str:
        """Fetches the archive of `NAME==VERSION`, with or without a hash behind it. Returns its SHA-256."""
        name, _, digest = needed.partition(" --hash=sha256:")
        if digest and (self.place / digest / "about.json").is_file():
            return digest
        with tempfile.TemporaryDirectory() as folder:
            listed = Path(folder, "requirements.txt")
            listed.write_text(f"{needed}\n", encoding="utf-8")
            only = name.partition("==")[0]
            ran = self._run("download", "--quiet", "--no-deps", f"--no-binary={only}", "-d", folder, "-r", str(listed))
        if ran.returncode != AGAIN:
            raise CompatError(f"the source of {name} cannot be downloaded: {last(ran.stderr)}")
        return _kept(ran)

    def wheel(self, needed: str) -> Path:
        """Returns the wheel that was built from the archive of `NAME==VERSION --hash=sha256:…`."""
        digest = self.fetch(needed)
        if self._wheel(digest) is None:
            self._build(digest)
        found = self._wheel(digest)
        if found is None:
            raise CompatError(f"no wheel was built of {needed}")
        return found

    def digest(self, url: str) -> str | None:
        """Returns the SHA-256 of the archive that a wheel was built from. `None`: the wheel comes from an index."""
        path = Path(unquote(urlsplit(url).path))
        return path.relative_to(self.place).parts[0] if url.startswith("file:") and self.place in path.parents else None

    def take(self) -> None:
        """Takes over what `wheel` has made. A package could have put anything there."""
        if not self.next.is_file():
            return
        digest = self.next.read_text(encoding="utf-8")
        self.next.unlink()
        folder, about = self.place / digest, self._about(digest)
        asked = self.made / "needs.txt"
        if asked.is_symlink() or asked.is_file():
            before, found = _needs(folder), _read(asked, 1 << 16).decode("utf-8", "replace").splitlines()
            for one in found:
                check(one)
            together = sorted({*(before or []), *found})
            if together == before or len(together) > NEEDS:
                raise CompatError(f"{about['archive']} cannot be built: what it needs does not fit together: {', '.join(together)[:300]}")
            (folder / "needs.txt").write_text("".join(f"{one}\n" for one in together), encoding="utf-8")
            shutil.rmtree(folder / "needs", ignore_errors=True)
            self._build(digest)
            return
        wheels = list(self.made.glob("*.whl"))
        if len(wheels) != 1 or _key(wheels[0].name.partition("-")[0]) != about["name"]:
            raise CompatError(f"the build of {about['archive']} did not make one wheel of {about['name']}")
        content = _read(wheels[0], MAX_BYTES)
        (folder / "wheel").mkdir(exist_ok=True)
        (folder / "wheel" / wheels[0].name).write_bytes(content)

    def _build(self, digest: str) -> None:
        """Fetches what the build of an archive needs, and has it built."""
        folder, about = self.place / digest, self._about(digest)
        if self._wheel(digest) is not None:
            raise CompatError(f"the wheel that was built from {about['archive']} is not of the version that the archive is named after")
        self._builds += 1
        if digest in self._building or self._builds > BUILDS:
            raise CompatError(f"{about['archive']} cannot be built: it needs itself, or too many packages that have to be built as well")
        self._building.append(digest)
        needed, needs = _needs(folder), folder / "needs"
        if needed and not needs.is_dir():
            fresh = folder / "needs.new"
            shutil.rmtree(fresh, ignore_errors=True)
            ran = self.pip("download", "--quiet", "-d", str(fresh), *needed)
            if ran.returncode != 0:
                raise CompatError(f"what builds {about['archive']} cannot be fetched: {last(ran.stderr)}")
            fresh.rename(needs)
        self.next.write_text(digest, encoding="utf-8")
        if os.environ.get(APART):
            raise Apart(f"{about['archive']} is built without a network")
        try:
            make(self.project)
        except BaseException:
            # The next `setup` begins this build again.
            self.next.unlink()
            raise
        self._building.remove(digest)
        self.take()

    def _run(self, *words: str) -> subprocess.CompletedProcess[str]:
        self.place.mkdir(exist_ok=True)
        found = [f"--find-links={one}" for one in sorted(self.place.glob("*/wheel"))]
        command = [sys.executable, "-m", __name__, str(self.place), words[0], "--disable-pip-version-check", "--no-input", *found, *words[1:]]
        with tempfile.TemporaryDirectory() as folder:
            # pip is ended where it keeps an archive, and leaves its temporary files.
            return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TMPDIR": folder})

    def _about(self, digest: str) -> dict[str, str]:
        about: dict[str, str] = json.loads((self.place / digest / "about.json").read_text(encoding="utf-8"))
        return about

    def _wheel(self, digest: str) -> Path | None:
        return next((self.place / digest / "wheel").glob("*.whl"), None)


def make(project: Path) -> None:
    """Builds a wheel from the archive that `setup` has named, or writes what the build needs. This runs code of the package."""
    sources = Sources(project)
    folder = sources.place / sources.next.read_text(encoding="utf-8")
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    made, archive, needed = sources.made, folder / about["archive"], _needs(folder)
    made.mkdir(exist_ok=True)
    for one in made.iterdir():
        shutil.rmtree(one) if one.is_dir() and not one.is_symlink() else one.unlink()
    if needed is None:
        _ask(made, _required(archive))
        return
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "wheel", "--quiet", "--no-index", "--no-deps"]
    command += ["--use-pep517", "--no-cache-dir", f"--find-links={folder / 'needs'}", "-w", str(made), str(archive)]
    own = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    environ = {**own, **PLAIN.get(about["name"], {}), "PIP_CONFIG_FILE": os.devnull}
    try:
        ran = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise CompatError(f"{about['archive']}: its build did not end within {SECONDS} s") from None
    missing = set(re.findall(r"satisfies the requirement (.+?) \(from", ran.stderr))
    if ran.returncode == 0:
        return
    if missing - set(needed):
        _ask(made, sorted(missing))
        return
    raise CompatError(f"{about['archive']} is published only as source, and its build without a network failed: {last(ran.stderr)}")


def check(needed: str) -> None:
    """Refuses what pip would not take from an index of packages: options, paths, URLs and repositories, whose programs it would run."""
    if not re.match(r"\s*[A-Za-z0-9]", needed) or "@" in needed or "/" in needed.partition(";")[0]:
        raise CompatError(f"the dependency {needed!r} is not a package of an index; name one, as in `name>=1.0`")


def last(said: str) -> str:
    """Returns the lines of pip's output that say what is wrong, without the calls that Python lists and the frames around them."""
    nothing, broken = NOTHING.search(said), BROKEN.findall(said)
    if broken and (nothing or "ERROR" not in said):
        return f"the index of packages cannot be reached: {re.sub(OBJECTS, '', broken[-1])}"
    if nothing:
        return f"{nothing[1]} is not in the index of packages"
    lines: list[str] = []
    calls: int | None = None
    for line in said.splitlines():
        text = line.lstrip(" │╰╭─>×").rstrip()
        depth = len(line) - len(line.lstrip())
        if text.startswith("Traceback (most recent call last)"):
            calls = depth
        elif text and calls is not None and depth <= calls:
            calls = None
        if text and calls is None and not text.startswith(NOISE):
            lines.append(re.sub(r"^(ERROR|error): ", "", text))
    return "; ".join(list(dict.fromkeys(lines))[-4:])[-600:]


NOTHING = re.compile(r"satisfies the requirement (\S+) .*\(from versions: none\)")
BROKEN = re.compile(r"^WARNING: Retrying .* after connection broken by '(.*)': \S+$", re.MULTILINE)
"""What pip says of a connection that it tries again, with the classes of Python."""
OBJECTS = re.compile(r"\w+Error\(|<[^>]*>:? ?|['()]")
NOISE = ("WARNING", "note: This", "hint: See", "[", "exit code:", "See above", "running ", "creating ", "copying ", "writing ", "reading ")


def _key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _kept(ran: subprocess.CompletedProcess[str]) -> str:
    return ran.stdout.split()[-1]


def _ask(made: Path, needed: list[str]) -> None:
    (made / "needs.txt").write_text("".join(f"{one}\n" for one in needed), encoding="utf-8")


def _needs(folder: Path) -> list[str] | None:
    """Returns what the build of an archive needs. `None`: nobody has looked."""
    try:
        return (folder / "needs.txt").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None


def _read(file: Path, most: int) -> bytes:
    """Reads a file that a package may have made: a link could lead to what only this step can read."""
    try:
        with open(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as opened:
            content = opened.read(most + 1)
    except OSError as problem:
        raise CompatError(f"{file.name}, which a build has made, cannot be read: {problem.strerror}") from None
    if len(content) > most:
        raise CompatError(f"{file.name}, which a build has made, is larger than {most >> 20} MiB")
    return content


def _required(archive: Path) -> list[str]:
    """Returns what an archive says that its build needs."""
    text = _text(archive, "pyproject.toml")
    said = (tomllib.loads(text).get("build-system") or {}).get("requires") if text and tomllib else None
    return said if said is not None else ["setuptools>=40.8.0", "wheel"]


def _text(archive: Path, name: str) -> str | None:
    """Returns the text of a file in the outermost folder of an archive."""
    if archive.name.endswith(".zip"):
        with zipfile.ZipFile(archive) as files:
            found = next((one for one in files.namelist() if one.count("/") == 1 and one.endswith(f"/{name}")), None)
            return files.read(found).decode() if found else None
    with tarfile.open(archive) as packed:
        for member in packed:
            if member.isfile() and member.name.removeprefix("./").count("/") == 1 and member.name.endswith(f"/{name}"):
                file = packed.extractfile(member)
                return file.read().decode() if file else None
    return None


def _fetch(place: Path, words: list[str]) -> int:
    """Runs pip in this process, in which no program can be started. Of a package that would have to be built, it keeps the archive and ends."""
    from pip._internal.cli.main import main
    from pip._internal.operations import prepare

    prepared = getattr(prepare, "_get_prepared_distribution", None)
    if prepared is None:
        _end(1, "this pip is not known here; use a Python that comes with pip 23 to 26", sys.stderr)

    def kept(wanted: Any, *more: Any, **named: Any) -> Any:
        if wanted.link is not None and wanted.link.is_wheel:
            return prepared(wanted, *more, **named)
        file = wanted.local_file_path and Path(wanted.local_file_path)
        if not file or not file.is_file() or not wanted.name:
            _end(1, f"{wanted} is not a package of an index", sys.stderr)
        if file.stat().st_size > MAX_BYTES:
            _end(1, f"{file.name} is larger than {MAX_BYTES >> 20} MiB", sys.stderr)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        folder = place / digest
        folder.mkdir(exist_ok=True)
        shutil.copyfile(file, folder / file.name)
        (folder / "about.json").write_text(json.dumps({"name": _key(wanted.name), "archive": file.name}), encoding="utf-8")
        _end(AGAIN, digest, sys.stdout)

    prepare._get_prepared_distribution = kept
    sys.addaudithook(_refuse)
    return int(main(words))


def _end(code: int, said: str, to: Any) -> NoReturn:
    print(said, file=to, flush=True)
    os._exit(code)


def _refuse(event: str, given: tuple[Any, ...]) -> None:
    if event not in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "pty.spawn"):
        return
    program = str(given[0] or given[1][0]) if event == "subprocess.Popen" else "a program"
    # The loader of musl says its version, by which pip chooses wheels.
    if not Path(program).name.startswith("ld-musl-"):
        raise PermissionError(f"pip may not start {program} here")


if __name__ == "__main__":
    sys.exit(_fetch(Path(sys.argv[1]), sys.argv[2:]))
