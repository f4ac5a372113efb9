"""Arrays from files and from users, checked and cast to float64."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from slomodel.codegen.runtime import aligned_empty
from slomodel.errors import Diagnostic, DomainError, Span
from slomodel.front.data.loaders import (
    FORMATS,
    OF_NUMBERS,
    Content,
    FileFormat,
    Raw,
    StoredArray,
    Table,
    UnreadableFile,
    complete_rows,
    count_dropped,
    printable,
    shown,
)
from slomodel.front.data.user_arrays import no_memory, user_array
from slomodel.problem import DataDeclaration, FileReference

Array: TypeAlias = NDArray[np.float64]
Read = TypeVar("Read")

_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


def file_reference(text: str, name: str, span: Span | None = None) -> FileReference:
    """The path and key that `from "text"` gives in the declaration of `name`.

    Raises DomainError for a path that leaves the folder of the model.
    """
    if _DRIVE.match(text) or text.startswith(("/", "\\", "~")):
        raise data_error("E301", f"`{text}` is an absolute path", span, _ELSEWHERE)
    path, colon, key = text.rpartition(":")
    if not colon:
        path, key = text, ""
    if not path or (colon and not key):
        raise data_error(
            "E301", f"`{text}` does not name a file", span, 'write "file" or "file:key"'
        )
    if ".." in PurePosixPath(path.replace("\\", "/")).parts:
        raise data_error("E301", f"`{text}` leaves the folder of the model", span, _ELSEWHERE)
    return FileReference(path, _key(path, key, name, span), span)


def load_reference(reference: FileReference, base_dir: Path | None, vector: str = "") -> Content:
    """Read the file of a declaration; `base_dir` is the model's folder, None for model text.

    The column named `vector` of a table may be read though other columns are not numeric.
    """
    if base_dir is None:
        message = f"a model given as text cannot read files, and this one has `{reference.path}`"
        raise data_error("E302", message, reference.span, "pass the array with `data=`")
    path, complete = base_dir / reference.path, reference.complete
    return _load_vector(path, reference.key, vector, reference.span, complete)


def _load_vector(
    path: Path,
    key: str,
    vector: str,
    span: Span | None = None,
    complete: tuple[str, ...] | None = None,
) -> Content:
    """The array under a key; without one, the column named `vector` of a table that has it."""
    known = _format(path.name)
    if vector and not key and known is not None and known.keys == "columns":
        try:
            return load_array(path, vector, span, complete=complete)
        except DomainError as error:
            if error.diagnostics[0].code != "E304":
                raise
            absent = error
        try:
            return load_array(path, key, span, complete=complete)
        except DomainError as error:
            # In a table of several columns the name is wrong, and not the text in another column.
            others = error.diagnostics[0].help.startswith(OF_NUMBERS)
            raise absent if others else error from None
    return load_array(path, key, span, complete=complete)


def dropped_rows(data: Iterable[DataDeclaration], folder: Path) -> dict[str, tuple[int, int]]:
    """How many rows with missing values are left out, of how many, by the path of the file."""
    files = {one.file.path: one.file.complete for one in data if one.file is not None}
    result: dict[str, tuple[int, int]] = {}
    for path, complete in files.items():
        if complete is not None:
            with (folder / path).open("rb") as file:
                result[path] = count_dropped(file, complete)
    return result


def load_labels(
    name: str, value: object, file: FileReference | None, base_dir: Path | None
) -> object:
    """Label data as given, or read from a path or from the file of the declaration."""
    if file is not None:
        if base_dir is None:
            return load_reference(file, base_dir)
        own = (base_dir / file.path, file.key or name, file.span)
        return load_array(*own, labels=True, complete=file.complete)
    if not isinstance(value, Path):
        return value
    path, key = _parts(value)
    return load_array(path, key or name, labels=True)


def load_sparse(
    name: str, path: Path | None, file: FileReference | None, base_dir: Path | None
) -> Content | StoredArray:
    """Sparse data from a path, or else from the file of the declaration."""
    if path is None:
        assert file is not None
        if base_dir is None:
            return load_reference(file, base_dir)  # raises the error for model text
        return load_array(base_dir / file.path, file.key, file.span, sparse=True)
    path, key = _parts(path)
    return load_array(path, _key(str(path), key, name, None), sparse=True)


@overload
def load_array(
    path: Path,
    key: str,
    span: Span | None = None,
    *,
    labels: bool = False,
    complete: tuple[str, ...] | None = None,
) -> Content: ...


@overload
def load_array(
    path: Path, key: str, span: Span | None = None, *, sparse: Literal[True]
) -> Content | StoredArray: ...


def load_array(
    path: Path,
    key: str,
    span: Span | None = None,
    *,
    labels: bool = False,
    sparse: bool = False,
    complete: tuple[str, ...] | None = None,
) -> Content | StoredArray:
    """The array named `key` in a file, or the file's only array; nothing is unpickled.

    Rows of a table without a value in one of the columns `complete` are left out.

    Files that contain a single table give a Table. With `labels` the elements may be texts, with
    `sparse` only stored entries may be read. Raises DomainError.
    """

    def content(known: FileFormat, raw: BinaryIO) -> Content | StoredArray:
        file = raw if complete is None else complete_rows(raw, complete)
        if sparse and known.read_sparse is not None:
            return known.read_sparse(file, key)
        read = known.read_labels if labels and known.read_labels is not None else known.read
        return read(file, key)

    return _opened(path, content, span)


def arrays_in_file(path: Path, declared: Collection[str]) -> dict[str, object]:
    """The path of each array or column of a file that has a declared name. Raises DomainError."""
    names = _opened(path, lambda known, file: known.names(file) if known.names else ())
    found: dict[str, object] = {
        name: path.with_name(f"{path.name}:{name}") for name in names if name in declared
    }
    if not found:
        message = f"`{printable(str(path))}` names no data of the model"
        held = f"it holds {', '.join(f'`{shown(one)}`' for one in names)}" if names else ""
        wanted = f"the data are {', '.join(f'`{one}`' for one in declared)}" if declared else ""
        raise data_error("E304", message, None, "; ".join(filter(None, (held, wanted))))
    return found


def _opened(
    path: Path, read: Callable[[FileFormat, BinaryIO], Read], span: Span | None = None
) -> Read:
    """What `read(format, file)` reads from a file. Raises DomainError."""
    known = _format(path.name)
    named = f"`{printable(str(path))}`"
    if known is None:
        listed = ", ".join(suffix[1:] for suffix in FORMATS)
        message = f"{named} is not of a kind that can be read"
        raise data_error("E303", message, span, f"the kinds are {listed}; use numpy.savez")
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):  # Opening a pipe would block.
            reason = "cannot be read: it is not a regular file"
            raise UnreadableFile("E305", reason, "copy it to one")
        with path.open("rb") as file:
            return read(known, file)
    except UnreadableFile as refusal:
        raise data_error(refusal.code, f"{named} {refusal.reason}", span, refusal.remedy) from None
    except FileNotFoundError:
        raise data_error("E304", f"there is no file {named}", span, _nearby(path)) from None
    except (OSError, ValueError, MemoryError) as error:
        raise data_error("E305", f"cannot read {named}: {_reason(error)}", span) from None


def as_model_array(
    name: str, value: object, dims: Sequence[str], *, allow_nonfinite: bool = False
) -> Array:
    """`value` as a fresh float64 array in C order with one axis for each of `dims`.

    `dims` are the declared sizes as messages show them, none for a scalar. A path is read; it may
    end in `:key`. A table of one column serves as a vector, a table of one number as a scalar.
    """
    if isinstance(value, str):
        message = f"data `{name}` is a text"
        raise data_error(
            "E306", message, None, "pass pathlib.Path(…) for a file, an array for values"
        )
    if isinstance(value, Path):
        value = _load(name, value, name if len(dims) == 1 else "")
    raw = _of_table(name, value, dims) if isinstance(value, Table) else value
    raw = user_array(f"data `{name}`", raw)
    if raw.ndim != len(dims):
        raise axes_error(name, raw.shape, dims)
    try:
        array: Array = aligned_empty(raw.shape, np.dtype(np.float64))
    except MemoryError:
        raise no_memory(f"data `{name}`", raw.shape) from None
    with np.errstate(over="ignore"):
        array[...] = raw
    if not allow_nonfinite:
        _check_finite(name, array)
    return array


_ELSEWHERE = "paths are relative to the model's file; pass other files with `--data` or `data=`"


def data_error(code: str, message: str, span: Span | None = None, remedy: str = "") -> DomainError:
    """The error of data that do not fit their declaration."""
    return DomainError(Diagnostic(code, message, span, help=remedy))


def _reason(error: OSError | ValueError | MemoryError) -> str:
    if isinstance(error, MemoryError):
        return "it does not fit in memory"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return "a file cannot have this name"


def _format(file_name: str) -> FileFormat | None:
    return FORMATS.get(PurePosixPath(file_name).suffix.lower())


def _key(path: str, key: str, name: str, span: Span | None) -> str:
    """The key under which data `name` are read, given the `key` written after the path, if any."""
    known = _format(path)
    if key and known is not None and known.keys == "none":
        raise data_error("E301", f"`{path}` holds one array, without keys", span, f'write "{path}"')
    return key if known is not None and known.keys != "arrays" else key or name


def _load(name: str, path: Path, vector: str) -> Content:
    """The content of a user-supplied path, which may be `file:key`: see `_load_vector`."""
    path, key = _parts(path)
    return _load_vector(path, _key(str(path), key, name, None), vector)


def _parts(path: Path) -> tuple[Path, str]:
    """The file and the key of a path that may be `file:key`."""
    file, colon, key = path.name.rpartition(":")
    if colon and key and _format(file) is not None:
        return path.with_name(file), key
    return path, ""


def _of_table(name: str, table: Table, dims: Sequence[str]) -> Raw:
    rows, columns = table.values.shape
    if len(dims) == 1 and columns == 1:
        return table.values[:, 0]
    if len(dims) == 1 and table.names.count(name) == 1:
        return table.values[:, table.names.index(name)]
    if not dims and (rows, columns) == (1, 1):
        return table.values.reshape(())
    if len(dims) == 2:
        return table.values
    wanted = f"has the shape [{', '.join(dims)}]" if dims else "is a scalar"
    message = f"data `{name}` {wanted}, and the file is a table of shape {table.values.shape}"
    raise data_error("E307", message, None, _table_remedy(name, table.names, len(dims)))


def _table_remedy(name: str, names: Sequence[str], rank: int) -> str:
    if rank > 2:
        return "arrays of more than two axes are read from npz, npy and json"
    if names:
        chosen = name if name in names else names[0]
        return f'take one column: "file:{chosen}"'
    return "a vector is one column" if rank else "a scalar is one number"


def _nearby(path: Path) -> str:
    try:
        names = [p.name for p in path.parent.iterdir()]
    except OSError:
        return f"there is no folder `{printable(str(path.parent))}` either"
    close = get_close_matches(path.name, names, n=1)
    return (
        f"did you mean `{printable(close[0])}`?"
        if close
        else "paths are relative to the model's file"
    )


def axes_error(name: str, shape: tuple[int, ...], dims: Sequence[str]) -> DomainError:
    """The error for an array with another number of axes than declared."""
    wanted = f"has the shape [{', '.join(dims)}]" if dims else "is a scalar"
    remedy = ""
    if len(dims) == 1 and shape and sum(size != 1 for size in shape) <= 1:
        remedy = f"pass {name}.ravel()"
    elif not dims and all(size == 1 for size in shape):
        remedy = f"pass {name}.item()"
    elif not dims:
        remedy = f"pass one number, or declare its axes: `data {name}[n]`"
    else:
        remedy = f"pass an array of {len(dims)} axes"
    message = f"data `{name}` {wanted}, and an array of shape {shape} was given"
    return data_error("E307", message, None, remedy)


def _check_finite(name: str, array: Array) -> None:
    wrong = ~np.isfinite(array)
    count = int(wrong.sum())
    if not count:
        return
    remedy = "clean the data, or leave entries out with `masked(E, mask)`"
    first = tuple(int(k) for k in np.unravel_index(int(wrong.argmax()), array.shape))
    if not first:
        raise data_error("E308", f"data `{name}` is {array[()]}", None, "pass a finite number")
    values = "1 value that is" if count == 1 else f"{count} values that are"
    place = f"`{name}[{', '.join(map(str, first))}]`"
    message = f"data `{name}` has {values} not finite, first {place}, which is {array[first]}"
    raise data_error("E308", message, None, remedy)
