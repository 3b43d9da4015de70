"""`_lzma` in plain Python, below Python's own `lzma`: reads what liblzma does, and writes what it can read, in a few more bytes."""

from __future__ import annotations

import operator
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from .bz2_ import _bytes
from .lzma_coding import END, FAR, MORE, Corrupt, Decoder, Encoder
from .lzma_options import (  # noqa: F401
    CHECK_CRC32, CHECK_CRC64, CHECK_ID_MAX, CHECK_NONE, CHECK_SHA256, CHECK_UNKNOWN, CORRUPT, Check, Delta, FILTER_ARM,
    FILTER_ARMTHUMB, FILTER_DELTA, FILTER_IA64, FILTER_LZMA1, FILTER_LZMA2, FILTER_POWERPC, FILTER_SPARC, FILTER_X86, FORMAT,
    FORMAT_ALONE, FORMAT_AUTO, FORMAT_RAW, FORMAT_XZ, INTERNAL, LZMAError, MAGIC, MAGIC_END, MEMORY, MF_BT2, MF_BT3, MF_BT4, MF_HC3,
    MF_HC4, MODE_FAST, MODE_NORMAL, OPTIONS, PRESET_DEFAULT, PRESET_EXTREME, SIZES, UNKNOWN, _decode_filter_properties,
    _encode_filter_properties, chain_of, crc_of, is_check_supported, literals_of, number_of, preset_of, read_vli, same, usable,
    vli_of,
)  # fmt: skip

__all__ = ["LZMACompressor", "LZMADecompressor", "LZMAError", "is_check_supported"]
__all__ += [name for name in globals() if name.startswith(("CHECK_", "FILTER_", "FORMAT_", "MF_", "MODE_", "PRESET_"))]
CHUNK, PACKED = 1 << 21, (1 << 16) - 32
"""The most bytes that a chunk has, and after how many coded ones it ends."""


class _Once:
    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle '_lzma.{type(self).__name__}' object")


class LZMADecompressor(_Once):
    """Create a decompressor object for decompressing data incrementally."""

    __module__ = "_lzma"
    __slots__ = (
        "_check", "_data", "_eof", "_filters", "_hash", "_limit", "_made", "_needs", "_passed", "_room", "_run", "_unused",
        "_waits", "_written",
    )  # fmt: skip

    def __init__(self, format: int = FORMAT_AUTO, memlimit: Any = None, filters: Any = None) -> None:
        format = operator.index(format)
        if memlimit is not None and format == FORMAT_RAW:
            raise ValueError("Cannot specify memory limit with FORMAT_RAW")
        self._limit = FAR if memlimit is None else max(number_of(memlimit, 64), 1)
        if format == FORMAT_RAW and filters is None:
            raise ValueError("Must specify filters for FORMAT_RAW")
        if format != FORMAT_RAW and filters is not None:
            raise ValueError("Cannot specify filters except with FORMAT_RAW")
        self._check = CHECK_UNKNOWN if format in (FORMAT_AUTO, FORMAT_XZ) else CHECK_NONE
        self._data, self._made, self._passed, self._written = bytearray(), bytearray(), 0, 0
        self._eof, self._needs, self._unused, self._waits, self._room = False, True, b"", True, -1
        self._filters: list[Callable[[bytes], bytes]] = []
        self._hash = Check(CHECK_NONE)
        if format == FORMAT_RAW:
            chain = chain_of(filters)
            usable(chain, (FILTER_LZMA1, FILTER_LZMA2))
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
        found = literals_of((yield from self._take(1))[0])
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
        self._filters = [Delta(one["dist"], 1) for one in reversed(before)]
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
                found = literals_of((yield from self._take(1))[0])
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
            piece = bytes(self._data[: min(packed, 1 << 17)])
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
            if why == MORE and len(self._data) == len(piece) - at:
                self._waits = True
                yield
            elif why == MORE and packed == len(piece) - at:
                raise Corrupt

    def _xz(self) -> Any:
        header = yield from self._take(12)
        if header[:6] != MAGIC:
            raise LZMAError(FORMAT)
        same(header[8:], zlib.crc32(header[6:8]))
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
        same((yield from self._take(4)), zlib.crc32(index))
        footer = yield from self._take(12)
        if footer[10:] != MAGIC_END:
            raise Corrupt
        same(footer[:4], zlib.crc32(footer[4:10]))
        if footer[8] or footer[9] & 0xF0:
            raise LZMAError(OPTIONS)
        if footer[8:10] != header[6:8] or int.from_bytes(footer[4:8], "little") * 4 + 4 != len(index) + 4:
            raise Corrupt
        return True

    def _block(self, head: bytes) -> Any:
        """Reads a block, and returns what the index says about it."""
        same(head[-4:], zlib.crc32(head[:-4]))
        if head[1] & 0x3C:
            raise LZMAError(OPTIONS)
        said, at = [], 2
        for flag in (0x40, 0x80):
            value = None
            if head[1] & flag:
                value, at = read_vli(head, at)
            said.append(value)
        if said[0] == 0:
            raise Corrupt
        chain = []
        for _ in range((head[1] & 3) + 1):
            kind, at = read_vli(head, at)
            size, at = read_vli(head, at)
            if kind >= 1 << 62 or size > len(head) - 4 - at:
                raise Corrupt
            if kind == FILTER_LZMA1:
                raise LZMAError(OPTIONS)
            chain.append(_decode_filter_properties(kind, head[at : at + size]))
            at += size
        if any(head[at:-4]):
            raise LZMAError(OPTIONS)
        usable(chain, (FILTER_LZMA2,))
        if chain[-1]["dict_size"] + 65592 > self._limit:
            raise LZMAError(MEMORY)
        self._hash, before, written = Check(self._check), self._passed, self._written
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


