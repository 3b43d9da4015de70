"""`rpds` in plain Python: the persistent collections that `jsonschema` and `referencing` use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any


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

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

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


class HashTrieSet(Set):  # type: ignore[type-arg]
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
        return f"HashTrieSet({set(self._items)!r})"

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


class List:
    """A linked list that is shared by its tails; here a tuple."""

    __slots__ = ("_items",)

    def __init__(self, *value: Any) -> None:
        only = value[0] if len(value) == 1 else value
        self._items = tuple(only) if isinstance(only, Iterable) else (only,)

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


class Queue(List):
    """A queue; here a tuple as well."""

    __slots__ = ()

    def enqueue(self, one: Any) -> Queue:
        return Queue((*self._items, one))

    def dequeue(self) -> Queue:
        return Queue(self._items[1:])

    @property
    def peek(self) -> Any:
        return self.first

    @property
    def is_empty(self) -> bool:
        return not self._items


__all__ = ["HashTrieMap", "HashTrieSet", "List", "Queue"]
