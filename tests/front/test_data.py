"""Data from files and callers: reading, casting, and the text of each error."""

import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from slomodel.errors import DomainError, SourceText, Span
from slomodel.front.data.arrays import as_model_array, file_reference, load_array, load_reference

A = np.arange(6.0).reshape(2, 3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.savez(tmp_path / "all.npz", A=A, y=np.array([1, 2], dtype=np.int16))
    np.savez_compressed(tmp_path / "small.npz", A=A)
    np.save(tmp_path / "one.npy", A)
    return tmp_path


@pytest.mark.parametrize("text", ["all.npz", "all.npz:A", "./small.npz", "one.npy"])
def test_reference_reads_its_array(folder: Path, text: str) -> None:
    read = load_reference(file_reference(text, "A"), folder)
    np.testing.assert_array_equal(read, A)


def test_a_key_other_than_the_name(folder: Path) -> None:
    reference = file_reference("all.npz:y", "labels")
    assert (reference.path, reference.key) == ("all.npz", "y")
    assert load_reference(reference, folder).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/etc/passwd", "absolute path"),
        ("C:\\data\\x.npz", "absolute path"),
        ("c:/data/x.npz", "absolute path"),
        ("\\\\host\\x.npz", "absolute path"),
        ("~/x.npz", "absolute path"),
        ("../x.npz", "leaves the folder"),
        ("data/../../x.npz:A", "leaves the folder"),
        ("data\\..\\..\\x.npz", "leaves the folder"),
        ("", "does not name a file"),
        (":A", "does not name a file"),
        ("x.npz:", "does not name a file"),
        ("x.npy:A", "without keys"),
        ("x.MTX:A", "without keys"),
    ],
)
def test_paths_of_a_model_stay_in_its_folder(text: str, words: str) -> None:
    span = Span(SourceText(f'data A from "{text}"', "m.slo"), 12, 14 + len(text))
    with pytest.raises(DomainError, match=rf"E301(.|\n)*{words}(.|\n)*m\.slo:1:13"):
        file_reference(text, "A", span)


def test_model_text_reads_no_files() -> None:
    with pytest.raises(DomainError, match=r"E302.*one\.npy(.|\n)*pass the array with `data=`"):
        load_reference(file_reference("one.npy", "A"), None)


def test_files_that_are_not_there_or_lack_the_key(folder: Path) -> None:
    with pytest.raises(DomainError, match=r"E304(.|\n)*did you mean `all\.npz`"):
        load_array(folder / "al.npz", "A")
    with pytest.raises(DomainError, match=r"E304(.|\n)*no folder"):
        load_array(folder / "deep" / "x.npz", "A")
    with pytest.raises(DomainError, match=r"E304.*no array `Y`(.|\n)*it holds `A`, `y`"):
        load_array(folder / "all.npz", "Y")
    with pytest.raises(DomainError, match="E303"):
        load_array(folder / "all.pkl", "A")


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return Path.touch, (tmp_path / "sprung",)

    trap = np.array([Trap()], dtype=object)
    np.save(tmp_path / "trap.npy", trap, allow_pickle=True)
    np.savez(tmp_path / "trap.npz", A=trap)
    (tmp_path / "plain.npy").write_bytes(pickle.dumps(Trap()))
    for name in ("trap.npy", "trap.npz", "plain.npy"):
        with pytest.raises(DomainError, match="never done"):
            load_array(tmp_path / name, "A")
    assert not (tmp_path / "sprung").exists()


