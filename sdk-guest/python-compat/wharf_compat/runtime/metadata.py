"""Versions of the installed packages. Servers ask for them when they start, and a plugin has no folder in which Python could look them up."""

from __future__ import annotations

import csv
import importlib.metadata as metadata
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

FILES = ("METADATA", "entry_points.txt", "top_level.txt", "RECORD")


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


class _Kept(metadata.Distribution):
    """A package as it was installed when the plugin was built."""

    def __init__(self, files: dict[str, str]) -> None:
        self.kept = files
        self.folder = files.get("", "")

    def read_text(self, filename: str) -> str | None:
        return self.kept.get(filename)

    def locate_file(self, path: Any) -> Any:
        return Path(self.folder, path)


places: dict[str, int] = {}
"""The files of the packages when the plugin was built, and their sizes."""
kept: dict[str, dict[str, str]] = {}


def keep(folders: Iterable[str]) -> None:
    """Keeps what is known of the packages in these folders. Descriptions are left out, which are long, and the digests of files."""
    for one in metadata.distributions(path=list(folders)):
        files = {name: text for name in FILES if (text := one.read_text(name))}
        name, folder = one.metadata["Name"], str(one.locate_file(""))
        files[""] = folder
        if name and "METADATA" in files:
            if "RECORD" in files:
                listed = [line for line in csv.reader(files["RECORD"].splitlines()) if len(line) == 3 and not line[0].endswith(".pyc")]
                files["RECORD"] = "".join(f"{one},,{size}\n" for one, _, size in listed if "," not in one)
                places.update((os.path.join(folder, one), int(size or 0)) for one, _, size in listed if ".dist-info/" not in one)
            files["METADATA"] = files["METADATA"].split("\n\n", 1)[0] + "\n"
            kept.setdefault(_plain(name), files)


def found(context: Any = None) -> Iterator[metadata.Distribution]:
    """The kept packages, for `importlib.metadata`."""
    name = getattr(context, "name", None)
    for known, files in kept.items():
        if name is None or known == _plain(name):
            yield _Kept(files)
