"""Whether there is a CUDA device that CuPy can use, and what helps where there is none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from slomodel.errors import Diagnostic, TargetLimit

_INSTALL = "pip install 'slomodel[cuda12]', or 'slomodel[cuda13]' for a driver of CUDA 13"
_UPDATE = (
    "install or update the driver of this system, or take the CuPy that fits it (cuda12 or cuda13)"
)
_ELSEWHERE = (
    "run on a machine with an NVIDIA GPU that CUDA_VISIBLE_DEVICES does not hide, "
    "or use backend='c'"
)


def require_device() -> None:
    """Raises TargetLimit that says which is missing: CuPy, a driver, or a device."""
    try:
        import cupy
    except ImportError as error:
        message = f"backend 'cupy' needs CuPy, which cannot be imported ({error})"
        raise _limit(message, f"install it with {_INSTALL}") from None
    if cupy.is_available():
        return
    try:
        cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if "NoDevice" not in str(error):
            said = str(error).split(":")[0]
            message = f"backend 'cupy' needs NVIDIA's driver, which CuPy cannot use ({said})"
            raise _limit(message, _UPDATE) from None
    raise _limit("backend 'cupy' needs a CUDA device, and there is none here", _ELSEWHERE)


def _limit(message: str, remedy: str) -> TargetLimit:
    return TargetLimit(Diagnostic("E801", message, help=remedy))


def is_on_device(value: object) -> bool:
    """True for an array of CuPy."""
    return hasattr(value, "__cuda_array_interface__") and hasattr(value, "get")


def empty_on_device(size: int, kind: str) -> NDArray[np.float64]:
    """An array (size,) of CuPy without values."""
    import cupy

    made: NDArray[np.float64] = cupy.empty(size, kind)
    return made


def on_host(value: object) -> object:
    """The array of NumPy with the numbers of one of CuPy; anything else as it is."""
    return value.get() if is_on_device(value) else value  # type: ignore[attr-defined]
