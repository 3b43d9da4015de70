"""`_lzma` in plain Python, below Python's own `lzma`: reads what liblzma does, and writes what it can read, in a few more bytes."""

from __future__ import annotations

import hashlib
import operator
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .bz2_ import _bytes
from .lzma_coding import END, FAR, MORE, Corrupt, Decoder, Encoder

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
__all__ = ["LZMACompressor", "LZMADecompressor", "LZMAError", "is_check_supported"]
__all__ += [name for name in globals() if name.startswith(("CHECK_", "FILTER_", "FORMAT_", "MF_", "MODE_", "PRESET_"))]


class LZMAError(Exception):
    """Call to liblzma failed."""

    __module__ = "_lzma"


def _refuse(filter: int) -> LZMAError:
    return LZMAError(f"the filter {filter} of lzma, for the code of one kind of processor, does not exist inside of a plugin")


def _table() -> list[int]:
    made = []
    for one in range(256):
        for _ in range(8):
            one = one >> 1 ^ (0xC96C5795D7870F42 if one & 1 else 0)
        made.append(one)
    return made


CRC64 = _table()


class _Check:
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


def _number(value: Any, bits: int = 32) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError("an integer is required") from None
    if number < 0:
        raise OverflowError("can't convert negative int to unsigned")
    if number >> bits:
        raise OverflowError(f"Python int too large for {'C uint32_t' if bits == 32 else 'uint64_t'}")
    return number


def _preset(preset: Any) -> dict[str, int]:
    """Returns the options of a preset."""
    number = _number(preset)
    level = number & 31
    if level > 9 or number & ~31 & ~PRESET_EXTREME:
        raise LZMAError(f"Invalid compression preset: {number}")
    fast = level < 4 and not number & PRESET_EXTREME
    return {
        "dict_size": 1 << DICTS[level], "lc": 3, "lp": 0, "pb": 2, "mode": MODE_FAST if fast else MODE_NORMAL, "nice_len": 64,
        "mf": MF_HC4 if fast else MF_BT4, "depth": 0, "tries": DEPTHS[level],
    }  # fmt: skip


def _filter(spec: Any) -> dict[str, int]:
    """Reads what is said about a filter."""
    if not isinstance(spec, Mapping):
        raise TypeError("Filter specifier must be a dict or dict-like object")
    if "id" not in spec:
        raise ValueError('Filter specifier must have an "id" entry')
    kind = _number(spec["id"], 64)
    known = {name: value for name, value in spec.items() if name != "id"}
    if kind in (FILTER_LZMA1, FILTER_LZMA2):
        made, said = _preset(known.pop("preset", PRESET_DEFAULT)), "LZMA"
        names = made.keys() - {"tries"}
    elif kind == FILTER_DELTA or kind in BRANCHES:
        made, said = ({"dist": 1}, "delta") if kind == FILTER_DELTA else ({"start_offset": 0}, "BCJ")
        names = set(made)
    else:
        raise ValueError(f"Invalid filter ID: {kind}")
    try:
        made.update((name, _number(value)) for name, value in known.items())
    except (TypeError, OverflowError):
        names = set()
    if known.keys() - names:
        raise ValueError(f"Invalid filter specifier for {said} filter")
    return {"id": kind, **made}


def _chain(filters: Any) -> list[dict[str, int]]:
    if len(filters) > 4:
        raise ValueError("Too many filters - liblzma supports a maximum of 4")
    return [_filter(filters[at]) for at in range(len(filters))]


def _usable(chain: list[dict[str, int]], last: tuple[int, ...], encodes: bool = False) -> None:
    """Throws unless filters can be used one after the other, the last one of which compresses."""
    if not chain:
        raise LZMAError(INTERNAL)
    if any(one["id"] in last for one in chain[:-1]) or chain[-1]["id"] not in last:
        raise LZMAError(OPTIONS)
    for one in chain[:-1]:
        if one["id"] in BRANCHES:
            raise _refuse(one["id"])
        if not 1 <= one["dist"] <= 256:
            raise LZMAError(OPTIONS)
    if encodes or chain[-1]["id"] == FILTER_LZMA1:
        _sound(chain[-1], OPTIONS if encodes else INTERNAL)


