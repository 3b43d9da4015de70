"""`mmap`: a file cannot be mapped into a plugin's memory, so a map for reading is a copy of the file."""

from __future__ import annotations

import os
from typing import Any

ACCESS_DEFAULT, ACCESS_READ, ACCESS_WRITE, ACCESS_COPY = 0, 1, 2, 3
MAP_SHARED, MAP_PRIVATE, PROT_READ, PROT_WRITE = 1, 2, 1, 2
PAGESIZE = ALLOCATIONGRANULARITY = 1 << 16
error = OSError


class mmap(bytearray):
    """What a file has when it is opened, to read."""

    def __new__(cls, fileno: int, length: int, flags: int = MAP_SHARED, prot: int = PROT_READ | PROT_WRITE,
                access: int = ACCESS_DEFAULT, offset: int = 0) -> Any:  # fmt: skip
        return super().__new__(cls)

    def __init__(self, fileno: int, length: int, flags: int = MAP_SHARED, prot: int = PROT_READ | PROT_WRITE,
                 access: int = ACCESS_DEFAULT, offset: int = 0) -> None:  # fmt: skip
        if fileno < 0 or not (access in (ACCESS_READ, ACCESS_COPY) or flags & MAP_PRIVATE or not prot & PROT_WRITE):
            raise OSError("a file cannot be mapped for writing inside of a plugin: read and write it instead")
        size = os.fstat(fileno).st_size
        if length == 0 and size == offset:
            raise ValueError("cannot mmap an empty file")
        before = os.lseek(fileno, 0, os.SEEK_CUR)
        os.lseek(fileno, offset, os.SEEK_SET)
        data = bytearray()
        left = length or size - offset
        while left and (piece := os.read(fileno, min(left, 1 << 20))):
            data += piece
            left -= len(piece)
        os.lseek(fileno, before, os.SEEK_SET)
        super().__init__(data)
        self._at = 0

    def read(self, count: int | None = None) -> bytes:
        end = len(self) if count is None or count < 0 else self._at + count
        found = bytes(self[self._at : end])
        self._at += len(found)
        return found

    def seek(self, at: int, whence: int = 0) -> int:
        self._at = at + (0, self._at, len(self))[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        return len(self)

    def flush(self, *_: Any) -> None:
        pass

    def close(self) -> None:
        self.clear()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
