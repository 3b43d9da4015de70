"""`mmap`: a file cannot be mapped into a plugin's memory, so a map for reading is a copy of the file."""

from __future__ import annotations

import os
from typing import Any

ACCESS_DEFAULT, ACCESS_READ, ACCESS_WRITE, ACCESS_COPY = 0, 1, 2, 3
MAP_SHARED, MAP_PRIVATE, PROT_READ, PROT_WRITE = 1, 2, 1, 2
PAGESIZE = ALLOCATIONGRANULARITY = 1 << 16
error = OSError


class mmap:
    """What a file has when it is opened, to read; or memory without a file."""

    def __init__(self, fileno: int, length: int, flags: int = MAP_SHARED, prot: int = PROT_READ | PROT_WRITE,
                 access: int = ACCESS_DEFAULT, offset: int = 0) -> None:  # fmt: skip
        self._at, self.closed, self._data = 0, False, bytearray(length)
        self._writes = access != ACCESS_READ and bool(prot & PROT_WRITE)
        if fileno < 0:
            if length <= 0:
                raise ValueError("cannot mmap an empty file")
            return
        if self._writes and access != ACCESS_COPY and not flags & MAP_PRIVATE:
            raise OSError("a file cannot be mapped for writing inside of a plugin: read and write it instead")
        size = os.fstat(fileno).st_size
        if length == 0 and size == offset:
            raise ValueError("cannot mmap an empty file")
        if length and offset + length > size:
            raise ValueError("mmap length is greater than file size")
        before = os.lseek(fileno, 0, os.SEEK_CUR)
        os.lseek(fileno, offset, os.SEEK_SET)
        data = bytearray()
        left = length or size - offset
        while left and (piece := os.read(fileno, min(left, 1 << 20))):
            data += piece
            left -= len(piece)
        os.lseek(fileno, before, os.SEEK_SET)
        self._data = data

    def _open(self) -> bytearray:
        if self.closed:
            raise ValueError("mmap closed or invalid")
        return self._data

    def _change(self) -> bytearray:
        data = self._open()
        if not self._writes:
            raise TypeError("mmap can't modify a readonly memory map.")
        return data

    def __len__(self) -> int:
        return len(self._open())

    def __getitem__(self, at: Any) -> Any:
        found = self._open()[at]
        return bytes(found) if isinstance(at, slice) else found

    def __setitem__(self, at: Any, value: Any) -> None:
        if isinstance(at, slice) and len(self._open()[at]) != len(value):
            raise IndexError("mmap slice assignment is wrong size")
        self._change()[at] = value

    def __buffer__(self, flags: int) -> memoryview:
        data = memoryview(self._open())
        return data if self._writes else data.toreadonly()

    def __iter__(self) -> Any:
        return (bytes([one]) for one in self._open())

    def __contains__(self, one: Any) -> bool:
        return one in self._open()

    def find(self, sub: Any, start: int | None = None, end: int | None = None) -> int:
        return self._open().find(sub, self._at if start is None else start, len(self._data) if end is None else end)

    def rfind(self, sub: Any, start: int | None = None, end: int | None = None) -> int:
        return self._open().rfind(sub, self._at if start is None else start, len(self._data) if end is None else end)

    def read(self, count: int | None = None) -> bytes:
        end = len(self) if count is None or count < 0 else self._at + count
        found = bytes(self._data[self._at : end])
        self._at += len(found)
        return found

    def read_byte(self) -> int:
        if self._at >= len(self):
            raise ValueError("read byte out of range")
        self._at += 1
        return self._data[self._at - 1]

    def readline(self) -> bytes:
        end = self._open().find(b"\n", self._at)
        return self.read((end + 1 if end >= 0 else len(self._data)) - self._at)

    def write(self, data: Any) -> int:
        given = bytes(data)
        if self._at + len(given) > len(self._change()):
            raise ValueError("data out of range")
        self._data[self._at : self._at + len(given)] = given
        self._at += len(given)
        return len(given)

    def seek(self, at: int, whence: int = 0) -> int:
        to = at + (0, self._at, len(self))[whence]
        if not 0 <= to <= len(self._data):
            raise ValueError("seek out of range")
        self._at = to
        return to

    def tell(self) -> int:
        self._open()
        return self._at

    def size(self) -> int:
        return len(self)

    def flush(self, *_: Any) -> None:
        self._open()

    def close(self) -> None:
        self.closed, self._data = True, bytearray()

    def __enter__(self) -> Any:
        self._open()
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"`mmap.{name}` does not exist inside of a plugin, which has a copy of the file")
