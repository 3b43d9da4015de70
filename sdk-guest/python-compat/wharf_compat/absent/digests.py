"""Hashes that Python takes from OpenSSL, for where it is built without: SHA-512/224 and SHA-512/256 (FIPS 180-4), and MD5 with SHA-1."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from typing import Any

MASK = (1 << 64) - 1


def _primes() -> list[int]:
    found: list[int] = []
    one = 2
    while len(found) < 80:
        if all(one % other for other in found):
            found.append(one)
        one += 1
    return found


def _root(value: int, power: int) -> int:
    """Returns the whole part of a root."""
    low, high = 0, 1 << (value.bit_length() // power + 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**power <= value else (low, middle - 1)
    return low


K = [_root(one << 192, 3) & MASK for one in _primes()]
"""The first 64 bits of the fractions of the cube roots of the first 80 primes."""
H = [_root(one << 128, 2) & MASK for one in _primes()[:8]]


def _turn(word: int, bits: int) -> int:
    return (word >> bits | word << 64 - bits) & MASK


def _mix(state: list[int], block: bytes) -> list[int]:
    words = list(struct.unpack(">16Q", block))
    for at in range(16, 80):
        two, fifteen = words[at - 2], words[at - 15]
        first = _turn(fifteen, 1) ^ _turn(fifteen, 8) ^ fifteen >> 7
        second = _turn(two, 19) ^ _turn(two, 61) ^ two >> 6
        words.append((words[at - 16] + first + words[at - 7] + second) & MASK)
    a, b, c, d, e, f, g, h = state
    for at in range(80):
        one = h + (_turn(e, 14) ^ _turn(e, 18) ^ _turn(e, 41)) + (e & f ^ ~e & MASK & g) + K[at] + words[at]
        two = (_turn(a, 28) ^ _turn(a, 34) ^ _turn(a, 39)) + (a & b ^ a & c ^ b & c)
        a, b, c, d, e, f, g, h = (one + two) & MASK, a, b, c, (d + one) & MASK, e, f, g
    return [(old + new) & MASK for old, new in zip(state, (a, b, c, d, e, f, g, h))]


class _Short:
    """SHA-512 with another start, of which a part counts."""

    block_size = 128

    def __init__(self, bits: int, data: Any = b"") -> None:
        self.name, self.digest_size = f"sha512_{bits}", bits // 8
        self._state, self._rest, self._length = [one ^ 0xA5A5A5A5A5A5A5A5 for one in H], b"", 0
        self.update(f"SHA-512/{bits}".encode())
        self._state, self._rest, self._length = self._done(), b"", 0
        self.update(data)

    def update(self, data: Any) -> None:
        if isinstance(data, str):
            raise TypeError("Strings must be encoded before hashing")
        given = self._rest + bytes(memoryview(data))
        self._length += len(given) - len(self._rest)
        whole = len(given) // 128 * 128
        for at in range(0, whole, 128):
            self._state = _mix(self._state, given[at : at + 128])
        self._rest = given[whole:]

    def _done(self) -> list[int]:
        end = self._rest + b"\x80"
        end += bytes(-(len(end) + 16) % 128) + (self._length * 8).to_bytes(16, "big")
        state = self._state
        for at in range(0, len(end), 128):
            state = _mix(state, end[at : at + 128])
        return state

    def digest(self) -> bytes:
        return struct.pack(">8Q", *self._done())[: self.digest_size]

    def hexdigest(self) -> str:
        return self.digest().hex()

    def copy(self) -> _Short:
        made = object.__new__(_Short)
        made.__dict__.update(self.__dict__)
        return made


class _Both:
    """MD5 and SHA-1, one after the other."""

    name, digest_size, block_size = "md5-sha1", 36, 64

    def __init__(self, data: Any = b"") -> None:
        self._parts = [hashlib.md5(data, usedforsecurity=False), hashlib.sha1(data, usedforsecurity=False)]

    def update(self, data: Any) -> None:
        for one in self._parts:
            one.update(data)

    def digest(self) -> bytes:
        return b"".join(one.digest() for one in self._parts)

    def hexdigest(self) -> str:
        return self.digest().hex()

    def copy(self) -> _Both:
        made = object.__new__(_Both)
        made._parts = [one.copy() for one in self._parts]
        return made


ABSENT = {"ripemd160", "ripemd", "rmd160", "sm3", "whirlpool", "md4", "mdc2"}


def new(real: Callable[..., Any], name: str, data: Any = b"", **kwargs: Any) -> Any:
    """`hashlib.new`, which knows the names that OpenSSL knows."""
    if not isinstance(name, str):
        return real(name, data, **kwargs)
    plain = name.lower().replace("-", "_").replace("/", "_")
    if plain in ("sha512_224", "sha512_256"):
        return _Short(int(plain[-3:]), data)
    if plain == "md5_sha1":
        return _Both(data)
    if plain in ABSENT:
        raise ValueError(f"unsupported hash type {name}: Python has it from OpenSSL, which is not inside of a plugin")
    plain = plain.removeprefix("sha2_") if plain.startswith("sha2_") else plain
    short = "sha" + plain if plain in ("224", "256", "384", "512") else plain.replace("sha_", "sha")
    if name not in hashlib.algorithms_guaranteed and short in hashlib.algorithms_guaranteed:
        name = short
    return real(name, data, **kwargs)