def test_damaged_files(folder: Path) -> None:
    raw = (folder / "small.npz").read_bytes()
    damaged = {
        "cut.npz": raw[: len(raw) // 2],
        "flipped.npz": raw[:60] + bytes(255 - b for b in raw[60:120]) + raw[120:],
        "empty.npz": b"",
        "empty.npy": b"",
        "cut.npy": (folder / "one.npy").read_bytes()[:-9],
        "swapped.npz": (folder / "one.npy").read_bytes(),
        "swapped.npy": raw,
        "text.npy": b"1,2,3\n",
        "huge.npy": np.lib.format.magic(1, 0)
        + b"\x4f\x00"
        + b"{'descr': '<f8', 'fortran_order': False, 'shape': (9000000000000000,)}".ljust(78)
        + b"\n",
    }
    for name, content in damaged.items():
        (folder / name).write_bytes(content)
        with pytest.raises(DomainError, match="E305") as caught:
            load_array(folder / name, "A")
        assert name in str(caught.value)
    with zipfile.ZipFile(folder / "other.npz", "w") as archive:
        archive.writestr("A", "not an array")
    with pytest.raises(DomainError, match=r"E30[456]"):
        as_model_array("A", load_array(folder / "other.npz", "A"), ["m", "n"])
    with pytest.raises(DomainError, match="E305"):
        load_array(folder / "x\0.npz", "A")
    (folder / "dir.npz").mkdir()
    with pytest.raises(DomainError, match="E305"):
        load_array(folder / "dir.npz", "A")


frozen = A.copy()
frozen.flags.writeable = False


@pytest.mark.parametrize(
    "value",
    [
        A,
        A.tolist(),
        np.asfortranarray(A),
        np.repeat(A, 2, axis=1)[:, ::2],
        A[::-1, ::-1][::-1, ::-1],
        frozen,
        A.astype(">f8"),
        *(A.astype(kind) for kind in ("f4", "f2", "u1", "i2", "i8", "longdouble")),
        np.asmatrix(A),
    ],
)
def test_every_kind_of_numbers_is_cast_and_copied(value: object) -> None:
    array = as_model_array("A", value, ["m", "n"])
    assert type(array) is np.ndarray
    assert array.dtype == np.dtype("f8")
    assert array.flags.c_contiguous
    assert array.flags.writeable
    np.testing.assert_array_equal(array, A)
    if isinstance(value, np.ndarray):
        assert not np.shares_memory(array, value)


def test_bool_scalar_and_path(folder: Path) -> None:
    assert as_model_array("mask", [True, False], ["n"]).tolist() == [1.0, 0.0]
    assert as_model_array("lam", 3, []).shape == ()
    assert as_model_array("lam", np.float32(0.5), []).item() == 0.5
    np.testing.assert_array_equal(as_model_array("A", folder / "all.npz", ["m", "n"]), A)


@pytest.mark.parametrize(
    ("value", "dims", "words"),
    [
        (A * 1j, ["m", "n"], "complex values"),
        (np.array(["a"]), ["n"], "text values"),
        (np.array(["2020-01-01"], "M8[D]"), ["n"], "date values"),
        ([[1.0], [1.0, 2.0]], ["m", "n"], "is not an array"),
        (None, [], "`v` is None(.|\n)*leave it out"),
        ({"a": 1}, ["n"], "dict is not an array of numbers"),
        (csr_array(A), ["m", "n"], r"\.toarray\(\)"),
        (np.ma.array(A, mask=A > 2), ["m", "n"], "masked array"),
        ("file.npz", ["n"], r"pathlib\.Path"),
        (A[:, :1], ["N"], r"\[N\](.|\n)*\(2, 1\)(.|\n)*pass v\.ravel\(\)"),
        (A[:1], ["N"], r"pass v\.ravel\(\)"),
        (np.ones((1, 1)), ["N"], r"pass v\.ravel\(\)"),
        ([2.0], [], r"is a scalar(.|\n)*pass v\.item\(\)"),
        (A, ["N"], r"has the shape \[N\], and an array of shape \(2, 3\) was given"),
        (2.0, ["N"], r"shape \(\) was given"),
    ],
)
def test_values_that_are_refused(value: object, dims: list[str], words: str) -> None:
    with pytest.raises(DomainError, match=words) as caught:
        as_model_array("v", value, dims)
    assert caught.value.diagnostics[0].code in ("E306", "E307")


def test_values_that_are_not_finite_are_counted_and_placed() -> None:
    wrong = A.copy()
    wrong[0, 2], wrong[1, 1] = np.inf, np.nan
    with pytest.raises(DomainError, match=r"E308.*2 values that are.*`A\[0, 2\]`, which is inf"):
        as_model_array("A", wrong, ["m", "n"])
    with pytest.raises(DomainError, match=r"E308.*1 value that is.*`y\[1\]`, which is nan"):
        as_model_array("y", wrong[1], ["n"])
    with pytest.raises(DomainError, match=r"E308.*`lam` is nan"):
        as_model_array("lam", np.nan, [])
    with pytest.raises(DomainError, match="E308"):
        as_model_array("big", [np.longdouble("1e400")], ["n"])
    kept = as_model_array("A", wrong, ["m", "n"], allow_nonfinite=True)
    np.testing.assert_array_equal(kept, wrong)
