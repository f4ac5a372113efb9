"""The files of numpy.save and numpy.savez; nothing in them is unpickled."""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from slomodel.front.data.loaders.content import Raw, Refusal, lacking

_NPY, _ZIP, _PICKLE = b"\x93NUMPY", b"PK", b"\x80"


def read_npy(file: BinaryIO, _key: str) -> Raw:
    """The array of an npy file."""
    _check_kind(file, "npy")
    loaded: object = np.load(file, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return loaded
    raise Refusal("E305", "is not what its ending `.npy` says", "name it .npz")


def read_npz(file: BinaryIO, key: str) -> Raw:
    """The array `key` of an npz file."""
    _check_kind(file, "npz")
    loaded: object = np.load(file, allow_pickle=False)
    if not isinstance(loaded, np.lib.npyio.NpzFile):
        raise Refusal("E305", "is not what its ending `.npz` says", "name it .npy")
    with loaded:
        if key not in loaded.files:
            raise lacking("array", key, loaded.files)
        member: Raw = loaded[key]
        return member


def _check_kind(file: BinaryIO, kind: str) -> None:
    """NumPy takes a file that begins like no array for a pickle; only pickles begin so."""
    begin = file.read(len(_NPY))
    file.seek(0)
    if begin and not begin.startswith((_NPY, _ZIP, _PICKLE)):
        raise Refusal("E305", f"is no {kind} file", "write it with numpy.save or numpy.savez")
