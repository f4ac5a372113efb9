"""Misleading files: each gives its numbers, or a DomainError at once."""

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import random_array

from slomodel.errors import DomainError
from slomodel.front.data.arrays import as_model_array
from slomodel.front.data.loaders import FORMATS, numpy_file

Y = np.random.default_rng(5).normal(size=40)
MTX = "%%MatrixMarket matrix "
NEARLY = (
    *("1_000", "0x1F", "1d0", "2.5D+03", "$1", "1 # kg", "1 2", "1+2j", "(1-.5j)", "3i"),
    *("\u22121", "\u20132.5", "\u0661", "1'000", "\u00a01 000", "--1", "+-3", "1.0d-300"),
)
"""Neither numbers of a table nor names."""


def answer(path: Path, dims: str = "n") -> str | list[object]:
    try:
        return as_model_array("y", path, list(dims), allow_nonfinite=True).tolist()
    except DomainError as error:
        return str(error)


def npy(described: str, content: bytes = b"") -> bytes:
    """The bytes of an npy file whose header is this text."""
    header = described.encode() + b"\n"
    return np.lib.format.magic(1, 0) + len(header).to_bytes(2, "little") + header + content


def described(shape: object, kind: str = "<f8") -> str:
    return f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape!r}}}"


@pytest.mark.parametrize("cell", NEARLY)
def test_a_first_line_of_nearly_numbers_is_not_a_header(tmp_path: Path, cell: str) -> None:
    """As names of columns they would be silently lost."""
    path = tmp_path / "x.csv"
    for text, line in ((f"{cell}\n2\n3\n", 1), (f"2\n{cell}\n", 2), (f"a\n2\n{cell}\n", 3)):
        path.write_text(text, encoding="utf-8")
        assert f"[E316]: `{path}` has the text" in answer(path)
        assert f"in line {line}, column 1" in answer(path)
        assert "\n help: " in answer(path)


