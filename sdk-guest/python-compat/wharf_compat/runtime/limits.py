"""What Python's modules have on a machine and not inside of a plugin: each such name says so, and nothing is answered that would be another
answer on a machine."""

from __future__ import annotations

import _thread
import builtins
import codecs
import functools
import getpass
import hashlib
import importlib
import inspect
import io
import locale
import os
import re
import signal
import socket
import sys
import time
import types
from collections.abc import Callable
from typing import Any

from ..absent import digests, kdf
from .loop import NO_THREADS

WHY = {
    "os": "there are no other processes, users and terminals",
    "signal": "there are no timers and signals of a machine",
    "socket": "there are no sockets",
    "select": "there are no sockets",
    "shutil": "there is no such information about the machine",
    "time": "the time zone is always UTC",
    "asyncio": "there are no sockets and processes",
    "asyncio.subprocess": "there are no processes",
}
"""Modules that lack names of a machine, and why."""


def _lacks(module: types.ModuleType) -> None:
    why = WHY[module.__name__]
    before: Callable[[str], Any] | None = module.__dict__.get("__getattr__")

    def missing(name: str) -> Any:
        if before is not None:
            try:
                return before(name)
            except AttributeError:
                pass
        raise AttributeError(f"module '{module.__name__}' has no attribute '{name}' inside of a plugin: {why}", name=name, obj=module)

    module.__getattr__ = missing  # type: ignore[method-assign]