def _sound(one: dict[str, int], says: str = OPTIONS) -> None:
    if one.get("lc", 0) > 4 or one.get("lp", 0) > 4 or one.get("lc", 0) + one.get("lp", 0) > 4 or one.get("pb", 0) > 4:
        raise LZMAError(says)


def _encode_filter_properties(filter: Any, /) -> bytes:
    """Return a bytes object encoding the options (properties) of the filter specified by *filter* (a dict)."""
    one = _filter(filter)
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
    kind, data = _number(filter_id, 64), _bytes(encoded_props)
    if kind == FILTER_LZMA1 and len(data) == 5:
        found = _literals(data[0])
        if found is not None:
            return {"id": kind, "lc": found[0], "lp": found[1], "pb": found[2], "dict_size": int.from_bytes(data[1:], "little")}
    elif kind == FILTER_LZMA2 and len(data) == 1 and data[0] <= 40:
        return {"id": kind, "dict_size": _dict_size(data[0])}
    elif kind == FILTER_DELTA and len(data) == 1:
        return {"id": kind, "dist": data[0] + 1}
    elif kind in BRANCHES and len(data) in (0, 4):
        return {"id": kind, "start_offset": int.from_bytes(data, "little")} if data else {"id": kind}
    raise LZMAError(OPTIONS)


def _literals(code: int) -> tuple[int, int, int] | None:
    """Returns lc, lp and pb, if they are right."""
    lc, lp, pb = code % 9, code // 9 % 5, code // 45
    return (lc, lp, pb) if pb <= 4 and lc + lp <= 4 else None


class _Delta:
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


class _Once:
    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle '_lzma.{type(self).__name__}' object")


