"""The files of numpy.save and numpy.savez; nothing in them is unpickled."""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from slomodel.front.data.loaders.content import Raw, Refusal, lacking


def read_npy(file: BinaryIO, _key: str) -> Raw:
    """The array of an npy file."""
    loaded: object = np.load(file, allow_pickle=False)
    if isinstance(loaded, np.ndarray):
        return loaded
    raise Refusal("E305", "is not what its ending `.npy` says", "name it .npz")


def read_npz(file: BinaryIO, key: str) -> Raw:
    """The array `key` of an npz file."""
    loaded: object = np.load(file, allow_pickle=False)
    if not isinstance(loaded, np.lib.npyio.NpzFile):
        raise Refusal("E305", "is not what its ending `.npz` says", "name it .npy")
    with loaded:
        if key not in loaded.files:
            raise lacking("array", key, loaded.files)
        member: Raw = loaded[key]
        return member
