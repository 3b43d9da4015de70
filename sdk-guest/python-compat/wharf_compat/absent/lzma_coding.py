"""LZMA's coding of bytes in plain Python: literals and matches as decisions, each with a probability, in numbers of a range."""

from __future__ import annotations

import zlib
from array import array
from typing import Any

# Where the probabilities of each kind of decision are.
MATCH, REP, REP0, REP1, REP2, LONG, SLOT, SPECIAL, ALIGN, LENGTH, REP_LENGTH, LITERAL = (
    0, 192, 204, 216, 228, 240, 432, 688, 803, 819, 1333, 1847,
)  # fmt: skip
FULL, MORE, END = "room is needed", "input is needed", "the data ends"
TOP, MARK, FAR = 1 << 24, 0xFFFFFFFF, 1 << 64
SYMBOL = 21
"""More bytes than a literal or a match has."""
AFTER_LITERAL = (0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 4, 5)


class Corrupt(Exception):
    """The data are not those of an encoder."""


class Coder:
    """What the decoder and the encoder both know."""

    def reset(self, lc: int, lp: int, pb: int) -> None:
        self.lc, self.lp, self.pb = lc, lp, pb
        self.probs = [1024] * (LITERAL + (0x300 << lc + lp))
        self.state = 0
        self.reps = (0, 0, 0, 0)


