"""Files written by numpy.save and numpy.savez; nothing in them is unpickled."""

from __future__ import annotations

import zipfile
from typing import BinaryIO

import numpy as np

from slomodel.front.data.loaders.content import (
    Raw,
    StoredArray,
    UnreadableFile,
    in_bytes,
    missing_entry,
    shown,
)

_NPY, _ZIP, _PICKLE = b"\x93NUMPY", b"PK", b"\x80"
_MOST_UNPACKED, _MOST_TIMES = 1_000_000_000, 100
"""Limits against zip bombs: bytes from which the second number limits the factor of expansion."""


def read_npy(file: BinaryIO, _key: str) -> Raw:
    """The array of an npy file."""
    loaded = _loaded(file, "npy")
    if not isinstance(loaded, np.ndarray):
        raise UnreadableFile("E305", "is not what its ending `.npy` says", "name it .npz")
    if file.read(1):
        raise UnreadableFile("E305", "has data after its array", "write one array, by numpy.save")
    return loaded


def read_npz(file: BinaryIO, key: str) -> Raw:
    """The array `key` of an npz file."""
    loaded = _loaded(file, "npz")
    if not isinstance(loaded, np.lib.npyio.NpzFile):
        raise UnreadableFile("E305", "is not what its ending `.npz` says", "name it .npy")
    with loaded:
        count = loaded.files.count(key)
        if not count:
            raise missing_entry("array", key, loaded.files)
        if count > 1:
            raise UnreadableFile(
                "E305", f"has {count} arrays `{shown(key)}`", "give each its own name"
            )
        archive = loaded.zip
        assert archive is not None
        _check_packing(archive, key)
        try:
            member: Raw = loaded[key]
        except MemoryError:
            raise
        except Exception as error:
            raise _damaged(error) from None
        return member


def npz_names(file: BinaryIO) -> tuple[str, ...]:
    """The names of the arrays in an npz file."""
    loaded = _loaded(file, "npz")
    return tuple(loaded.files) if isinstance(loaded, np.lib.npyio.NpzFile) else ()


def read_sparse_npz(file: BinaryIO, key: str) -> StoredArray | Raw:
    """The matrix that `scipy.sparse.save_npz` wrote, or the array `key` of another npz file."""
    from scipy.sparse import coo_array, csc_array, csr_array

    loaded = _loaded(file, "npz")
    names = set(loaded.files) if isinstance(loaded, np.lib.npyio.NpzFile) else set()
    file.seek(0)
    if not {"format", "shape", "data"} <= names:
        return read_npz(file, key)
    parts = {name: _rewound(file, name) for name in names if name != "_is_array"}
    kind = np.asarray(parts["format"]).item()
    layout = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
    shape = tuple(int(size) for size in np.asarray(parts["shape"]).ravel())
    try:
        if layout in ("csr", "csc"):
            of = csr_array if layout == "csr" else csc_array
            result = of((parts["data"], parts["indices"], parts["indptr"]), shape=shape).tocoo()
        elif layout == "coo":
            places = parts["coords"] if "coords" in parts else (parts["row"], parts["col"])
            result = coo_array((parts["data"], tuple(places)), shape=shape)
        else:
            remedy = "save .tocsr() or .tocoo()"
            raise UnreadableFile("E305", f"has a matrix in format `{shown(layout)}`", remedy)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise _damaged(error) from None
    return StoredArray(result.data, tuple(result.coords), shape)


def _rewound(file: BinaryIO, key: str) -> Raw:
    file.seek(0)
    return read_npz(file, key)


def _loaded(file: BinaryIO, kind: str) -> object:
    # NumPy reports a pickle for any unknown header; only real pickles get that message.
    begin = file.read(len(_NPY))
    file.seek(0)
    if not begin:
        raise UnreadableFile("E305", "is empty")
    if not begin.startswith((_NPY, _ZIP, _PICKLE)):
        raise UnreadableFile(
            "E305", f"is not a valid {kind} file", "write it with numpy.save or numpy.savez"
        )
    try:
        return np.load(file, allow_pickle=False)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # NumPy parses the header as Python.
        raise _damaged(error) from None


def _damaged(error: Exception) -> UnreadableFile:
    if "allow_pickle=False" in str(error) or "pickled" in str(error):
        reason = "needs unpickling, which can run code and is never done"
        return UnreadableFile(
            "E305", reason, "save arrays of numbers, with numpy.save or numpy.savez"
        )
    return UnreadableFile("E305", "is damaged or of another kind", "write it again")


def _check_packing(archive: zipfile.ZipFile, key: str) -> None:
    """Check the uncompressed size, since a few bytes may expand to any number of them."""
    for one in archive.infolist():
        if one.filename in (key, f"{key}.npy") and one.file_size > max(
            _MOST_UNPACKED, _MOST_TIMES * one.compress_size
        ):
            sizes = f"{in_bytes(one.compress_size)} that unpack to {in_bytes(one.file_size)}"
            raise UnreadableFile(
                "E317", f"has {sizes} in `{shown(key)}`", "write it with numpy.savez"
            )
