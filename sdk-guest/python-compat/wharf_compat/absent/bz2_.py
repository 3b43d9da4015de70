"""`_bz2` in plain Python, below Python's own `bz2`: the same errors, and the same streams as those of libbz2, bit by bit.

Only of a block that is nothing but a repeated text, libbz2 may name another repetition as the first one."""

from __future__ import annotations

import operator
import re
import zlib
from collections import Counter, defaultdict
from itertools import accumulate
from typing import Any

BLOCK, END = 0x314159265359, 0x177245385090
"""What a block begins with, and the end of a stream."""
GROUP = 50
"""How many symbols are coded by one table."""
LONG = re.compile(rb"(.)\1{3,254}", re.DOTALL)
REPEATED = re.compile(rb"(.)\1{3}(.)", re.DOTALL)
MIRROR = bytes(int(f"{one:08b}"[::-1], 2) for one in range(256))


class _Once:
    """An object that cannot be pickled or copied."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(f"cannot pickle '_bz2.{type(self).__name__}' object")


def _sum(data: bytes, before: int = 0) -> int:
    """bzip2's checksum is zlib's with each byte mirrored, and the result too. Both `before` and the result are zlib's."""
    return zlib.crc32(data.translate(MIRROR), before)


def _mirrored(crc: int) -> int:
    return int(f"{crc:032b}"[::-1], 2)


