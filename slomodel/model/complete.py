"""What must be given before a model can be asked for numbers."""

from __future__ import annotations

from slomodel.errors import Diagnostic, ShapeError
from slomodel.front.data.bind import Binding


def require_sizes(binding: Binding) -> None:
    """Raises ShapeError while the size of a dim is unknown."""
    unknown = binding.unsized
    if unknown:
        names = ", ".join(f"`{name}`" for name in unknown)
        remedy = f"give dims={{{unknown[0]!r}: 10}}, or data with such an axis"
        raise ShapeError(Diagnostic("E706", f"the size of dim {names} is not known", help=remedy))


def require_data(binding: Binding) -> None:
    """Raises ShapeError while a data array has no value or a size is unknown."""
    if binding.missing:
        listed = ", ".join(f"`{one}`" for one in binding.missing)
        first = binding.missing[0]
        remedy = f"give compile data={{{first!r}: …}}, or make a model with bind({first}=…)"
        raise ShapeError(Diagnostic("E706", f"no values for data {listed}", help=remedy))
    require_sizes(binding)
