"""What must be given before a model can be asked for numbers."""

from __future__ import annotations

from slomodel.errors import ShapeError
from slomodel.front.data.bind import Binding


def require_sizes(binding: Binding) -> None:
    """Raises ShapeError while the size of a dim is unknown."""
    unknown = binding.unsized
    if unknown:
        names = ", ".join(f"`{name}`" for name in unknown)
        example = f"dims={{{unknown[0]!r}: 10}}"
        raise ShapeError(f"the size of dim {names} is not known; give {example} or data")


def require_data(binding: Binding) -> None:
    """Raises ShapeError while a data array has no value or a size is unknown."""
    if binding.missing:
        listed = ", ".join(f"`{one}`" for one in binding.missing)
        raise ShapeError(f"no values for data {listed}; give them with bind(…) or data=")
    require_sizes(binding)