class LZMADecompressor(_Once):
    """Create a decompressor object for decompressing data incrementally."""

    __module__ = "_lzma"
    __slots__ = (
        "_check", "_data", "_eof", "_filters", "_hash", "_limit", "_made", "_needs", "_passed", "_room", "_run", "_unused", "_waits", "_written",
    )  # fmt: skip

    def __init__(self, format: int = FORMAT_AUTO, memlimit: Any = None, filters: Any = None) -> None:
        format = operator.index(format)
        if memlimit is not None and format == FORMAT_RAW:
            raise ValueError("Cannot specify memory limit with FORMAT_RAW")
        self._limit = FAR if memlimit is None else max(_number(memlimit, 64), 1)
        if format == FORMAT_RAW and filters is None:
            raise ValueError("Must specify filters for FORMAT_RAW")
        if format != FORMAT_RAW and filters is not None:
            raise ValueError("Cannot specify filters except with FORMAT_RAW")
        self._check = CHECK_UNKNOWN if format in (FORMAT_AUTO, FORMAT_XZ) else CHECK_NONE
        self._data, self._made, self._passed, self._written = bytearray(), bytearray(), 0, 0
        self._eof, self._needs, self._unused, self._waits, self._room = False, True, b"", True, -1
        self._filters: list[Callable[[bytes], bytes]] = []
        self._hash = _Check(CHECK_NONE)
        if format == FORMAT_RAW:
            chain = _chain(filters)
            _usable(chain, (FILTER_LZMA1, FILTER_LZMA2))
            self._run: Any = self._raw(chain)
        elif format in (FORMAT_AUTO, FORMAT_XZ, FORMAT_ALONE):
            self._run = (self._auto, self._xz, self._alone)[format]()
        else:
            raise ValueError(f"Invalid container format: {format}")

    check = property(operator.attrgetter("_check"), doc="ID of the integrity check used by the input stream.")
    eof = property(operator.attrgetter("_eof"), doc="True if the end-of-stream marker has been reached.")
    needs_input = property(operator.attrgetter("_needs"), doc="True if more input is needed before more decompressed data can be produced.")
    unused_data = property(operator.attrgetter("_unused"), doc="Data found after the end of the compressed stream.")

    def decompress(self, data: Any, max_length: int = -1) -> bytes:
        """Decompress *data*, returning uncompressed data as bytes."""
        given, self._room = _bytes(data), operator.index(max_length)
        if self._eof:
            raise EOFError("Already at end of stream")
        self._data += given
        self._waits = False
        if self._room < 0 or len(self._made) <= self._room:
            try:
                next(self._run)
            except StopIteration as ended:
                if ended.value is None:
                    raise LZMAError(INTERNAL) from None
                self._eof = True
            except Corrupt:
                raise LZMAError(CORRUPT) from None
        if self._room < 0 or len(self._made) <= self._room:
            made, self._made = bytes(self._made), bytearray()
        else:
            made = bytes(self._made[: self._room])
            del self._made[: self._room]
        if self._eof:
            self._unused = bytes(self._data)
        self._needs = not self._eof and self._waits and len(made) != self._room
        return made

    def _take(self, count: int) -> Any:
        """Reads bytes, and waits for them."""
        while len(self._data) < count:
            self._waits = True
            yield
        taken = bytes(self._data[:count])
        del self._data[:count]
        self._passed += count
        return taken

    def _emit(self, data: bytes) -> None:
        for one in self._filters:
            data = one(data)
        self._hash.update(data)
        self._made += data
        self._written += len(data)

    def _free(self) -> Any:
        """Waits until there is room for more, and returns for how much."""
        while 0 <= self._room <= len(self._made):
            yield
        return 1 << 16 if self._room < 0 else self._room - len(self._made)

    def _auto(self) -> Any:
        while not self._data:
            self._waits = True
            yield
        if self._data[0] == MAGIC[0]:
            return (yield from self._xz())
        if self._data[0] == 0x4C:
            raise LZMAError("files of lzip cannot be read inside of a plugin")
        self._check = CHECK_NONE
        return (yield from self._alone(True))

    def _alone(self, picky: bool = False) -> Any:
        found = _literals((yield from self._take(1))[0])
        if found is None:
            raise LZMAError(FORMAT)
        size = int.from_bytes((yield from self._take(4)), "little")
        top = size.bit_length()
        if picky and size not in (0, 0xFFFFFFFF, 1 << max(top - 1, 0), 3 << max(top - 2, 0)):
            raise LZMAError(FORMAT)
        left = int.from_bytes((yield from self._take(8)), "little")
        if picky and 1 << 38 <= left < UNKNOWN:
            raise LZMAError(FORMAT)
        if size + 65408 > self._limit:
            raise LZMAError(MEMORY)
        decoder = Decoder(size)
        decoder.reset(*found)
        yield from self._symbols(decoder, FAR, FAR if left == UNKNOWN else left, True)
        return True

    def _raw(self, chain: list[dict[str, int]]) -> Any:
        yield from self._filtered(chain)
        return True

    def _filtered(self, chain: list[dict[str, int]]) -> Iterator[None]:
        *before, last = chain
        self._filters = [_Delta(one["dist"], 1) for one in reversed(before)]
        decoder = Decoder(last["dict_size"])
        if last["id"] == FILTER_LZMA2:
            yield from self._chunks(decoder)
        else:
            decoder.reset(last["lc"], last["lp"], last["pb"])
            yield from self._symbols(decoder, FAR, FAR, False)

    def _chunks(self, decoder: Decoder) -> Any:
        """Reads LZMA2."""
        begun = set_up = False
        while control := (yield from self._take(1))[0]:
            if control == 1 or control >= 0xE0:
                decoder.forget()
                begun, set_up = True, False
            elif not begun or 2 < control < 0x80 or 0x80 <= control < 0xC0 and not set_up:
                raise Corrupt
            if control < 0x80:
                left = int.from_bytes((yield from self._take(2)), "big") + 1
                while left:
                    room = yield from self._free()
                    if not self._data:
                        self._waits = True
                        yield
                        continue
                    piece = yield from self._take(min(left, room, len(self._data)))
                    left -= len(piece)
                    decoder.window += piece
                    self._emit(decoder.take())
                continue
            head = yield from self._take(4)
            left = ((control & 31) << 16) + int.from_bytes(head[:2], "big") + 1
            if control >= 0xC0:
                found = _literals((yield from self._take(1))[0])
                if found is None:
                    raise Corrupt
                decoder.reset(*found)
                set_up = True
            elif control >= 0xA0:
                decoder.reset(decoder.lc, decoder.lp, decoder.pb)
            yield from self._symbols(decoder, int.from_bytes(head[2:], "big") + 1, left, False)

    def _symbols(self, decoder: Decoder, packed: int, left: int, marked: bool) -> Any:
        """Reads what is coded in so many bytes, until so many are decoded."""
        if (yield from self._take(1)) != b"\0" or packed < 5:
            raise Corrupt
        decoder.begin((yield from self._take(4)))
        packed -= 5 if packed < FAR else 0
        while True:
            room = yield from self._free()
            before = len(decoder.window)
            piece = bytes(self._data if packed >= len(self._data) else self._data[:packed])
            why, at = decoder.run(piece, 0, left, room, marked)
            left -= (len(decoder.window) - before) if left < FAR else 0
            self._emit(decoder.take())
            del self._data[:at]
            self._passed += at
            packed -= at if packed < FAR else 0
            if why == END:
                if 0 < packed < FAR:
                    raise Corrupt
                while 0 <= self._room < len(self._made):
                    yield
                return
            if why == MORE:
                if packed < FAR and len(piece) - at >= packed:
                    raise Corrupt
                self._waits = True
                yield

    def _xz(self) -> Any:
        header = yield from self._take(12)
        if header[:6] != MAGIC:
            raise LZMAError(FORMAT)
        _same(header[8:], zlib.crc32(header[6:8]))
        if header[6] or header[7] & 0xF0:
            raise LZMAError(OPTIONS)
        self._check, records = header[7], []
        while size := (yield from self._take(1)):
            if size == b"\0":
                break
            head = size + (yield from self._take(4 * size[0] + 3))
            records.append((yield from self._block(head)))
        started, index = self._passed - 1, b"\0"
        for expected in (len(records), *(one for record in records for one in record)):
            value, shift = 0, 0
            while True:
                one = yield from self._take(1)
                index += one
                value |= (one[0] & 127) << shift
                shift += 7
                if one[0] < 128:
                    break
                if shift > 56:
                    raise Corrupt
            if value != expected or shift > 7 and one == b"\0":
                raise Corrupt
        for _ in range(-(self._passed - started) % 4):
            one = yield from self._take(1)
            index += one
            if one != b"\0":
                raise Corrupt
        _same((yield from self._take(4)), zlib.crc32(index))
        footer = yield from self._take(12)
        if footer[10:] != MAGIC_END:
            raise Corrupt
        _same(footer[:4], zlib.crc32(footer[4:10]))
        if footer[8] or footer[9] & 0xF0:
            raise LZMAError(OPTIONS)
        if footer[8:10] != header[6:8] or int.from_bytes(footer[4:8], "little") * 4 + 4 != len(index) + 4:
            raise Corrupt
        return True

    def _block(self, head: bytes) -> Any:
        """Reads a block, and returns what the index says about it."""
        _same(head[-4:], zlib.crc32(head[:-4]))
        if head[1] & 0x3C:
            raise LZMAError(OPTIONS)
        said, at = [], 2
        for flag in (0x40, 0x80):
            value = None
            if head[1] & flag:
                value, at = _vli(head, at)
            said.append(value)
        if said[0] == 0:
            raise Corrupt
        chain = []
        for _ in range((head[1] & 3) + 1):
            kind, at = _vli(head, at)
            size, at = _vli(head, at)
            if kind >= 1 << 62 or size > len(head) - 4 - at:
                raise Corrupt
            if kind == FILTER_LZMA1:
                raise LZMAError(OPTIONS)
            chain.append(_decode_filter_properties(kind, head[at : at + size]))
            at += size
        if any(head[at:-4]):
            raise LZMAError(OPTIONS)
        _usable(chain, (FILTER_LZMA2,))
        if chain[-1]["dict_size"] + 65592 > self._limit:
            raise LZMAError(MEMORY)
        self._hash, before, written = _Check(self._check), self._passed, self._written
        yield from self._filtered(chain)
        packed, written = self._passed - before, self._written - written
        if said[0] not in (None, packed) or said[1] not in (None, written):
            raise Corrupt
        for _ in range(-packed % 4):
            if (yield from self._take(1)) != b"\0":
                raise Corrupt
        check = yield from self._take(SIZES[self._check])
        if is_check_supported(self._check) and check != self._hash.digest():
            raise Corrupt
        return len(head) + packed + len(check), written


