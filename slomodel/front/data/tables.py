"""Tables as data: objects with named columns, such as the DataFrames of pandas and polars."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Protocol, runtime_checkable

from slomodel.errors import Diagnostic, DomainError


@runtime_checkable
class Table(Protocol):
    """An object with named columns."""

    @property
    def columns(self) -> Iterable[object]: ...

    def __getitem__(self, name: object) -> object: ...


def columns_of(data: object, declared: Collection[str]) -> dict[str, object]:
    """Data by name: a mapping as it is, of a table the columns that have a declared name.

    Raises DomainError for anything else.
    """
    if isinstance(data, Mapping):
        return {str(name): value for name, value in data.items()}
    if isinstance(data, Table):
        return {str(name): data[name] for name in data.columns if str(name) in declared}
    kind = type(data).__name__
    message = f"data= takes a dict of arrays by name or a DataFrame, not an object of {kind}"
    raise DomainError(Diagnostic("E602", message, help="write data={'name': value}"))