class LZMACompressor(_Once):
    """Create a compressor object for compressing data incrementally."""

    __module__ = "_lzma"
    __slots__ = (
        "_block", "_check", "_chunks", "_coder", "_control", "_filters", "_flushed", "_format", "_made", "_packed", "_start",
        "_stored", "_sum", "_taken",
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
            number = PRESET_DEFAULT if preset is None else number_of(preset)
            try:
                chain = [{"id": kind, **preset_of(number)}]
            except LZMAError:
                if format == FORMAT_ALONE:
                    raise
                raise LZMAError(OPTIONS) from None
        else:
            if format == FORMAT_ALONE and (len(filters) != 1 or filters[0]["id"] != FILTER_LZMA1):
                raise ValueError("Invalid filter chain for FORMAT_ALONE - must be a single LZMA1 filter")
            chain = chain_of(filters)
            if format == FORMAT_XZ and any(one["id"] == FILTER_LZMA1 for one in chain):
                raise LZMAError(INTERNAL)
        if format == FORMAT_XZ:
            check = CHECK_CRC64 if check == -1 else check
            if not 0 <= check <= CHECK_ID_MAX:
                raise LZMAError(INTERNAL)
            if not is_check_supported(check):
                raise LZMAError("Unsupported integrity check")
        usable(chain, (FILTER_LZMA1, FILTER_LZMA2), True)
        last = chain[-1]
        if not 4096 <= last["dict_size"] <= (3 << 29) or last["mode"] not in (1, 2) or not 2 <= last["nice_len"] <= 273:
            raise LZMAError(OPTIONS)
        if last["mf"] not in (MF_HC3, MF_HC4, MF_BT2, MF_BT3, MF_BT4):
            raise LZMAError(OPTIONS)
        self._format, self._flushed, self._packed, self._taken = format, False, 0, 0
        self._filters, self._check, self._sum = [Delta(one["dist"], -1) for one in chain[:-1]], check, Check(check)
        self._coder = Encoder(last["dict_size"], last["depth"] or last["tries"])
        self._coder.reset(last["lc"], last["lp"], last["pb"])
        self._chunks, self._control, self._stored, self._start = last["id"] == FILTER_LZMA2, 0xE0, 1, 0
        self._made = bytearray(self._header(chain))
        self._block = b"" if format != FORMAT_XZ else self._header_of_block(chain)

    def _header(self, chain: list[dict[str, int]]) -> bytes:
        if self._format == FORMAT_ALONE:
            return _encode_filter_properties({name: chain[0][name] for name in ("id", "dict_size", "lc", "lp", "pb")}) + b"\xff" * 8
        flags = bytes([0, max(self._check, 0)])
        return b"" if self._format == FORMAT_RAW else MAGIC + flags + crc_of(flags)

    def _header_of_block(self, chain: list[dict[str, int]]) -> bytes:
        head = bytearray([0, len(chain) - 1])
        for one in chain:
            data = _encode_filter_properties({name: one[name] for name in ("id", "dict_size" if "dict_size" in one else "dist")})
            head += vli_of(one["id"]) + vli_of(len(data)) + data
        head += bytes(-len(head) % 4)
        head[0] = len(head) // 4
        return bytes(head) + crc_of(head)

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
        return self._code(False, given)

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
            index = b"\0\1" + vli_of(size) + vli_of(self._taken)
            made += check
        index += bytes(-len(index) % 4)
        index += crc_of(index)
        ending = (len(index) // 4 - 1).to_bytes(4, "little") + bytes([0, self._check])
        return made + bytes(self._made) + index + crc_of(ending) + ending + MAGIC_END

    def _code(self, last: bool, data: bytes = b"") -> bytes:
        coder, made = self._coder, self._made
        coder.add(data, last)
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