def _same(data: bytes, crc: int) -> None:
    if int.from_bytes(data, "little") != crc:
        raise Corrupt


def _vli(data: bytes, at: int) -> tuple[int, int]:
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


def _as_vli(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])


class LZMACompressor(_Once):
    """Create a compressor object for compressing data incrementally."""

    __module__ = "_lzma"
    __slots__ = (
        "_block", "_check", "_chunks", "_coder", "_control", "_filters", "_flushed", "_format", "_made", "_packed", "_start", "_stored", "_sum", "_taken",
    )  # fmt: skip

    def __init__(self, format: int = FORMAT_XZ, check: int = -1, preset: Any = None, filters: Any = None) -> None:
        format, check = operator.index(format), operator.index(check)
        if preset is not None and filters is not None:
            raise ValueError("Cannot specify both preset and filter chain")
        if format != FORMAT_XZ and check not in (-1, CHECK_NONE):
            raise ValueError("Integrity checks are only supported by FORMAT_XZ")
        if format not in (FORMAT_XZ, FORMAT_ALONE, FORMAT_RAW):
            raise ValueError(f"Invalid container format: {format}")
        if format == FORMAT_RAW and filters is None:
            raise ValueError("Must specify filters for FORMAT_RAW")
        kind = FILTER_LZMA1 if format == FORMAT_ALONE else FILTER_LZMA2
        if filters is None:
            number = PRESET_DEFAULT if preset is None else _number(preset)
            try:
                chain = [{"id": kind, **_preset(number)}]
            except LZMAError:
                if format == FORMAT_ALONE:
                    raise
                raise LZMAError(OPTIONS) from None
        else:
            if format == FORMAT_ALONE and (len(filters) != 1 or filters[0]["id"] != FILTER_LZMA1):
                raise ValueError("Invalid filter chain for FORMAT_ALONE - must be a single LZMA1 filter")
            chain = _chain(filters)
            if format == FORMAT_XZ and any(one["id"] == FILTER_LZMA1 for one in chain):
                raise LZMAError(INTERNAL)
        if format == FORMAT_XZ:
            check = CHECK_CRC64 if check == -1 else check
            if not 0 <= check <= CHECK_ID_MAX:
                raise LZMAError(INTERNAL)
            if not is_check_supported(check):
                raise LZMAError("Unsupported integrity check")
        _usable(chain, (FILTER_LZMA1, FILTER_LZMA2), True)
        last = chain[-1]
        if not 4096 <= last["dict_size"] <= (3 << 29) or last["mode"] not in (1, 2) or not 2 <= last["nice_len"] <= 273:
            raise LZMAError(OPTIONS)
        if last["mf"] not in (MF_HC3, MF_HC4, MF_BT2, MF_BT3, MF_BT4):
            raise LZMAError(OPTIONS)
        self._format, self._flushed, self._packed, self._taken = format, False, 0, 0
        self._filters, self._check, self._sum = [_Delta(one["dist"], -1) for one in chain[:-1]], check, _Check(check)
        self._coder = Encoder(last["dict_size"], last["depth"] or last["tries"])
        self._coder.reset(last["lc"], last["lp"], last["pb"])
        self._chunks, self._control, self._stored, self._start = last["id"] == FILTER_LZMA2, 0xE0, 1, 0
        self._made = bytearray(self._header(chain))
        self._block = b"" if format != FORMAT_XZ else self._header_of_block(chain)

    def _header(self, chain: list[dict[str, int]]) -> bytes:
        if self._format == FORMAT_ALONE:
            return _encode_filter_properties({name: chain[0][name] for name in ("id", "dict_size", "lc", "lp", "pb")}) + b"\xff" * 8
        flags = bytes([0, max(self._check, 0)])
        return b"" if self._format == FORMAT_RAW else MAGIC + flags + _crc(flags)

    def _header_of_block(self, chain: list[dict[str, int]]) -> bytes:
        head = bytearray([0, len(chain) - 1])
        for one in chain:
            data = _encode_filter_properties({name: one[name] for name in ("id", "dict_size" if "dict_size" in one else "dist")})
            head += _as_vli(one["id"]) + _as_vli(len(data)) + data
        head += bytes(-len(head) % 4)
        head[0] = len(head) // 4
        return head + _crc(head)

    def compress(self, data: Any, /) -> bytes:
        """Provide data to the compressor object. Returns a chunk of compressed data if possible, or b'' otherwise."""
        given = _bytes(data)
        if self._flushed:
            raise ValueError("Compressor has been flushed")
        if given and not self._taken:
            self._made += self._block
        self._taken += len(given)
        self._sum.update(given)
        for one in self._filters:
            given = one(given)
        self._coder.add(given)
        return self._code(False)

    def flush(self) -> bytes:
        """Finish the compression process."""
        if self._flushed:
            raise ValueError("Repeated call to flush()")
        self._flushed = True
        if self._format != FORMAT_XZ:
            return self._code(True)
        index = b"\0\0"
        made = b""
        if self._taken:
            made = self._code(True)
            made += bytes(-self._packed % 4)
            check = self._sum.digest()
            size = len(self._block) + self._packed + len(check)
            index = b"\0\1" + _as_vli(size) + _as_vli(self._taken)
            made += check
        index += bytes(-len(index) % 4)
        index += _crc(index)
        ending = (len(index) // 4 - 1).to_bytes(4, "little") + bytes([0, self._check])
        return made + bytes(self._made) + index + _crc(ending) + ending + MAGIC_END

    def _code(self, last: bool) -> bytes:
        coder, made = self._coder, self._made
        before = len(made)
        if self._chunks:
            while True:
                if self._start == coder.base + coder.at and coder.skip():
                    self._store()
                    continue
                done = coder.run(last, CHUNK - (coder.base + coder.at - self._start), PACKED)
                if done and not last:
                    break
                self._chunk()
                if done:
                    made += b"\0"
                    break
        else:
            coder.run(last, FAR, FAR)
            if last:
                coder.mark()
                made += coder.close()
            else:
                # A carry may still change the last byte that is not 255, and those after it.
                sure = len(coder.out.rstrip(b"\xff")) - 1
                if sure > 0:
                    made += coder.out[:sure]
                    del coder.out[:sure]
        self._packed += len(made) - before
        written = bytes(made)
        made.clear()
        return written

    def _chunk(self) -> None:
        """Writes a chunk of LZMA2, in which the bytes are as they are if it does not get smaller."""
        coder, made = self._coder, self._made
        size, packed = coder.base + coder.at - self._start, coder.close()
        if size and len(packed) >= size:
            self._store()
        elif size:
            self._start += size
            made += bytes([self._control | size - 1 >> 16]) + (size - 1 & 0xFFFF).to_bytes(2, "big") + (len(packed) - 1).to_bytes(2, "big")
            if self._control >= 0xC0:
                made.append((coder.pb * 5 + coder.lp) * 9 + coder.lc)
            made += packed
            self._control, self._stored = 0x80, 2

    def _store(self) -> None:
        coder = self._coder
        size = coder.base + coder.at - self._start
        self._start += size
        for at in range(coder.at - size, coder.at, 1 << 16):
            piece = coder.data[at : min(at + (1 << 16), coder.at)]
            self._made += bytes([self._stored]) + (len(piece) - 1).to_bytes(2, "big") + piece
            self._stored = 2
        coder.reset(coder.lc, coder.lp, coder.pb)
        self._control = 0xC0 if self._control >= 0xC0 else 0xA0


CHUNK, PACKED = 1 << 21, (1 << 16) - 32
"""The most bytes that a chunk has, and after how many coded ones it ends."""


def _crc(data: Any) -> bytes:
    return zlib.crc32(data).to_bytes(4, "little")