@pytest.mark.parametrize("name", ["25%", "1st", "5 min", "2019-20", "x1", "e5", "3D", "n=1", "1.a"])
def test_names_with_digits_are_names(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.csv"
    path.write_text(f"{name}\n2\n3\n", encoding="utf-8")
    assert answer(path) == [2, 3]


def test_a_comma_of_thousands_is_not_said_to_be_a_decimal_point(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text('"1,250"\n"3"\n')
    assert "write 1250, or 1.250 if the comma is a decimal point" in answer(path)
    path.write_text("1;2\n1,5;2\n")
    assert "write a decimal point: 1.5" in answer(path, "mn")


@pytest.mark.parametrize("suffix", ["csv", "mtx"])
@pytest.mark.parametrize("part", ["1", "1 ", "1,000", "1.", "1e", "(", "+1", "1j", "1#"])
def test_long_cells_take_no_more_time_than_their_length(
    tmp_path: Path, suffix: str, part: str
) -> None:
    """A pattern that tried every way to divide them would take minutes."""
    path = tmp_path / f"x.{suffix}"
    start = MTX + "array real general\n1 1\n" if suffix == "mtx" else "1\n"
    path.write_text(f"{start}{part * (120_000 // len(part))}x\n")
    assert "[E316]" in answer(path)


@pytest.mark.parametrize(
    "entry", ["1d5", "1,5", "1.5abc", "1_0", "0x10", "1 2", "1.5 % c", "--1", '"1"', "1e"]
)
def test_entries_of_a_matrix_are_whole_lines(tmp_path: Path, entry: str) -> None:
    """SciPy takes what begins a number: of 1d5 the 1."""
    path = tmp_path / "x.mtx"
    for kind in ("real", "double", "integer"):
        path.write_text(f"{MTX}array {kind} general\n% c\n\n2 1\n7\n{entry}\n")
        assert f"[E316]: `{path}` has `{entry}` in line 6" in answer(path)
        path.write_text(f"{MTX}coordinate {kind} general\n2 1 1\n1 1 {entry}\n")
        assert f"[E316]: `{path}` has `1 1 {entry}` in line 3" in answer(path)
    path.write_text(f"{MTX}array integer general\n1 1\n5.5\n")
    assert "[E316]" in answer(path)


@pytest.mark.parametrize("field", ["real", "integer", "pattern", "double"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
def test_matrices_that_scipy_writes_are_read(tmp_path: Path, field: str, symmetry: str) -> None:
    rng = np.random.default_rng(2)
    kind = np.float64 if field in ("real", "double") else np.int64
    A = (random_array((5, 5), density=0.4, rng=rng) * 100).astype(kind)
    A = A + A.T if symmetry == "symmetric" else A
    expected = A.toarray() != 0 if field == "pattern" else A.toarray()
    written = "real" if field == "double" else field
    mmwrite(tmp_path / "x.mtx", A, field=written, symmetry=symmetry, precision=17)
    text = (tmp_path / "x.mtx").read_text().replace(f" {written} ", f" {field} ", 1)
    (tmp_path / "x.mtx").write_text(text)
    np.testing.assert_array_equal(answer(tmp_path / "x.mtx", "mn"), expected)


@pytest.mark.parametrize("sizes", ["0 0", "0 3", "3 0"])
@pytest.mark.parametrize("layout", ["array", "coordinate"])
def test_a_matrix_of_nothing(tmp_path: Path, layout: str, sizes: str) -> None:
    """SciPy divides by the number of rows, which ends the process."""
    path = tmp_path / "x.mtx"
    path.write_text(f"{MTX}{layout} real general\n{sizes}{' 0' * (layout == 'coordinate')}\n")
    shape = as_model_array("y", path, ["m", "n"]).shape
    assert shape == tuple(map(int, sizes.split()))


@pytest.mark.parametrize(
    "content",
    [
        npy(described((10**30,))),
        npy(described((True,)), b"\0" * 8),
        npy(described((-1,))),
        npy(described((1.0,)), b"\0" * 8),
        npy(described((1,) * 70), b"\0" * 8),
        npy(described((10**10, 0, 10**10))),
        npy(described((10**12,))),
        npy("(" * 500),
        npy("{" * 200),
        npy("-" * 20_000),
        npy("__import__('os').abort()"),
        npy(described((3,)), b"\0" * 23),
        npy(described((3,)), b"\0" * 25),
        b"\x93NUMPY",
        b"\x80",
    ],
    ids=range(15),
)
def test_headers_that_lie(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(content)
    assert "[E305]" in answer(path)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("y.npy", content)
    told = answer(tmp_path / "x.npz")
    assert isinstance(told, list) or "[E305]" in told or "[E306]" in told


def test_only_what_would_be_unpickled_is_said_to_be_pickled(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(npy("-" * 20_000))
    assert "is damaged or of another kind" in answer(tmp_path / "x.npy")


@pytest.mark.parametrize("packed", [False, True])
def test_damage_anywhere_is_refused_or_gives_the_numbers(tmp_path: Path, packed: bool) -> None:
    made = io.BytesIO()
    (np.savez_compressed if packed else np.savez)(made, y=Y)
    np.save(tmp_path / "x.npy", Y)
    header = (tmp_path / "x.npy").read_bytes()[:128]
    rng = np.random.default_rng(packed)
    for _ in range(120):
        raw = bytearray(made.getvalue())
        raw[rng.integers(len(raw))] ^= 1 << rng.integers(8)
        (tmp_path / "x.npz").write_bytes(
            raw[: rng.integers(len(raw))] if rng.random() < 0.2 else raw
        )
        told = answer(tmp_path / "x.npz")
        assert "error[E30" in told or told == Y.tolist()
        raw = bytearray(header)
        raw[rng.integers(len(raw))] = rng.integers(256)
        (tmp_path / "x.npy").write_bytes(bytes(raw) + Y.tobytes())
        assert answer(tmp_path / "x.npy")


def test_an_archive_with_one_name_twice(tmp_path: Path) -> None:
    for second in ("y", "y.npy"):
        with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
            archive.writestr("y.npy", npy(described((1,)), b"\0" * 8))
            archive.filelist[0].filename, kept = "z.npy", archive.filelist[0].filename
            archive.NameToInfo.clear()
            archive.writestr(second, npy(described((1,)), b"\0" * 8))
            archive.filelist[0].filename = kept
        assert "has 2 arrays `y`" in answer(tmp_path / "x.npz")


def test_what_unpacks_to_far_more_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numpy_file, "_MOST_UNPACKED", 10**6)
    np.savez_compressed(tmp_path / "x.npz", y=np.zeros(200_000), few=np.zeros(1000))
    assert "[E317]" in answer(tmp_path / "x.npz")
    assert "that unpack to 1.6 MB in `y`" in answer(tmp_path / "x.npz")
    assert answer(tmp_path / "x.npz:few") == [0.0] * 1000
    np.savez(tmp_path / "x.npz", y=np.zeros(200_000))
    assert answer(tmp_path / "x.npz") == [0.0] * 200_000


@pytest.mark.parametrize("suffix", FORMATS)
def test_paths_that_are_not_files(tmp_path: Path, suffix: str) -> None:
    loop = tmp_path / f"loop{suffix}"
    loop.symlink_to(loop)
    (tmp_path / f"zero{suffix}").symlink_to("/dev/zero")
    (tmp_path / f"folder{suffix}").mkdir()
    (tmp_path / f"empty{suffix}").touch()
    for name in ("loop", "zero", "folder", "empty", "a" * 300, "a\0b"):
        assert "[E305]" in answer(tmp_path / f"{name}{suffix}")
    told = answer(tmp_path / f"no\nsuch\x1b[31m{suffix}")
    assert "[E304]" in told
    assert "\x1b" not in told
    assert f"no\ufffdsuch\ufffd[31m{suffix}`" in told.split("\n")[0]


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "x.csv").touch(0)
    assert "permission denied" in answer(tmp_path / "x.csv")


@pytest.mark.parametrize("suffix", ["csv", "json", "mtx"])
def test_text_of_another_encoding(tmp_path: Path, suffix: str) -> None:
    for encoding in ("utf-16", "utf-16-be", "utf-32"):
        mark = "" if encoding != "utf-16-be" else "\ufeff"
        (tmp_path / f"x.{suffix}").write_bytes((mark + "1\n2\n").encode(encoding))
        assert "is not UTF-8 text but UTF-16" in answer(tmp_path / f"x.{suffix}")
