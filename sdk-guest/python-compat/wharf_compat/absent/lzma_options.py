"""What can be said about LZMA: its numbers, the options of filters and how they are written, and checksums."""

from __future__ import annotations

import hashlib
import operator
import zlib
from collections.abc import Mapping
from typing import Any

from .bz2_ import _bytes
from .lzma_coding import Corrupt

FORMAT_AUTO, FORMAT_XZ, FORMAT_ALONE, FORMAT_RAW = 0, 1, 2, 3
CHECK_NONE, CHECK_CRC32, CHECK_CRC64, CHECK_SHA256, CHECK_ID_MAX, CHECK_UNKNOWN = 0, 1, 4, 10, 15, 16
FILTER_LZMA1, FILTER_LZMA2, FILTER_DELTA, FILTER_X86, FILTER_POWERPC = 0x4000000000000001, 0x21, 3, 4, 5
FILTER_IA64, FILTER_ARM, FILTER_ARMTHUMB, FILTER_SPARC = 6, 7, 8, 9
MF_HC3, MF_HC4, MF_BT2, MF_BT3, MF_BT4 = 3, 4, 0x12, 0x13, 0x14
MODE_FAST, MODE_NORMAL, PRESET_DEFAULT, PRESET_EXTREME = 1, 2, 6, 1 << 31

BRANCHES = range(FILTER_X86, FILTER_SPARC + 1)
MAGIC, MAGIC_END = b"\xfd7zXZ\0", b"YZ"
SIZES = (0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64)
"""How many bytes each kind of check has."""
CORRUPT, FORMAT, OPTIONS = "Corrupt input data", "Input format not supported by decoder", "Invalid or unsupported options"
UNKNOWN = (1 << 64) - 1
INTERNAL, MEMORY = "Internal error", "Memory usage limit exceeded"
DICTS = (18, 20, 21, 22, 22, 23, 23, 24, 25, 26)
"""The sizes of the dictionaries of presets, as powers of two."""
DEPTHS = (3, 5, 8, 12, 16, 20, 24, 28, 32, 40)
"""How many places are tried for a match."""


class LZMAError(Exception):
    """Call to liblzma failed."""

    __module__ = "_lzma"


def refused(filter: int) -> LZMAError:
    return LZMAError(f"the filter {filter} of lzma, for the code of one kind of processor, does not exist inside of a plugin")


def _table() -> list[int]:
    made = []
    for one in range(256):
        for _ in range(8):
            one = one >> 1 ^ (0xC96C5795D7870F42 if one & 1 else 0)
        made.append(one)
    return made


CRC64 = _table()


class Check:
    """The checksum of a block."""

    def __init__(self, kind: int) -> None:
        self.kind, self.crc, self.hash = kind, 0, hashlib.sha256()

    def update(self, data: bytes) -> None:
        if self.kind == CHECK_CRC32:
            self.crc = zlib.crc32(data, self.crc)
        elif self.kind == CHECK_CRC64:
            crc, table = self.crc ^ 0xFFFFFFFFFFFFFFFF, CRC64
            for one in data:
                crc = table[crc & 255 ^ one] ^ crc >> 8
            self.crc = crc ^ 0xFFFFFFFFFFFFFFFF
        elif self.kind == CHECK_SHA256:
            self.hash.update(data)

    def digest(self) -> bytes:
        return self.hash.digest() if self.kind == CHECK_SHA256 else self.crc.to_bytes(SIZES[self.kind], "little")


def is_check_supported(check_id: int, /) -> bool:
    """Test whether the given integrity check is supported."""
    check = operator.index(check_id)
    if not -1 << 31 <= check < 1 << 31:
        raise OverflowError("Python int too large to convert to C int")
    return check in (CHECK_NONE, CHECK_CRC32, CHECK_CRC64, CHECK_SHA256)


def number_of(value: Any, bits: int = 32) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError("an integer is required") from None
    if number < 0:
        raise OverflowError("can't convert negative int to unsigned")
    if number >> bits:
        raise OverflowError(f"Python int too large for {'C uint32_t' if bits == 32 else 'uint64_t'}")
    return number


def preset_of(preset: Any) -> dict[str, int]:
    """Returns the options of a preset."""
    number = number_of(preset)
    level = number & 31
    if level > 9 or number & ~31 & ~PRESET_EXTREME:
        raise LZMAError(f"Invalid compression preset: {number}")
    fast = level < 4 and not number & PRESET_EXTREME
    return {
        "dict_size": 1 << DICTS[level], "lc": 3, "lp": 0, "pb": 2, "mode": MODE_FAST if fast else MODE_NORMAL, "nice_len": 64,
        "mf": MF_HC4 if fast else MF_BT4, "depth": 0, "tries": DEPTHS[level],
    }  # fmt: skip


