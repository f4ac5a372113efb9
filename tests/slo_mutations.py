"""Texts close to models: tokens dropped, doubled, swapped or inserted."""

import re
from collections.abc import Sequence
from pathlib import Path

from hypothesis import strategies as st

ROOT = Path(__file__).parent
GOOD = sorted((ROOT.parent / "models").glob("*.slo"))
BAD = sorted((ROOT / "bad_models").glob("*.slo"))
TEXTS = [path.read_text(encoding="utf-8") for path in (*GOOD * (len(BAD) // len(GOOD)), *BAD)]
"""The models of the repository; every second one is good."""

_PIECES = re.compile(r"#[^\n]*|\w+|\s+|\.?\*\*?|[<>=!]=|\.T|[^\w\s]")
_WORDS = """
model dim data var let fn check minimize maximize init from for in if and or not None pi e
symmetric mask uniform normal zeros ones eye lambda class __import__ exec while int double
v0 t0 out x y A n m i j 0 1 2 3 -1 0.5 1e3 1e-3 1e999 10**12 1000000000000 1_0 0x1 2x .5 5.
sum(x) sum(A,axis=0) mean(x) prod(x) max(x) min(x,y) sumsq(x) norm2(x) fro(A) logsumexp(x)
softmax(x) dot(x,y) outer(x,y) trace(A) diag(x) diag(A) eye(n) zeros(n) ones(n,m) reshape(x,n,1)
concat(x,y) masked(x,y) einsum("ij,j->i",A,x) where(x>0,x,y) clip(x,0,1) huber(x) relu(x) exp(x)
log(x) sqrt(x) abs(x) inv(A) det(A) solve(A,x) range(n) x[0] x[-1] x[1:] A[:,0] A[i,j] x[None,:]
[x,x] [[1,2],[3,4]] return y[...] ...
x[:,None] A' x'*y x^y 1/0 0/0 log(0) sqrt(-1) .* ./ .^ ** .T // /* "" "a.npz"
"""
_FOR = [f"{name}(x[i] for i in n)" for name in ("sum", "mean", "prod", "max", "logsumexp")]
_SIGNS = "+-*/@^'()[]{},:;=<>!&|~\"#.\\$%?` \r\n\t\0\ufeff\u00a0\u2028²ᵀ−×ℓ٣😀\ud800"
_EXTRA = [*_WORDS.split(), *_FOR, *_SIGNS, "\r\n", "# c"]


def pieces(text: str) -> list[str]:
    """The text cut into words, signs, spaces and comments."""
    return _PIECES.findall(text)


def mutated() -> st.SearchStrategy[str]:
    """A model, good or bad, with one to four changes."""
    number = st.integers(0, 10**6)
    change = st.tuples(st.integers(0, 6), number, number, number)
    return st.builds(changed, number, st.lists(change, min_size=1, max_size=4))


def changed(model: int, changes: Sequence[tuple[int, int, int, int]]) -> str:
    """A model of the repository after some changes, each a kind and three numbers to choose by."""
    found = pieces(TEXTS[model % len(TEXTS)])
    for kind, a, b, c in changes:
        found = _change(found or [" "], kind, a, b, c)
    return "".join(found)


def _change(found: list[str], kind: int, a: int, b: int, c: int) -> list[str]:
    k, other = a % len(found), b % len(found)
    low, high = sorted((k, other))
    if kind == 0:
        return found[:k] + found[k + 1 :]
    if kind == 1:
        return [*found[:k], _EXTRA[b % len(_EXTRA)], *found[k:]]
    if kind == 2:
        return [*found[:k], _EXTRA[b % len(_EXTRA)], *found[k + 1 :]]
    if kind == 3:
        equal = [piece for piece in found if piece.isidentifier() == found[k].isidentifier()]
        return [*found[:k], equal[b % len(equal)], *found[k + 1 :]]
    if kind == 4:
        return found[:high] + found[low : low + 20] + found[high:]
    if kind == 5:
        guest = pieces(TEXTS[c % len(TEXTS)])
        return found[:k] + guest[b % max(1, len(guest)) :]
    return found[:low] + found[low + (c % 4) :]
