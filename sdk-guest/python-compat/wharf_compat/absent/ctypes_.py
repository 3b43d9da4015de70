"""`ctypes`: a plugin has no libraries of the machine. What asks only for the sizes of C's types gets those of WebAssembly."""

from __future__ import annotations

from typing import Any

SIZES = {
    "c_bool": 1, "c_char": 1, "c_byte": 1, "c_ubyte": 1, "c_int8": 1, "c_uint8": 1, "c_short": 2, "c_ushort": 2, "c_int16": 2,
    "c_uint16": 2, "c_int": 4, "c_uint": 4, "c_long": 4, "c_ulong": 4, "c_int32": 4, "c_uint32": 4, "c_longlong": 8,
    "c_ulonglong": 8, "c_int64": 8, "c_uint64": 8, "c_float": 4, "c_double": 8, "c_size_t": 4, "c_ssize_t": 4, "c_void_p": 4,
    "c_char_p": 4, "c_wchar_p": 4, "c_wchar": 4,
}  # fmt: skip
ArgumentError = type("ArgumentError", (Exception,), {})


class _Type(type):
    def __mul__(cls, count: int) -> Any:
        return _Type(f"{cls.__name__}_Array_{count}", (Structure,), {"size": cls.size * count})  # type: ignore[attr-defined]


class Structure(metaclass=_Type):
    """A type of C. Its values are not made."""

    size = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise OSError(f"`ctypes.{type(self).__name__}` cannot be used inside of a plugin, which has no libraries of the machine")


Union = Array = Structure
for _name, _size in SIZES.items():
    globals()[_name] = _Type(_name, (Structure,), {"size": _size})


def sizeof(of: Any) -> int:
    if not of.size:
        raise OSError(f"the size of `{of.__name__}` is not known inside of a plugin, which has no libraries of the machine")
    return int(of.size)


def find_library(name: str) -> None:
    """Finds no library: a plugin has no libraries of the machine."""


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"`ctypes.{name}` cannot be used inside of a plugin, which has no libraries of the machine")


def _refused(*args: Any, **kwargs: Any) -> Any:
    raise OSError("there are no libraries of the machine inside of a plugin")


CDLL = PyDLL = WinDLL = CFUNCTYPE = PYFUNCTYPE = POINTER = pointer = byref = cast = addressof = create_string_buffer = _refused
