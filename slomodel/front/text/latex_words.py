"""Names, numbers and brackets in LaTeX."""

from __future__ import annotations

import re
from dataclasses import dataclass

SUM, ATOM = 1, 5
"""How strongly a text binds: a sum needs brackets in a product, an atom nowhere."""

_GREEK = frozenset(
    (
        *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa"),
        *("lambda", "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi"),
        *("omega", "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi"),
        *("Psi", "Omega"),
    )
)
_SHORT = {"lam": "lambda", "eps": "epsilon", "lambda_": "lambda"}
_PARTS = re.compile(r"(.*?[^\W\d_])_?(\d+)")


@dataclass(frozen=True, slots=True)
class TeX:
    """A piece of LaTeX and how strongly it binds."""

    text: str
    strength: int


def bracketed(piece: TeX, least: int) -> str:
    """The text, in brackets where it binds less strongly than `least`."""
    return piece.text if piece.strength >= least else rf"\left({piece.text}\right)"


def name_of(name: str) -> str:
    """A name: Greek letters by their names, digits at the end as an index."""
    found = _PARTS.fullmatch(name)
    if found and name not in _SHORT:
        return f"{_word(found[1])}_{{{found[2]}}}"
    head, _, rest = name.partition("_")
    if head and rest and name not in _SHORT:
        return rf"{_word(head)}_{{\mathrm{{{_escaped(rest)}}}}}"
    return _word(name)


def _word(word: str) -> str:
    known = _SHORT.get(word, word)
    if known in _GREEK:
        return rf"\{known}"
    return word if len(word) == 1 and word != "_" else rf"\mathrm{{{_escaped(word)}}}"


def _escaped(word: str) -> str:
    return word.replace("_", r"\_")


def number_of(text: str) -> TeX:
    """A number as it is written; an exponent as a power of ten."""
    mantissa, _, exponent = text.lower().partition("e")
    if not exponent:
        return TeX(text, ATOM)
    power = rf"10^{{{int(exponent)}}}"
    return TeX(power if mantissa in ("1", "1.") else rf"{mantissa} \cdot {power}", 2)