class Decoder(Coder):
    """Decodes into `window`. What was not taken from it begins at `given`."""

    def __init__(self, dict_size: int) -> None:
        self.size = max(4096, dict_size + 15 & ~15)
        self.window, self.given, self.first, self.before = bytearray(), 0, 0, 0

    def forget(self) -> None:
        """Nothing from before is referred to any more."""
        self.first, self.before = len(self.window), 0

    def take(self) -> bytes:
        """Returns what was decoded since the last time."""
        taken = bytes(self.window[self.given :])
        surplus = len(self.window) - self.size
        if surplus > 1 << 20:
            gone = max(surplus - self.first, 0)
            self.before, self.first = self.before + gone, max(self.first - surplus, 0)
            del self.window[:surplus]
        self.given = len(self.window)
        return taken

    def begin(self, data: bytes) -> None:
        """Takes the five bytes that numbers begin with."""
        self.range, self.code = 0xFFFFFFFF, int.from_bytes(data, "big")
        if self.code >= 0xFFFFFFFF:
            raise Corrupt

    def run(self, data: bytes, at: int, left: int, want: int, marked: bool) -> tuple[str, int]:
        """Decodes `data` from `at`, until `want` bytes are there, or the end after `left` ones; that may have a mark.

        Returns why it ends, and where."""
        window, probs, first, before = self.window, self.probs, self.first, self.before
        lc, low_mask, pos_mask = self.lc, (1 << self.lp) - 1, (1 << self.pb) - 1
        state, (rep0, rep1, rep2, rep3), span, code = self.state, self.reps, self.range, self.code
        last = len(window) + left
        stop = min(last, len(window) + want)
        safe, at_end = len(data) - SYMBOL, False
        saved: Any = None

        def bit(where: int) -> int:
            nonlocal span, code, at
            if span < TOP:
                span, code = span << 8, code << 8 | data[at]
                at += 1
            prob = probs[where]
            bound = (span >> 11) * prob
            if code < bound:
                span = bound
                probs[where] = prob + (2048 - prob >> 5)
                return 0
            span -= bound
            code -= bound
            probs[where] = prob - (prob >> 5)
            return 1

        def descend(where: int, found: int, end: int) -> int:
            nonlocal span, code, at
            while found < end:
                if span < TOP:
                    span, code = span << 8, code << 8 | data[at]
                    at += 1
                prob = probs[where + found]
                bound = (span >> 11) * prob
                if code < bound:
                    span = bound
                    probs[where + found] = prob + (2048 - prob >> 5)
                    found <<= 1
                else:
                    span -= bound
                    code -= bound
                    probs[where + found] = prob - (prob >> 5)
                    found = found << 1 | 1
            return found

        def tree(where: int, count: int) -> int:
            return descend(where, 1, 1 << count) - (1 << count)

        def mirrored(where: int, count: int) -> int:
            value, found = 0, 1
            for one in range(count):
                got = bit(where + found)
                found = found << 1 | got
                value |= got << one
            return value

        def length(where: int) -> int:
            if not bit(where):
                return 2 + tree(where + 2 + place * 8, 3)
            if not bit(where + 1):
                return 10 + tree(where + 130 + place * 8, 3)
            return 18 + tree(where + 258, 8)

        def distance(size: int) -> int:
            nonlocal span, code, at
            slot = tree(SLOT + 64 * min(size - 2, 3), 6)
            if slot < 4:
                return slot
            count = (slot >> 1) - 1
            far = (2 | slot & 1) << count
            if slot < 14:
                return far + mirrored(SPECIAL + far - slot - 1, count)
            for one in range(count - 1, 3, -1):
                if span < TOP:
                    span, code = span << 8, code << 8 | data[at]
                    at += 1
                span >>= 1
                if code >= span:
                    code -= span
                    far += 1 << one
            return far + mirrored(ALIGN, 4)

        try:
            while True:
                here = len(window)
                if at > safe:
                    # The input may end in the middle of a symbol, which is decoded again then.
                    saved = at, state, rep0, rep1, rep2, rep3, span, code, probs[:]
                if here >= stop and not at_end:
                    if here < last:
                        why = FULL
                        break
                    if span < TOP:
                        span, code = span << 8, code << 8 | data[at]
                        at += 1
                    if code == 0:
                        why = END
                        break
                    if not marked:
                        raise Corrupt
                    at_end = True
                position = here - first + before
                place = position & pos_mask
                if not bit(MATCH + state * 16 + place):
                    if at_end:
                        raise Corrupt
                    context = window[-1] >> 8 - lc if position else 0
                    where = LITERAL + 0x300 * (((position & low_mask) << lc) + context)
                    found = 1
                    if state >= 7:
                        # The byte that follows the last match says what is likely, as long as the bits are the same.
                        like = window[here - rep0 - 1]
                        for shift in range(7, -1, -1):
                            said = like >> shift & 1
                            got = bit(where + (1 + said << 8) + found)
                            found = found << 1 | got
                            if got != said:
                                break
                    window.append(descend(where, found, 256) & 255)
                    state = AFTER_LITERAL[state]
                    continue
                if not bit(REP + state):
                    size = length(LENGTH)
                    new = distance(size)
                    if new == MARK:
                        if left < FAR and not at_end:
                            raise Corrupt
                        if span < TOP:
                            span, code = span << 8, code << 8 | data[at]
                            at += 1
                        if code:
                            raise Corrupt
                        why = END
                        break
                    rep0, rep1, rep2, rep3 = new, rep0, rep1, rep2
                    state = 7 if state < 7 else 10
                elif not position:
                    raise Corrupt
                else:
                    size = 0
                    if not bit(REP0 + state):
                        if not bit(LONG + state * 16 + place):
                            size = 1
                            state = 9 if state < 7 else 11
                    elif not bit(REP1 + state):
                        rep0, rep1 = rep1, rep0
                    elif not bit(REP2 + state):
                        rep0, rep1, rep2 = rep2, rep0, rep1
                    else:
                        rep0, rep1, rep2, rep3 = rep3, rep0, rep1, rep2
                    if not size:
                        size = length(REP_LENGTH)
                        state = 8 if state < 7 else 11
                if at_end or rep0 >= position or rep0 >= self.size or here + size > last:
                    raise Corrupt
                start = here - rep0 - 1
                if size <= rep0 + 1:
                    window += window[start : start + size]
                else:
                    window += (window[start:] * (size // (rep0 + 1) + 1))[:size]
        except IndexError:
            why = MORE
            at, state, rep0, rep1, rep2, rep3, span, code, probs = saved
        self.probs, self.state, self.reps, self.range, self.code = probs, state, (rep0, rep1, rep2, rep3), span, code
        return why, at


NICE, MOST, AHEAD = 64, 273, 512
"""A match so long is taken at once; the longest one; how many bytes are to be known after the one that is coded."""
HEADS = 1 << 18
"""How many places of beginnings are remembered."""
PIECE = 1 << 16
"""How many bytes are waited for."""
NOWHERE = array("i", [-1])
DULL = 1 << 14
"""How many bytes are looked at to see whether to look for matches."""


class Encoder(Coder):
    """Finds matches in chains of places with the same four bytes, and codes them."""

    def __init__(self, dict_size: int, depth: int) -> None:
        self.size, self.depth = dict_size, depth
        self.data, self.at, self.base, self.waiting = b"", 0, 0, bytearray()
        self.chain, self.heads = array("i"), dict[bytes, int]()
        self.ready: tuple[int, int] | None = None
        self.fresh()

    def fresh(self) -> None:
        """Begins numbers."""
        self.out, self.low, self.range = bytearray(1), 0, 0xFFFFFFFF

    def add(self, data: bytes, last: bool) -> None:
        self.waiting += data
        if len(self.waiting) < PIECE and not last:
            return
        self.data += self.waiting
        self.waiting.clear()
        gone = self.at - self.size
        if gone > 1 << 20:
            # What is too far away is forgotten, and where everything else was.
            self.data, self.at, self.base = self.data[gone:], self.size, self.base + gone
            self.heads.clear()
            self.chain, self.ready = NOWHERE * self.at, None

    def close(self) -> bytes:
        """Ends the numbers, and returns them."""
        for _ in range(4):
            self._shift()
        out = bytes(self.out)
        self.fresh()
        return out

    def _shift(self) -> None:
        out = self.out
        if self.low > 0xFFFFFFFF:
            at = len(out) - 1
            while out[at] == 255:
                out[at] = 0
                at -= 1
            out[at] += 1
        out.append(self.low >> 24 & 255)
        self.low = (self.low & 0xFFFFFF) << 8

    def _bit(self, where: int, value: int) -> None:
        prob = self.probs[where]
        bound = (self.range >> 11) * prob
        if value:
            self.low += bound
            self.range -= bound
            self.probs[where] = prob - (prob >> 5)
        else:
            self.range = bound
            self.probs[where] = prob + (2048 - prob >> 5)
        if self.range < TOP:
            self.range <<= 8
            self._shift()

    def _tree(self, where: int, count: int, value: int) -> None:
        found = 1
        for shift in range(count - 1, -1, -1):
            got = value >> shift & 1
            self._bit(where + found, got)
            found = found << 1 | got

    def _mirrored(self, where: int, count: int, value: int) -> None:
        found = 1
        for shift in range(count):
            got = value >> shift & 1
            self._bit(where + found, got)
            found = found << 1 | got

    def _length(self, where: int, size: int, place: int) -> None:
        self._bit(where, size >= 10)
        if size < 10:
            return self._tree(where + 2 + place * 8, 3, size - 2)
        self._bit(where + 1, size >= 18)
        if size < 18:
            return self._tree(where + 130 + place * 8, 3, size - 10)
        return self._tree(where + 258, 8, size - 18)

    def _match(self, back: int, size: int, place: int) -> None:
        """Codes a match at a new distance."""
        state = self.state
        self._bit(MATCH + state * 16 + place, 1)
        self._bit(REP + state, 0)
        self._length(LENGTH, size, place)
        top = back.bit_length()
        slot = back if back < 4 else (top - 1) * 2 + (back >> top - 2 & 1)
        self._tree(SLOT + 64 * min(size - 2, 3), 6, slot)
        if slot >= 4:
            count = (slot >> 1) - 1
            far = (2 | slot & 1) << count
            if slot < 14:
                self._mirrored(SPECIAL + far - slot - 1, count, back - far)
            else:
                for one in range(count - 1, 3, -1):
                    self.range >>= 1
                    if back >> one & 1:
                        self.low += self.range
                    if self.range < TOP:
                        self.range <<= 8
                        self._shift()
                self._mirrored(ALIGN, 4, back & 15)
        self.reps = (back, *self.reps[:3])
        self.state = 7 if state < 7 else 10

    def _again(self, which: int, size: int, place: int) -> None:
        """Codes a match at one of the last four distances."""
        state, reps = self.state, list(self.reps)
        self._bit(MATCH + state * 16 + place, 1)
        self._bit(REP + state, 1)
        self._bit(REP0 + state, which > 0)
        if which == 0:
            self._bit(LONG + state * 16 + place, 1)
        else:
            self._bit(REP1 + state, which > 1)
            if which > 1:
                self._bit(REP2 + state, which > 2)
        self._length(REP_LENGTH, size, place)
        reps.insert(0, reps.pop(which))
        self.reps = tuple(reps)  # type: ignore[assignment]
        self.state = 8 if state < 7 else 11

    def mark(self) -> None:
        """Codes the end."""
        self._match(MARK, 2, self.base + self.at & (1 << self.pb) - 1)

    def _literal(self, at: int, position: int) -> None:
        data, probs, low, span = self.data, self.probs, self.low, self.range
        self._bit(MATCH + self.state * 16 + (position & (1 << self.pb) - 1), 0)
        low, span = self.low, self.range
        one = data[at]
        context = data[at - 1] >> 8 - self.lc if at else 0
        where = LITERAL + 0x300 * (((position & (1 << self.lp) - 1) << self.lc) + context)
        like, same = (data[at - self.reps[0] - 1] | 0x100, 0x100) if self.state >= 7 else (0, 0)
        found = 1
        one |= 0x100
        for shift in range(7, -1, -1):
            spot = where + found
            if same:
                spot += 0x100 + (like >> shift & 1) * 0x100
                if (like ^ one) >> shift & 1:
                    same = 0
            prob = probs[spot]
            bound = (span >> 11) * prob
            if one >> shift & 1:
                low += bound
                span -= bound
                probs[spot] = prob - (prob >> 5)
            else:
                span = bound
                probs[spot] = prob + (2048 - prob >> 5)
            if span < TOP:
                span <<= 8
                self.low = low
                self._shift()
                low = self.low
            found = one >> shift & (0x200 >> shift) - 1
        self.low, self.range = low, span
        self.state = AFTER_LITERAL[self.state]

    def _common(self, one: int, two: int, known: int) -> int:
        """Counts how many bytes are the same at two places."""
        data, most = self.data, min(MOST, len(self.data) - two)
        while known < most:
            differ = int.from_bytes(data[one + known : one + known + 16], "little") ^ int.from_bytes(
                data[two + known : two + known + 16], "little"
            )
            if differ:
                return min(most, known + ((differ & -differ).bit_length() - 1 >> 3))
            known += 16
        return most

    def _longest(self, at: int) -> tuple[int, int]:
        """Remembers a place, and returns the length and the distance of the best match there."""
        data, chain, heads = self.data, self.chain, self.heads
        key = data[at : at + 4]
        if len(key) < 4:
            chain.append(-1)
            return 1, 0
        other = heads.get(key, -1)
        chain.append(other)
        heads[key] = at
        three = data[at : at + 3]
        near = heads.get(three, -1)
        heads[three] = at
        best, back, left, floor = 1, 0, self.depth, max(at - self.size, 0)
        end = len(data) - at
        if near >= floor and at - near <= 1 << 12:
            best, back = self._common(near, at, 3), at - near - 1
        while other >= floor and left and best < end:
            if data[other + best] == data[at + best] and data[other : other + best] == data[at : at + best]:
                size = self._common(other, at, best)
                # A byte more has to be worth a distance that is much longer.
                if size > best + 1 or size > best and (best < 2 or at - other - 1 >> 7 <= back):
                    best, back = size, at - other - 1
                    if size >= NICE:
                        break
            other = chain[other]
            left -= 1
        return (best, back) if best > 2 or back < 128 else (1, 0)

    def _repeated(self, at: int) -> tuple[int, int]:
        """Returns the length of the best match at one of the last distances, and which."""
        data, best, which = self.data, 1, 0
        two = data[at : at + 2]
        for index, back in enumerate(self.reps):
            start = at - back - 1
            if start >= 0 and data[start : start + 2] == two and len(two) == 2:
                size = self._common(start, at, 2)
                if size > best:
                    best, which = size, index
        return best, which

    def run(self, last: bool, most: int, room: int) -> bool:
        """Codes what was added, up to `most` bytes of it into `room` ones. Returns whether it was all that can be coded now."""
        end = len(self.data) - (0 if last else AHEAD)
        stop = min(end, self.at + most - MOST)
        mask = (1 << self.pb) - 1
        ready = self.ready
        while self.at < stop and len(self.out) < room:
            at = self.at
            if len(self.heads) > HEADS:
                self.heads.clear()
            size, back = ready or self._longest(at)
            ready = None
            again, which = self._repeated(at)
            place = self.base + at & mask
            if again >= 2 and (again + 1 >= size or again + 2 >= size and back >= 1 << 9 or again + 3 >= size and back >= 1 << 15):
                self._again(which, again, place)
                self._pass(at + 1, at + again)
                self.at = at + again
                continue
            if size >= 2 and size < NICE and at + 1 < stop:
                # The match at the next byte may be a better one.
                ready = self._longest(at + 1)
                later, far = ready
                better = later > size and (later > size + 1 or far >> 7 <= back) or later == size and far < back >> 7
                if better or self._repeated(at + 1)[0] >= max(size - 1, 2):
                    size = 1
            if size < 2:
                self._literal(at, self.base + at)
                self.at = at + 1
                continue
            self._match(back, size, place)
            self._pass(at + (2 if ready else 1), at + size)
            ready = None
            self.at = at + size
        self.ready = ready
        return self.at >= end

    def skip(self) -> bool:
        """Passes over bytes that have no order and were not seen before. Returns whether they are so."""
        at, end = self.at, self.at + DULL
        piece = self.data[at:end]
        if len(piece) < DULL or len(zlib.compress(piece, 1)) < DULL:
            return False
        if any(self.data[one : one + 4] in self.heads for one in range(at + 1, end, 61)):
            return False
        self._pass(at + 1 if self.ready else at, end, 4)
        self.at, self.ready = end, None
        return True

    def _pass(self, start: int, end: int, step: int = 1) -> None:
        """Remembers places that are coded already, not all of them if they are many."""
        data, heads, chain = self.data, self.heads, self.chain
        chain.extend(NOWHERE * (end - start))
        for at in range(start, end, step if end - start < NICE else 4 * step):
            key = data[at : at + 4]
            chain[at] = heads.get(key, -1)
            heads[key] = at
