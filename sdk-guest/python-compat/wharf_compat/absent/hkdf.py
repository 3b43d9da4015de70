"""`cryptography`'s HKDF (RFC 5869) with SHA-256: the SDK derives a key with it when it starts, even over stdio."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any


class AlreadyFinalized(Exception):
    """A key is derived once."""


class InvalidKey(Exception):
    """The derived key is another one."""


class HKDF:
    """Derives a key from a secret."""

    def __init__(self, algorithm: Any, length: int, salt: bytes | None, info: bytes | None, backend: Any = None) -> None:
        known = object.__getattribute__(algorithm, "__dict__").get("_of", ("", type(algorithm).__name__))[1]
        if known != "SHA256":
            raise RuntimeError(f"HKDF with {known} cannot be used inside of a plugin: cryptography is compiled for one kind of machine")
        if length > 255 * 32:
            raise ValueError("Cannot derive keys larger than 8160 octets.")
        self.length, self.salt, self.info, self.used = length, salt or bytes(32), info or b"", False

    def derive(self, key_material: bytes) -> bytes:
        if self.used:
            raise AlreadyFinalized("Context was already finalized.")
        self.used = True
        key = hmac.new(self.salt, key_material, hashlib.sha256).digest()
        made = block = b""
        number = 1
        while len(made) < self.length:
            block = hmac.new(key, block + self.info + bytes([number]), hashlib.sha256).digest()
            made, number = made + block, number + 1
        return made[: self.length]

    def verify(self, key_material: bytes, expected_key: bytes) -> None:
        if not hmac.compare_digest(self.derive(key_material), expected_key):
            raise InvalidKey


__all__ = ["HKDF"]
