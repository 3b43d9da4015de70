"""Time zones of the package tzdata. `zoneinfo` reads them from files, and a plugin has neither the machine's nor those of packages."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from typing import Any

kept: dict[str, bytes] = {}


def keep(folders: Iterable[str]) -> None:
    """Keeps the zones of a package that is installed in one of these folders."""
    for folder in folders:
        try:
            with open(os.path.join(folder, "tzdata", "zones"), encoding="utf-8") as names:
                zones = names.read().split()
        except OSError:
            continue
        for zone in zones:
            with open(os.path.join(folder, "tzdata", "zoneinfo", *zone.split("/")), "rb") as file:
                kept[zone] = file.read()


def install(module: Any) -> None:
    """Changes the module `zoneinfo._common`."""
    real = module.load_tzdata

    def load_tzdata(key: str) -> Any:
        return io.BytesIO(kept[key]) if key in kept else real(key)

    module.load_tzdata = load_tzdata
    import zoneinfo

    known = zoneinfo.available_timezones

    def available_timezones() -> set[str]:
        return set(kept) or known()

    zoneinfo.available_timezones = available_timezones