def _no(kind: type[Exception], why: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise kind(why)

    return refuse


LOCALES = {"", "C", "POSIX", "C.UTF-8", "C.UTF8", "C.utf8"}


def _locale() -> None:
    real, now = locale.setlocale, dict.fromkeys(range(7), "C.UTF-8")

    def setlocale(category: int, given: Any = None) -> str:
        name = given if isinstance(given, str) or given is None else locale._build_localename(given)  # type: ignore[attr-defined]
        if name is None:
            return now.get(category, "C")
        if name not in LOCALES:
            raise locale.Error(f"unsupported locale setting: there is no locale `{name}` inside of a plugin, only C and C.UTF-8")
        real(category, name or "C.UTF-8")
        for one in now if category == locale.LC_ALL else (category,):
            now[one] = name or "C.UTF-8"
        return now[category] if category in now else name

    locale.setlocale = setlocale  # type: ignore[assignment]
    locale.getdefaultlocale = lambda envvars=(): ("C", "UTF-8")  # type: ignore[assignment]


def _times() -> None:
    real = time.strftime

    def strftime(format: str, *given: Any) -> str:
        """The C library of plugins returns nothing at all for what only other ones know."""

        def known(one: re.Match[str]) -> str:
            if one[1] in "N+vfLQEO_^#0":
                raise ValueError(f"the format `{one[0]}` of strftime does not exist inside of a plugin")
            hour = (given[0] if given else time.localtime())[3]
            return {"k": f"{hour:2d}", "l": f"{hour % 12 or 12:2d}", "P": "am" if hour < 12 else "pm"}.get(one[1], one[0])

        return real(re.sub("%(.)", known, format, flags=re.DOTALL), *given)

    time.strftime = strftime
    if time.process_time() <= 0:
        clock = _no(OSError, "the time of the processor is not known inside of a plugin: use `time.perf_counter`")
        time.process_time = time.process_time_ns = time.thread_time = time.thread_time_ns = clock


def _absent_encoding(name: str) -> Any:
    """Comes after all other codecs: an encoding that Python has, but whose part in C is not there."""
    from encodings import aliases, normalize_encoding

    found = normalize_encoding(name)
    found = aliases.aliases.get(found, found)
    if found in ABSENT_ENCODINGS:
        raise LookupError(f"the encoding `{name}` does not exist inside of a plugin: it is compiled")
    return None


ABSENT_ENCODINGS = frozenset(
    "big5 big5hkscs cp932 cp949 cp950 euc_jis_2004 euc_jisx0213 euc_jp euc_kr gb18030 gb2312 gbk hz iso2022_jp iso2022_jp_1 iso2022_jp_2 "
    "iso2022_jp_2004 iso2022_jp_3 iso2022_jp_ext iso2022_kr johab shift_jis shift_jis_2004 shift_jisx0213".split()
)


class _Later:
    """A module that is imported when it is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


def _archives() -> None:
    """`shutil` and `zipfile` may have been imported before there was anything in place of `_bz2` and `_lzma`."""
    of: Any = sys.modules["shutil"]
    formats = (("bztar", "bzip2", "_BZ2_SUPPORTED", [".tar.bz2", ".tbz2"]), ("xztar", "xz", "_LZMA_SUPPORTED", [".tar.xz", ".txz"]))
    for name, kind, flag, ends in formats:
        if not getattr(of, flag, True):
            setattr(of, flag, True)
            of.register_archive_format(name, of._make_tarball, [("compress", kind)], f"{kind}'ed tar-file")
            of.register_unpack_format(name, ends, of._unpack_tarfile, [], f"{kind}'ed tar-file")
    zipped: Any = sys.modules.get("zipfile")
    for name in ("bz2", "lzma"):
        if zipped is not None and getattr(zipped, name, True) is None:
            setattr(zipped, name, _Later(name))


def _hashes() -> None:
    if hasattr(hashlib, "scrypt"):
        return
    real = hashlib.new

    @functools.wraps(real)
    def new(name: str, *args: Any, **kwargs: Any) -> Any:
        return digests.new(real, name, *args, **kwargs)

    hashlib.new = new  # type: ignore[assignment]
    hashlib.algorithms_available |= {"sha512_224", "sha512_256", "md5-sha1"}
    for name in ("pbkdf2_hmac", "scrypt"):
        setattr(hashlib, name, getattr(kdf, name))


def _sockets(no_sockets: Callable[..., Any]) -> None:
    socket.socket.__init__ = no_sockets  # type: ignore[method-assign]
    for name in ("create_connection", "create_server", "socketpair", "gethostbyaddr", "fromfd", "if_nameindex", "getservbyname", "getservbyport"):
        setattr(socket, name, no_sockets)

    def getnameinfo(address: Any, flags: int) -> tuple[str, str]:
        wanted = getattr(socket, "NI_NUMERICHOST", 1) | getattr(socket, "NI_NUMERICSERV", 2)
        if flags & wanted != wanted:
            no_sockets()
        return str(address[0]), str(address[1])

    socket.getnameinfo = getnameinfo


NO_STDIN = "a plugin has no standard input: wharf sends it what clients ask"


class _NoInput(io.TextIOBase):
    """Standard input, which the server's own code cannot read."""

    encoding, errors = "utf-8", "strict"

    def readable(self) -> bool:
        return True

    def read(self, *_: Any) -> str:
        raise OSError(NO_STDIN)

    readline = readlines = __iter__ = __next__ = read  # type: ignore[assignment]

    def fileno(self) -> int:
        return 0

    @property
    def buffer(self) -> Any:
        return self


def install(no_sockets: Callable[..., Any], no_processes: Callable[..., Any]) -> None:
    if sys.platform != "wasi":
        # The server is only tried here.
        return
    import asyncio.subprocess
    import select
    import shutil

    for name in ("fork", "forkpty", "posix_spawn", "posix_spawnp", "execv", "execve", "execl", "execle", "execlp", "execvp", "execvpe", "spawnl",
                 "spawnle", "spawnlp", "spawnv", "spawnve", "spawnvp"):  # fmt: skip
        # `hasattr` has to say that they are not there.
        if hasattr(os, name):
            setattr(os, name, no_processes)
    for module in (os, signal, socket, select, shutil, time, asyncio, asyncio.subprocess):
        _lacks(module)
    signal.raise_signal = _no(OSError, "there are no signals inside of a plugin")
    user, find = getpass.getuser, inspect.findsource

    def getuser() -> str:
        try:
            return user()
        except OSError:
            raise OSError("there are no users inside of a plugin, and none of their variables") from None

    def findsource(of: Any) -> Any:
        try:
            return find(of)
        except OSError as problem:
            raise OSError(f"{problem}: its file is not inside of a plugin") from None

    getpass.getuser, inspect.findsource = getuser, findsource
    _thread.start_new_thread = _thread.start_new = _no(RuntimeError, NO_THREADS)
    sys.stdin = _NoInput()
    builtins.input = _no(OSError, NO_STDIN)
    _locale()
    _times()
    _hashes()
    _archives()
    _sockets(no_sockets)
    codecs.register(_absent_encoding)
