"""Intervals of nodes that one proof computes more than once: for parts, at the centre, by cells.

The interval of a node is a function of the node and of the intervals of its operands. Within
`caching_ranges` these form the key: operands by identity, after intervals of equal content have
been replaced by the first of them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from slomodel.bounds.arithmetic.interval import Interval
from slomodel.bounds.effort import MOST_NUMBERS
from slomodel.ir.expr import Expr, Recur

_MOST_COMPARED = 2**15
"""Largest number of elements of an interval that is compared by content, in about 0.1 ms."""


@dataclass(slots=True)
class RangeCache:
    """The intervals last used, of at most `MOST_NUMBERS` elements in all.

    An entry holds the operands of its key, so no other object can have their identity.
    """

    _entries: OrderedDict[Hashable, tuple[tuple[Interval, ...], Sequence[Interval]]] = field(
        default_factory=OrderedDict
    )
    _unique: set[int] = field(default_factory=set)
    _numbers: int = 0

    def ranges(
        self,
        node: Expr,
        operands: Sequence[Interval],
        sizes: Mapping[str, int],
        batch: int,
        compute: Callable[[], Sequence[Interval]],
    ) -> Sequence[Interval]:
        """The intervals of a node (of all its states for a loop), computed where not known."""
        unique = tuple(self._first_equal(a) for a in operands)
        if None in unique:
            return compute()
        # The states of a loop are computed together, whichever is read.
        of = node.loop if isinstance(node, Recur) else node
        key = (of, batch, tuple(map(id, unique)), tuple(sizes.items()))
        own = [a for a in unique if a is not None]
        return self._entry(key, lambda: tuple(map(_with_own_arrays, compute())), own)

    def _first_equal(self, a: Interval) -> Interval | None:
        """The first interval with the elements of `a`; None for one that is too long to compare."""
        if id(a) in self._unique:
            return a
        if a.lo.size > _MOST_COMPARED:
            return None
        key = (a.shape, a.lo.tobytes(), None if a.is_point else a.hi.tobytes())
        return self._entry(key, lambda: (a,), ())[0]

    def _entry(
        self, key: Hashable, compute: Callable[[], Sequence[Interval]], operands: Sequence[Interval]
    ) -> Sequence[Interval]:
        known = self._entries.get(key)
        if known is not None:
            self._entries.move_to_end(key)
            return known[0]
        result = tuple(compute())
        self._entries[key] = (result, operands)
        self._unique.update(map(id, result))
        self._numbers += sum(a.lo.size for a in result)
        while self._numbers > MOST_NUMBERS:
            _, (oldest, _) = self._entries.popitem(last=False)
            self._unique.difference_update(map(id, oldest))
            self._numbers -= sum(a.lo.size for a in oldest)
        return result


def _with_own_arrays(a: Interval) -> Interval:
    """The interval with arrays that no interval of another node has: in sums of products, equal
    arrays stand for one factor.
    """
    return a.each(lambda array: array.view())


_CACHE: ContextVar[RangeCache | None] = ContextVar("range cache", default=None)


def cache_in_use() -> RangeCache | None:
    """The cache of the current proof."""
    return _CACHE.get()


@contextmanager
def caching_ranges() -> Iterator[None]:
    """Compute equal intervals once within the block."""
    token = _CACHE.set(_CACHE.get() or RangeCache())
    try:
        yield
    finally:
        _CACHE.reset(token)
