"""`cryptography`'s HKDF (RFC 5869) with SHA-256: the SDK derives a key with it when it starts, even over stdio."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any


class HKDF:
    """Derives a key from a secret."""

    def __init__(self, algorithm: Any, length: int, salt: bytes | None, info: bytes | None, backend: Any = None) -> None:
        self.length, self.salt, self.info = length, salt or bytes(32), info or b""

    def derive(self, key_material: bytes) -> bytes:
        key = hmac.new(self.salt, key_material, hashlib.sha256).digest()
        made = block = b""
        number = 1
        while len(made) < self.length:
            block = hmac.new(key, block + self.info + bytes([number]), hashlib.sha256).digest()
            made, number = made + block, number + 1
        return made[: self.length]


__all__ = ["HKDF"]
