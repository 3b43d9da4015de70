"""`hashlib.pbkdf2_hmac` and `hashlib.scrypt` in plain Python, for where Python is built without OpenSSL."""

from __future__ import annotations

import hashlib
import hmac
import struct
from typing import Any

MOST_SCRYPT = 1 << 15
"""The most blocks of memory that scrypt may mix here, where a block takes a fraction of a millisecond."""


def pbkdf2_hmac(hash_name: str, password: Any, salt: Any, iterations: int, dklen: int | None = None) -> bytes:
    if isinstance(password, str) or isinstance(salt, str):
        raise TypeError("a bytes-like object is required, not 'str'")
    if iterations < 1:
        raise ValueError("iteration value must be greater than 0.")
    keyed, size = hmac.new(bytes(password), digestmod=hash_name), hashlib.new(hash_name).digest_size
    wanted = size if dklen is None else dklen
    if wanted < 1:
        raise ValueError("key length must be greater than 0.")

    def once(data: bytes) -> bytes:
        copy = keyed.copy()
        copy.update(data)
        return copy.digest()

    key = b""
    for block in range(1, -(-wanted // size) + 1):
        last = once(bytes(salt) + struct.pack(">I", block))
        mixed = int.from_bytes(last, "big")
        for _ in range(iterations - 1):
            last = once(last)
            mixed ^= int.from_bytes(last, "big")
        key += mixed.to_bytes(size, "big")
    return key[:wanted]


def scrypt(password: Any, *, salt: Any, n: int, r: int, p: int, maxmem: int = 0, dklen: int = 64) -> bytes:
    if isinstance(password, str) or isinstance(salt, str):
        raise TypeError("a bytes-like object is required, not 'str'")
    if n < 2 or n & (n - 1):
        raise ValueError("n must be a power of 2.")
    if r < 1 or p < 1 or dklen < 1:
        raise ValueError("r, p and dklen must be greater than 0.")
    if n * r * p > MOST_SCRYPT:
        raise ValueError(f"scrypt with n={n}, r={r} and p={p} takes too long inside of a plugin")
    if 128 * r * (n + p + 2) > (maxmem or 32 << 20):
        raise ValueError("Invalid parameter combination for n, r, p, maxmem.")
    words = 32 * r
    blocks = pbkdf2_hmac("sha256", password, salt, 1, p * 128 * r)
    mixed = b""
    for at in range(p):
        block = list(struct.unpack_from(f"<{words}I", blocks, at * 128 * r))
        seen = []
        for _ in range(n):
            seen.append(block)
            block = _mix(block, r)
        for _ in range(n):
            other = seen[block[words - 16] & (n - 1)]
            block = _mix([one ^ two for one, two in zip(block, other)], r)
        mixed += struct.pack(f"<{words}I", *block)
    return pbkdf2_hmac("sha256", password, mixed, 1, dklen)


def _mix(block: list[int], r: int) -> list[int]:
    last, made = block[-16:], []
    for at in range(0, len(block), 16):
        last = _salsa([one ^ two for one, two in zip(last, block[at : at + 16])])
        made.append(last)
    return [word for one in (*made[::2], *made[1::2]) for word in one]


TURNS = [
    (4, 0, 12, 7), (8, 4, 0, 9), (12, 8, 4, 13), (0, 12, 8, 18), (9, 5, 1, 7), (13, 9, 5, 9), (1, 13, 9, 13), (5, 1, 13, 18),
    (14, 10, 6, 7), (2, 14, 10, 9), (6, 2, 14, 13), (10, 6, 2, 18), (3, 15, 11, 7), (7, 3, 15, 9), (11, 7, 3, 13), (15, 11, 7, 18),
    (1, 0, 3, 7), (2, 1, 0, 9), (3, 2, 1, 13), (0, 3, 2, 18), (6, 5, 4, 7), (7, 6, 5, 9), (4, 7, 6, 13), (5, 4, 7, 18),
    (11, 10, 9, 7), (8, 11, 10, 9), (9, 8, 11, 13), (10, 9, 8, 18), (12, 15, 14, 7), (13, 12, 15, 9), (14, 13, 12, 13), (15, 14, 13, 18),
] * 4  # fmt: skip
"""The steps of Salsa20/8: which word is changed, by the sum of which two, turned by how many bits."""


def _salsa(block: list[int]) -> list[int]:
    words = list(block)
    for to, one, two, turn in TURNS:
        added = (words[one] + words[two]) & 0xFFFFFFFF
        words[to] ^= (added << turn | added >> 32 - turn) & 0xFFFFFFFF
    return [(one + two) & 0xFFFFFFFF for one, two in zip(words, block)]
