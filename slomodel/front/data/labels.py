"""Labels: texts that name the positions along a dim, and index data given as such texts.

All label data over one dim share one list, the sorted union of their labels, which also gives the
dim its size.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from slomodel.codegen.runtime import on_host
from slomodel.errors import Diagnostic, DomainError
from slomodel.front.data.arrays import data_error, load_labels
from slomodel.problem import DataDeclaration, Problem

Texts: TypeAlias = NDArray[np.str_]
Labels: TypeAlias = Mapping[str, tuple[str, ...]]
"""The labels of each dim that has some, in the order of its positions."""


def texts_of(declared: DataDeclaration, value: object, folder: Path | None) -> Texts:
    """Label data as an array of texts; whole numbers are labels too. Raises DomainError."""
    name = declared.name
    if isinstance(value, str):
        message = f"data `{name}` is a text"
        raise data_error(
            "E306", message, remedy="pass pathlib.Path(…) for a file, an array of labels"
        )
    file = declared.file if value is None else None
    raw = load_labels(name, value, file, folder)
    try:
        array = np.asarray(on_host(raw))
    except ValueError as error:
        raise data_error("E306", f"data `{name}` is not an array: {error}", remedy="") from None
    if array.ndim != len(declared.shape):
        wanted = f"[{', '.join(map(str, declared.shape))}]" if declared.shape else "scalar"
        message = f"data `{name}` is {wanted}, and an array of shape {array.shape} was given"
        raise data_error("E307", message, remedy="pass one label for each element")
    texts = [_text(declared, one, k) for k, one in enumerate(array.ravel().tolist())]
    return np.array(texts, dtype=str).reshape(array.shape)


def _text(declared: DataDeclaration, one: object, k: int) -> str:
    if isinstance(one, bytes):
        one = one.decode("utf-8", "replace")
    if isinstance(one, str) and one.strip():
        return one
    if isinstance(one, (int, float)) and math.isfinite(one):
        return str(int(one)) if float(one).is_integer() else repr(float(one))
    message = f"data `{declared.name}` holds no label at {k}, but {one!r:.40}"
    raise DomainError(Diagnostic("E306", message, declared.span, help="give a text for each"))


def labels_of(problem: Problem, texts: Mapping[str, Texts], known: Labels) -> Labels:
    """The labels of each dim: those known before, otherwise the sorted union of what data hold."""
    result: dict[str, tuple[str, ...]] = {}
    for dim, names in _by_dim(problem).items():
        given = [texts[name] for name in names if name in texts]
        if dim in known:
            result[dim] = tuple(known[dim])
        elif given:
            result[dim] = tuple(_ordered(set(np.concatenate([one.ravel() for one in given]))))
    return result


def positions_of(problem: Problem, texts: Mapping[str, Texts], labels: Labels) -> dict[str, object]:
    """The positions of label data along their dims. Raises DomainError for an unknown label."""
    result: dict[str, object] = {}
    declarations = {one.name: one for one in problem.data}
    for dim, names in _by_dim(problem).items():
        place = {text: k for k, text in enumerate(labels.get(dim, ()))}
        for name in names:
            if name in texts:
                result[name] = _positions(declarations[name], dim, texts[name], place)
    return result


def checked(labels: object, problem: Problem) -> Labels:
    """The labels that a user gives for dims. Raises DomainError for anything else."""
    example = "write labels={'C': ['a', 'b']}"
    if not isinstance(labels, Mapping):
        kind = type(labels).__name__
        raise data_error("E602", f"labels= takes lists of texts by dim, not {kind}", remedy=example)
    dims = _by_dim(problem)
    result: dict[str, tuple[str, ...]] = {}
    for dim, given in labels.items():
        if dim not in dims:
            listed = ", ".join(f"`{one}`" for one in dims) or "none"
            raise data_error(
                "E309", f"no data have labels of dim `{dim}`", remedy=f"there is {listed}"
            )
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise data_error("E602", f"labels of `{dim}` are a list of texts", remedy=example)
        own = tuple(map(str, given))
        if len(set(own)) < len(own):
            twice = next(one for one in own if own.count(one) > 1)
            raise data_error(
                "E602", f"labels of `{dim}` have `{twice}` twice", remedy="give each once"
            )
        result[dim] = own
    return result


def _by_dim(problem: Problem) -> dict[str, list[str]]:
    """The names of the label data over each dim."""
    result: dict[str, list[str]] = {}
    for one in problem.data:
        if one.has_labels:
            result.setdefault(str(one.domain), []).append(one.name)
    return result


def _ordered(texts: Collection[str]) -> list[str]:
    """Labels in order: by number if all of them are numbers."""
    try:
        return sorted(map(str, texts), key=float)
    except ValueError:
        return sorted(map(str, texts))


def _positions(
    declared: DataDeclaration, dim: str, texts: Texts, place: Mapping[str, int]
) -> NDArray[np.float64]:
    distinct, inverse = np.unique(texts, return_inverse=True)
    for text in distinct:
        if text not in place:
            raise _unknown(declared, dim, str(text), texts, list(place))
    own = np.array([place[str(text)] for text in distinct], dtype=np.float64)
    return own[inverse].reshape(texts.shape) if texts.size else np.zeros(texts.shape)


def _unknown(
    declared: DataDeclaration, dim: str, text: str, texts: Texts, known: Sequence[str]
) -> DomainError:
    index = ", ".join(str(int(k)) for k in np.argwhere(texts == text)[0])
    place = f"{declared.name}[{index}]" if index else declared.name
    message = f"`{place}` is `{text}`, which is not a label of `{dim}`"
    close = get_close_matches(text, known, n=1)
    guess = f"did you mean `{close[0]}`? " if close else ""
    remedy = f"{guess}labels stay those of the first data; labels={{{dim!r}: […]}} gives others"
    return DomainError(Diagnostic("E312", message, declared.span, help=remedy))
