"""Read-only mappings over SQLite: each look-up is a query, nothing is held in memory.

In: queries. Out: a `Mapping` that knows its keys, in their order, without reading its values.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Generic, TypeVar

MOST_OFFERED = 1000  # keys, to a notebook
Key = TypeVar("Key")
Value = TypeVar("Value")


class LookUp(Mapping[Key, Value], Generic[Key, Value]):
    """A mapping whose values are looked up one by one.

    Args:
        name: Of what its keys are, for the error of an unknown one.
        find: Returns the value of a key, None if there is no such key.
        keys: Streams the keys.
        count: Returns how many there are.
        nearest: Returns a key like an unknown one, for the error; None if there is none.
    """

    def __init__(
        self,
        name: str,
        find: Callable[[Any], Value | None],
        keys: Callable[[], Iterator[Key]],
        count: Callable[[], int],
        nearest: Callable[[Any], Key | None] = lambda key: None,
    ) -> None:
        self._name, self._find, self._keys, self._count, self._nearest = name, find, keys, count, nearest

    def __getitem__(self, key: Key) -> Value:
        value = self._find(key)
        if value is None:
            near = self._nearest(key)
            raise KeyError(f"no {self._name} {key!r}" + ("" if near is None else f" (the nearest is {near!r})"))
        return value

    def __contains__(self, key: object) -> bool:
        return self._find(key) is not None

    def __iter__(self) -> Iterator[Key]:
        return self._keys()

    def __len__(self) -> int:
        return self._count()

    def _ipython_key_completions_(self) -> list[Key]:
        # What a notebook offers after the opening bracket; see IPython's guide to tab completion.
        return list(islice(self, MOST_OFFERED))

    def __repr__(self) -> str:
        return f"<{len(self)} by {self._name}>"
