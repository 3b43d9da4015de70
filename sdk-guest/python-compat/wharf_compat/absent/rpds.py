"""`rpds` in plain Python: the persistent collections that `jsonschema` and `referencing` use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def _view(name: str, of: Any) -> Any:
    return type(name, (_View,), {})(of)


class _View:
    """What `keys`, `values` and `items` return."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def __iter__(self) -> Iterator[Any]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)

    def __contains__(self, one: object) -> bool:
        return one in self._of

    def __eq__(self, other: object) -> bool:
        return self._of == (other._of if isinstance(other, _View) else other)

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Any) -> Any:
        return HashTrieSet(self._of & set(other))

    def __or__(self, other: Any) -> Any:
        return HashTrieSet(self._of | set(other))

    def __sub__(self, other: Any) -> Any:
        return HashTrieSet(self._of - set(other))

    def __repr__(self) -> str:
        ends = "[]" if type(self).__name__ != "keys_view" else "{}"
        return f"{type(self).__name__}({ends[0]}{', '.join(map(repr, self._of))}{ends[1]})"


class HashTrieMap(Mapping):  # type: ignore[type-arg]
    """A dict that is copied by each change."""

    __slots__ = ("_items",)

    def __init__(self, value: Any = (), **more: Any) -> None:
        self._items = dict(value, **more)

    @classmethod
    def convert(cls, value: Any) -> HashTrieMap:
        return value if isinstance(value, cls) else cls(value)

    @classmethod
    def fromkeys(cls, keys: Iterable[Any], value: Any = None) -> HashTrieMap:
        return cls(dict.fromkeys(keys, value))

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HashTrieMap) and self._items == other._items

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def keys(self) -> Any:
        return _view("keys_view", self._items.keys())

    def values(self) -> Any:
        return _view("values_view", self._items.values())

    def items(self) -> Any:
        return _view("items_view", self._items.items())

    def __repr__(self) -> str:
        return f"HashTrieMap({self._items!r})"

    def insert(self, key: Any, value: Any) -> HashTrieMap:
        return HashTrieMap({**self._items, key: value})

    def remove(self, key: Any) -> HashTrieMap:
        rest = dict(self._items)
        del rest[key]
        return HashTrieMap(rest)

    def discard(self, key: Any) -> HashTrieMap:
        return self.remove(key) if key in self._items else self

    def update(self, *others: Any, **more: Any) -> HashTrieMap:
        items = dict(self._items)
        for one in others:
            items.update(one)
        items.update(more)
        return HashTrieMap(items)


class HashTrieSet:
    """A set that is copied by each change."""

    __slots__ = ("_items",)

    def __init__(self, value: Iterable[Any] = ()) -> None:
        self._items = frozenset(value)

    def __contains__(self, one: object) -> bool:
        return one in self._items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return f"HashTrieSet({{{', '.join(map(repr, self._items))}}})"

    def insert(self, one: Any) -> HashTrieSet:
        return HashTrieSet(self._items | {one})

    def remove(self, one: Any) -> HashTrieSet:
        if one not in self._items:
            raise KeyError(one)
        return HashTrieSet(self._items - {one})

    def discard(self, one: Any) -> HashTrieSet:
        return HashTrieSet(self._items - {one})

    def update(self, *others: Iterable[Any]) -> HashTrieSet:
        return HashTrieSet(self._items.union(*others))

    def _with(self, other: Any, how: str) -> Any:
        if not isinstance(other, HashTrieSet):
            raise TypeError(f"'{type(other).__name__}' object is not an instance of 'HashTrieSet'")
        return getattr(self._items, how)(other._items)

    def intersection(self, other: Any) -> HashTrieSet:
        return HashTrieSet(self._with(other, "intersection"))

    def union(self, other: Any) -> HashTrieSet:
        return HashTrieSet(self._with(other, "union"))

    def difference(self, other: Any) -> HashTrieSet:
        return HashTrieSet(self._with(other, "difference"))

    def symmetric_difference(self, other: Any) -> HashTrieSet:
        return HashTrieSet(self._with(other, "symmetric_difference"))


def _operator(how: str, makes: bool) -> Any:
    def operate(self: HashTrieSet, other: Any) -> Any:
        if not isinstance(other, HashTrieSet) and (makes or not isinstance(other, (set, frozenset))):
            return NotImplemented
        found = getattr(self._items, how)(other._items if isinstance(other, HashTrieSet) else other)
        return HashTrieSet(found) if makes else found

    return operate


for _name in ("and", "or", "sub", "xor"):
    setattr(HashTrieSet, f"__{_name}__", _operator(f"__{_name}__", True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(HashTrieSet, f"__{_name}__", _operator(f"__{_name}__", False))


class List:
    """A linked list that is shared by its tails; here a tuple."""

    __slots__ = ("_items",)

    def __init__(self, *value: Any) -> None:
        only = value[0] if len(value) == 1 else value
        if not hasattr(only, "__iter__"):
            raise TypeError(f"'{type(only).__name__}' object is not reversible")
        self._items = tuple(only)

    @property
    def first(self) -> Any:
        if not self._items:
            raise IndexError("empty list has no first element")
        return self._items[0]

    @property
    def rest(self) -> List:
        return List(self._items[1:])

    def push_front(self, one: Any) -> List:
        return List((one, *self._items))

    def drop_first(self) -> List:
        if not self._items:
            raise IndexError("empty list has no first element")
        return List(self._items[1:])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __reversed__(self) -> List:
        return List(self._items[::-1])

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, List) and self._items == other._items

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return f"List({list(self._items)!r})"


class Queue:
    """A queue; here a tuple as well."""

    __slots__ = ("_items",)

    def __init__(self, *value: Any) -> None:
        self._items = tuple(value[0] if len(value) == 1 else value)

    def enqueue(self, one: Any) -> Queue:
        return Queue((*self._items, one))

    def dequeue(self) -> Queue:
        if not self._items:
            raise IndexError("dequeued an empty queue")
        return Queue(self._items[1:])

    def peek(self) -> Any:
        if not self._items:
            raise IndexError("peeked an empty queue")
        return self._items[0]

    def is_empty(self) -> bool:
        return not self._items

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Queue) and self._items == other._items

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return f"Queue({list(self._items)!r})"


class Stack:
    """A stack; here a tuple as well, with the top at its end."""

    __slots__ = ("_items",)

    def __init__(self, *value: Any) -> None:
        self._items = tuple(value[0] if len(value) == 1 else value)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"`rpds.Stack.{name}` does not exist inside of a plugin, which has the part of rpds that jsonschema uses")

    def __repr__(self) -> str:
        return f"Stack({list(self._items)!r})"


__all__ = ["HashTrieMap", "HashTrieSet", "List", "Queue", "Stack"]