class BZ2Compressor(_Once):
    """Create a compressor object for compressing data incrementally."""

    __module__ = "_bz2"
    __slots__ = ("_bits", "_block", "_combined", "_crc", "_flushed", "_most", "_raw")

    def __init__(self, compresslevel: int = 9, /) -> None:
        level = operator.index(compresslevel)
        if not 1 <= level <= 9:
            raise ValueError("compresslevel must be between 1 and 9")
        self._most = level * 100_000 - 19
        self._bits, self._block, self._raw = [f"{0x425A6830 + level:032b}"], bytearray(), b""
        self._combined, self._crc, self._flushed = 0, 0, False

    def compress(self, data: Any, /) -> bytes:
        """Returns compressed data, or nothing as long as a block is not full."""
        if self._flushed:
            raise ValueError("Compressor has been flushed")
        raw = self._raw + _bytes(data)
        if raw:
            # The last run may go on with what comes next.
            run = len(raw) - len(raw.rstrip(raw[-1:]))
            self._raw = self._shorten(raw, len(raw) - (run - 1) % 255 - 1)
        return self._written(False)

    def flush(self) -> bytes:
        """Ends the stream. The object cannot be used after that."""
        if self._flushed:
            raise ValueError("Repeated call to flush()")
        self._flushed = True
        self._shorten(self._raw, len(self._raw))
        self._raw = b""
        if self._block:
            self._finish()
        self._bits.append(f"{END:048b}{self._combined:032b}")
        return self._written(True)

    def _written(self, last: bool) -> bytes:
        bits = "".join(self._bits)
        if last:
            bits += "0" * (-len(bits) % 8)
        whole = len(bits) & ~7
        self._bits = [bits[whole:]]
        return int(bits[:whole] or "0", 2).to_bytes(whole // 8, "big")

    def _shorten(self, raw: bytes, end: int) -> bytes:
        """Adds data to blocks, with four to 255 equal bytes as four of them and a count. A block ends only between runs."""
        done = at = 0

        def room() -> int:
            nonlocal done
            if len(self._block) >= self._most:
                self._crc, done = _sum(raw[done:at], self._crc), at
                self._finish()
            return self._most - len(self._block)

        def plain(to: int) -> None:
            nonlocal at
            while at < to:
                cut = min(to, at + room())
                while cut < to and raw[cut] == raw[cut - 1]:
                    cut += 1
                self._block += raw[at:cut]
                at = cut

        for found in LONG.finditer(raw, 0, end):
            plain(found.start())
            room()
            self._block += found[1] * 4 + bytes([found.end() - at - 4])
            at = found.end()
        plain(end)
        self._crc = _sum(raw[done:end], self._crc)
        return raw[end:]

    def _finish(self) -> None:
        """Writes a block."""
        block, crc = bytes(self._block), _mirrored(self._crc)
        self._block, self._crc = bytearray(), 0
        self._combined = (self._combined << 1 & 0xFFFFFFFF | self._combined >> 31) ^ crc
        last, origin = _transform(block)
        used = sorted(set(block))
        symbols = _to_front(last, used)
        tables, selectors = _tables(symbols, len(used) + 2)
        have = ["".join("01"[16 * high + low in used] for low in range(16)) for high in range(16)]
        bits = self._bits
        bits.append(f"{BLOCK:048b}{crc:032b}0{origin:024b}")
        bits += ["01"["1" in one] for one in have] + [one for one in have if "1" in one]
        bits.append(f"{len(tables):03b}{len(selectors):015b}")
        front = list(range(len(tables)))
        for one in selectors:
            at = front.index(one)
            front.insert(0, front.pop(at))
            bits.append("1" * at + "0")
        codes = []
        for lengths in tables:
            now = lengths[0]
            bits.append(f"{now:05b}")
            for one in lengths:
                bits.append(("10" if one > now else "11") * abs(one - now) + "0")
                now = one
            code, made = 0, [""] * len(lengths)
            for size in range(1, max(lengths) + 1):
                for symbol, one in enumerate(lengths):
                    if one == size:
                        made[symbol] = f"{code:0{size}b}"
                        code += 1
                code <<= 1
            codes.append(made)
        for at, one in enumerate(selectors):
            bits += map(codes[one].__getitem__, symbols[at * GROUP : at * GROUP + GROUP])


def _bytes(data: Any) -> bytes:
    if isinstance(data, (str, int)):
        raise TypeError(f"a bytes-like object is required, not '{type(data).__name__}'")
    return bytes(memoryview(data).cast("B"))


STEPS = ((2, 16), (16, 80))
"""Which bytes of rotations are compared, before ranks are."""
DEPTH = STEPS[-1][1]


def _transform(block: bytes) -> tuple[bytes, int]:
    """Burrows and Wheeler: sorts the rotations, and returns the byte before each, and where the block itself is."""
    size = len(block)
    text = (block * (DEPTH // size + 2))[: size + DEPTH].decode("latin-1")
    pairs: dict[str, list[int]] = defaultdict(list)
    for at, pair in zip(range(size), map(str.__add__, text, text[1:])):
        pairs[pair].append(at)
    order: list[int] = []
    ties: list[tuple[int, list[int]]] = []

    def add(group: list[int], step: int) -> None:
        start, end = STEPS[step]
        keys = [text[at + start : at + end] for at in group]
        found = dict(zip(keys, group))
        if len(found) == len(group):
            order.extend(map(found.__getitem__, sorted(found)))
            return
        equal: dict[str, list[int]] = defaultdict(list)
        for key, at in zip(keys, group):
            equal[key].append(at)
        for key in sorted(equal):
            one = equal[key]
            if len(one) > 1 and end < DEPTH:
                add(one, step + 1)
                continue
            if len(one) > 1:
                ties.append((len(order), one))
            order.extend(one)

    for pair in sorted(pairs):
        add(pairs.pop(pair), 0)
    if ties:
        _untie(order, ties)
    return bytes(map((block[-1:] + block[:-1]).__getitem__, order)), order.index(0)


def _untie(order: list[int], ties: list[tuple[int, list[int]]]) -> None:
    """Sorts what has the same first bytes by the ranks of what follows them, which are known for twice as many bytes each time."""
    size, depth = len(order), DEPTH
    rank = [0] * size
    for place, at in enumerate(order):
        rank[at] = place
    for place, group in ties:
        for at in group:
            rank[at] = place
    while ties and depth < size:
        left = []
        for start, group in ties:
            next_to: dict[int, list[int]] = defaultdict(list)
            for at in group:
                next_to[rank[at + depth - size]].append(at)
            place = start
            for key in sorted(next_to):
                equal = next_to[key]
                order[place : place + len(equal)] = equal
                for at in equal:
                    rank[at] = place
                if len(equal) > 1:
                    left.append((place, equal))
                place += len(equal)
        ties, depth = left, depth * 2
    for place, group in ties:
        # The block is a text that is repeated: of equal rotations, libbz2 has the block itself last, in most cases.
        order[place : place + len(group)] = sorted(group, reverse=True)


def _to_front(last: bytes, used: list[int]) -> list[int]:
    """Codes each byte by how many others were seen since it was: 0 and 1 are the digits of a run's length, the highest is the end."""
    symbols: list[int] = []
    front, now, run = list(used), used[0], 0
    for one in last:
        if one == now:
            run += 1
            continue
        if run:
            symbols += map(int, bin(run + 1)[:2:-1])
            run = 0
        at = front.index(one)
        del front[at]
        front.insert(0, one)
        symbols.append(at + 1)
        now = one
    if run:
        symbols += map(int, bin(run + 1)[:2:-1])
    return [*symbols, len(used) + 1]


def _tables(symbols: list[int], size: int) -> tuple[list[list[int]], list[int]]:
    """Finds code lengths as libbz2 does: each group of symbols takes the best table, and each table fits its groups, four times."""
    total = len(symbols)
    count = 2 + sum(total >= one for one in (200, 600, 1200, 2400))
    often, left, start = Counter(symbols), total, 0
    tables: list[list[int]] = []
    for part in range(count, 0, -1):
        end, got = start, 0
        while got < left // part and end < size:
            got += often[end]
            end += 1
        if end - start > 1 and part not in (count, 1) and (count - part) % 2:
            end -= 1
            got -= often[end]
        tables.insert(0, [0 if start <= one < end else 15 for one in range(size)])
        start, left = end, left - got
    groups = [symbols[at : at + GROUP] for at in range(0, total, GROUP)]
    selectors: list[int] = []
    for _ in range(4):
        # The costs by all tables are added at once.
        costs = [sum(table[one] << 16 * at for at, table in enumerate(tables)) for one in range(size)]
        counts = [Counter[int]() for _ in tables]
        selectors = []
        for group in groups:
            cost = sum(map(costs.__getitem__, group))
            each = [cost >> 16 * at & 0xFFFF for at in range(count)]
            best = each.index(min(each))
            selectors.append(best)
            counts[best].update(group)
        tables = [_lengths([one[symbol] for symbol in range(size)]) for one in counts]
    return tables, selectors


def _lengths(often: list[int], most: int = 17) -> list[int]:
    """Huffman's code lengths. Which of equal weights comes first is as in libbz2, which has a heap."""
    size = len(often)
    weights = [0, *(max(one, 1) << 8 for one in often)]
    while True:
        heap = [0]
        parent = [0] * (2 * size)
        weight = weights + [0] * size

        def push(node: int) -> None:
            heap.append(node)
            at = len(heap) - 1
            while weight[node] < weight[heap[at >> 1]]:
                heap[at] = heap[at >> 1]
                at >>= 1
            heap[at] = node

        def pop() -> int:
            first, node = heap[1], heap.pop()
            at, end = 1, len(heap) - 1
            if end < 1:
                return first
            while (below := at << 1) <= end:
                if below < end and weight[heap[below + 1]] < weight[heap[below]]:
                    below += 1
                if weight[node] < weight[heap[below]]:
                    break
                heap[at] = heap[below]
                at = below
            heap[at] = node
            return first

        for node in range(1, size + 1):
            push(node)
        for node in range(size + 1, 2 * size):
            one, two = pop(), pop()
            parent[one] = parent[two] = node
            deep = 1 + max(weight[one] & 255, weight[two] & 255)
            weight[node] = (weight[one] & ~255) + (weight[two] & ~255) | deep
            push(node)
        depth = [0] * (2 * size)
        for node in range(2 * size - 2, 0, -1):
            depth[node] = depth[parent[node]] + 1
        if max(depth[1 : size + 1]) <= most:
            return depth[1 : size + 1]
        weights = [0, *(1 + (one >> 9) << 8 for one in weights[1:])]


class BZ2Decompressor(_Once):
    """Create a decompressor object for decompressing data incrementally.

    For one-shot decompression, use the decompress() function instead."""

    __module__ = "_bz2"
    __slots__ = ("_at", "_data", "_eof", "_made", "_needs", "_room", "_run", "_unused", "_waits")

    def __init__(self) -> None:
        self._data, self._at, self._made = bytearray(), 0, bytearray()
        self._eof, self._needs, self._unused, self._waits, self._room = False, True, b"", True, -1
        self._run = self._stream()

    eof = property(operator.attrgetter("_eof"))
    needs_input = property(operator.attrgetter("_needs"))
    unused_data = property(operator.attrgetter("_unused"))

    def decompress(self, data: Any, max_length: int = -1) -> bytes:
        """Returns decompressed data, at most `max_length` bytes of it if that is not negative."""
        given, self._room = _bytes(data), operator.index(max_length)
        if self._eof:
            raise EOFError("End of stream already reached")
        self._data += given
        self._waits = False
        try:
            next(self._run)
        except StopIteration:
            if not self._eof:
                raise OSError("Invalid data stream") from None
        passed = -(-self._at // 8)
        if self._eof:
            self._unused = bytes(self._data[passed:])
        self._needs = not self._eof and (self._waits or passed == len(self._data))
        del self._data[: self._at // 8]
        self._at &= 7
        made, self._made = bytes(self._made), bytearray()
        return made

    def _bits(self, count: int) -> Any:
        """Reads a number, and waits for its bits."""
        while len(self._data) * 8 < self._at + count:
            self._waits = True
            yield
        first, self._at = self._at, self._at + count
        value = int.from_bytes(self._data[first >> 3 : self._at + 7 >> 3], "big")
        return value >> -self._at % 8 & (1 << count) - 1

    def _stream(self) -> Any:
        for one in b"BZh":
            if (yield from self._bits(8)) != one:
                raise OSError("Invalid data stream")
        level = (yield from self._bits(8)) - 0x30
        if not 1 <= level <= 9:
            raise OSError("Invalid data stream")
        combined = 0
        while True:
            mark = yield from self._bits(8)
            if mark not in (BLOCK >> 40, END >> 40):
                raise OSError("Invalid data stream")
            kind = BLOCK if mark == BLOCK >> 40 else END
            for shift in range(32, -8, -8):
                if (yield from self._bits(8)) != kind >> shift & 255:
                    raise OSError("Invalid data stream")
            crc = yield from self._bits(32)
            if kind == END:
                if crc != combined:
                    raise OSError("Invalid data stream")
                self._eof = True
                return
            combined = (combined << 1 & 0xFFFFFFFF | combined >> 31) ^ crc
            if (yield from self._bits(1)):
                raise OSError("a block of this bzip2 stream is randomized, as before the year 2000: that cannot be read inside of a plugin")
            made = yield from self._block(level * 100_000)
            done = 0
            while done < len(made):
                more = len(made) - done if self._room < 0 else min(self._room - len(self._made), len(made) - done)
                self._made += made[done : done + more]
                done += more
                if done < len(made):
                    yield
            if _mirrored(_sum(made)) != crc:
                raise OSError("Invalid data stream")

    def _block(self, most: int) -> Any:
        """Reads a block."""
        origin = yield from self._bits(24)
        if origin > 10 + most:
            raise OSError("Invalid data stream")
        high = yield from self._bits(16)
        used = []
        for part in range(16):
            if high >> 15 - part & 1:
                low = yield from self._bits(16)
                used += [16 * part + one for one in range(16) if low >> 15 - one & 1]
        count = yield from self._bits(3)
        chosen = yield from self._bits(15)
        if not used or not 2 <= count <= 6 or not chosen:
            raise OSError("Invalid data stream")
        front, selectors = list(range(count)), []
        for _ in range(chosen):
            at = 0
            while (yield from self._bits(1)):
                at += 1
                if at >= count:
                    raise OSError("Invalid data stream")
            front.insert(0, front.pop(at))
            selectors.append(front[0])
        tables = []
        for _ in range(count):
            now, lengths = (yield from self._bits(5)), []
            for _ in range(len(used) + 2):
                while True:
                    if not 1 <= now <= 20:
                        raise OSError("Invalid data stream")
                    if not (yield from self._bits(1)):
                        break
                    now += -1 if (yield from self._bits(1)) else 1
                lengths.append(now)
            tables.append(_decoding(lengths))
        last = yield from self._symbols(tables, selectors, used, most)
        if origin >= len(last):
            raise OSError("Invalid data stream")
        return REPEATED.sub(lambda found: found[1] * (4 + found[2][0]), _back(last, origin))

    def _symbols(self, tables: list[Any], selectors: list[int], used: list[int], most: int) -> Any:
        """Reads the coded bytes of a block."""
        front, made = bytearray(used), bytearray()
        run, weight, end = 0, 1, len(used) + 1
        for selector in selectors:
            table, top = tables[selector]
            mask = (1 << top) - 1
            # The symbols of one group are read at once, again if they are not there yet.
            while True:
                first = self._at >> 3
                piece = self._data[first : first + 132]
                known, there = 8 * len(piece), self._at & 7
                piece += bytes(136 - len(piece))
                symbols: list[int] = []
                push = symbols.append
                held, have, at = int.from_bytes(piece[:4], "big") & 0xFFFFFFFF >> there, 32 - there, 4
                for _ in range(GROUP):
                    if have < 20:
                        held, have, at = (held & 0xFFFFF) << 32 | int.from_bytes(piece[at : at + 4], "big"), have + 32, at + 4
                    entry = table[held >> have - top & mask]
                    have -= entry & 31
                    symbol = entry >> 5
                    push(symbol)
                    if symbol >= end:
                        break
                passed = 8 * at - have
                if passed <= known:
                    break
                self._waits = True
                yield
            self._at = 8 * first + passed
            for symbol in symbols:
                if symbol < 2:
                    run += weight << symbol
                    weight <<= 1
                    if weight > 1 << 21:
                        raise OSError("Invalid data stream")
                    continue
                if run:
                    if len(made) + run > most:
                        raise OSError("Invalid data stream")
                    made += front[:1] * run
                    run, weight = 0, 1
                if symbol >= end:
                    if symbol > end:
                        raise OSError("Invalid data stream")
                    return made
                one = front.pop(symbol - 1)
                front.insert(0, one)
                made.append(one)
            if len(made) > most:
                raise OSError("Invalid data stream")
        raise OSError("Invalid data stream")


def _decoding(lengths: list[int]) -> tuple[list[int], int]:
    """Returns what each possible beginning stands for, 32 times the symbol and the length of its code, and how many bits are looked at."""
    top, table = max(lengths), []
    for size in range(min(lengths), top + 1):
        for symbol, one in enumerate(lengths):
            if one == size:
                table += [symbol << 5 | size] * (1 << top - size)
    return (table + [1023 << 5 | 20] * ((1 << top) - len(table)))[: 1 << top], top


def _back(last: bytearray, origin: int) -> bytes:
    """Undoes the transformation of Burrows and Wheeler."""
    counts = Counter(last)
    starts = dict(zip(sorted(counts), accumulate((counts[one] for one in sorted(counts)), initial=0)))
    follow = [0] * len(last)
    for at, one in enumerate(last):
        follow[starts[one]] = at
        starts[one] += 1
    made = bytearray()
    push = made.append
    at = origin
    for _ in range(len(last)):
        at = follow[at]
        push(last[at])
    return bytes(made)