def filter_of(spec: Any) -> dict[str, int]:
    """Reads what is said about a filter."""
    if not isinstance(spec, Mapping):
        raise TypeError("Filter specifier must be a dict or dict-like object")
    if "id" not in spec:
        raise ValueError('Filter specifier must have an "id" entry')
    kind = number_of(spec["id"], 64)
    known = {name: value for name, value in spec.items() if name != "id"}
    if kind in (FILTER_LZMA1, FILTER_LZMA2):
        made, said = preset_of(known.pop("preset", PRESET_DEFAULT)), "LZMA"
        names = made.keys() - {"tries"}
    elif kind == FILTER_DELTA or kind in BRANCHES:
        made, said = ({"dist": 1}, "delta") if kind == FILTER_DELTA else ({"start_offset": 0}, "BCJ")
        names = set(made)
    else:
        raise ValueError(f"Invalid filter ID: {kind}")
    try:
        made.update((name, number_of(value)) for name, value in known.items())
    except (TypeError, OverflowError):
        names = set()
    if known.keys() - names:
        raise ValueError(f"Invalid filter specifier for {said} filter")
    return {"id": kind, **made}


def chain_of(filters: Any) -> list[dict[str, int]]:
    if len(filters) > 4:
        raise ValueError("Too many filters - liblzma supports a maximum of 4")
    return [filter_of(filters[at]) for at in range(len(filters))]


def usable(chain: list[dict[str, int]], last: tuple[int, ...], encodes: bool = False) -> None:
    """Throws unless filters can be used one after the other, the last one of which compresses."""
    if not chain:
        raise LZMAError(INTERNAL)
    if any(one["id"] in last for one in chain[:-1]) or chain[-1]["id"] not in last:
        raise LZMAError(OPTIONS)
    for one in chain[:-1]:
        if one["id"] in BRANCHES:
            raise refused(one["id"])
        if not 1 <= one["dist"] <= 256:
            raise LZMAError(OPTIONS)
    if encodes or chain[-1]["id"] == FILTER_LZMA1:
        _sound(chain[-1], OPTIONS if encodes else INTERNAL)


def _sound(one: dict[str, int], says: str = OPTIONS) -> None:
    if one.get("lc", 0) > 4 or one.get("lp", 0) > 4 or one.get("lc", 0) + one.get("lp", 0) > 4 or one.get("pb", 0) > 4:
        raise LZMAError(says)


def _encode_filter_properties(filter: Any, /) -> bytes:
    """Return a bytes object encoding the options (properties) of the filter specified by *filter* (a dict)."""
    one = filter_of(filter)
    if one["id"] == FILTER_LZMA1:
        _sound(one)
        return bytes([(one["pb"] * 5 + one["lp"]) * 9 + one["lc"]]) + one["dict_size"].to_bytes(4, "little")
    if one["id"] == FILTER_LZMA2:
        return bytes([next(at for at in range(41) if _dict_size(at) >= one["dict_size"])])
    if one["id"] == FILTER_DELTA:
        if not 1 <= one["dist"] <= 256:
            raise LZMAError(OPTIONS)
        return bytes([one["dist"] - 1])
    return one["start_offset"].to_bytes(4, "little") if one["start_offset"] else b""


def _dict_size(code: int) -> int:
    return 0xFFFFFFFF if code == 40 else (2 | code & 1) << (code >> 1) + 11


def _decode_filter_properties(filter_id: int, encoded_props: Any, /) -> dict[str, int]:
    """Return a dict describing the properties of a filter."""
    kind, data = number_of(filter_id, 64), _bytes(encoded_props)
    if kind == FILTER_LZMA1 and len(data) == 5:
        found = literals_of(data[0])
        if found is not None:
            return {"id": kind, "lc": found[0], "lp": found[1], "pb": found[2], "dict_size": int.from_bytes(data[1:], "little")}
    elif kind == FILTER_LZMA2 and len(data) == 1 and data[0] <= 40:
        return {"id": kind, "dict_size": _dict_size(data[0])}
    elif kind == FILTER_DELTA and len(data) == 1:
        return {"id": kind, "dist": data[0] + 1}
    elif kind in BRANCHES and len(data) in (0, 4):
        return {"id": kind, "start_offset": int.from_bytes(data, "little")} if data else {"id": kind}
    raise LZMAError(OPTIONS)


def literals_of(code: int) -> tuple[int, int, int] | None:
    """Returns lc, lp and pb, if they are right."""
    lc, lp, pb = code % 9, code // 9 % 5, code // 45
    return (lc, lp, pb) if pb <= 4 and lc + lp <= 4 else None


class Delta:
    """Each byte as the difference to another one before it."""

    def __init__(self, distance: int, sign: int) -> None:
        self.past, self.at, self.sign = [0] * distance, 0, sign

    def __call__(self, data: bytes) -> bytes:
        past, at, made = self.past, self.at, bytearray(len(data))
        for index, one in enumerate(data):
            made[index] = new = one + self.sign * past[at] & 255
            past[at] = new if self.sign > 0 else one
            at = at + 1 if at + 1 < len(past) else 0
        self.at = at
        return bytes(made)


def same(data: bytes, crc: int) -> None:
    if int.from_bytes(data, "little") != crc:
        raise Corrupt


def read_vli(data: bytes, at: int) -> tuple[int, int]:
    """Reads a number of one to nine bytes, and returns it and where it ends."""
    value = 0
    for shift in range(0, 63, 7):
        if at >= len(data) - 4:
            break
        one = data[at]
        value, at = value | (one & 127) << shift, at + 1
        if one < 128:
            if shift and not one:
                break
            return value, at
    raise Corrupt


def vli_of(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])


def crc_of(data: Any) -> bytes:
    return zlib.crc32(data).to_bytes(4, "little")
