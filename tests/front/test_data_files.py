"""Text files of data: each layout that is read, and the whole sentence of each refusal."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.io import mmwrite
from scipy.sparse import coo_array

import slomodel
from slomodel.errors import DomainError
from slomodel.front.data.arrays import as_model_array, file_reference, load_reference
from slomodel.front.data.loaders import FORMATS, content, csv_file, json_file, matrix_market

A = np.random.default_rng(3).normal(size=(4, 3)) * 10.0 ** np.arange(-8, 4).reshape(4, 3)
MTX = "%%MatrixMarket matrix "


SVMLIGHT = (".svmlight", ".svm", ".libsvm")  # sparse, and tested with sparse data


def read(folder: Path, file: str, text: str | bytes, dims: str, name: str = "y") -> object:
    """What a model gets for data `name` of these dims, one letter each, from such a file."""
    path = folder / file.partition(":")[0]
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return as_model_array(name, folder / file, list(dims), allow_nonfinite=True).tolist()


def refusal(folder: Path, file: str, text: str | bytes, dims: str = "mn") -> str:
    """The message for such a file, with its path cut to the name."""
    with pytest.raises(DomainError) as caught:
        read(folder, file, text, dims)
    return str(caught.value).replace(str(folder / "x"), "x")


@pytest.mark.parametrize("suffix", [one for one in FORMATS if one not in SVMLIGHT])
def test_every_format_gives_back_what_was_written(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"all{suffix}"
    header = "\t".join("abc") if suffix == ".tsv" else ""
    written = {
        ".npz": lambda: np.savez(path, A=A),
        ".npy": lambda: np.save(path, A),
        ".csv": lambda: np.savetxt(path, A, delimiter=","),
        ".tsv": lambda: np.savetxt(path, A, delimiter="\t", header=header, comments=""),
        ".json": lambda: path.write_text(json.dumps({"A": A.tolist(), "b": [1]})),
        ".mtx": lambda: mmwrite(path, A, precision=17),
    }
    written[suffix]()
    array = as_model_array("A", path, ["m", "n"])
    assert array.flags.c_contiguous
    assert array.flags.writeable
    np.testing.assert_array_equal(array, A)
    reference = file_reference(path.name, "A")
    array = as_model_array("A", load_reference(reference, tmp_path), ["m", "n"])
    np.testing.assert_array_equal(array, A)
    missing = tmp_path / f"al{suffix}"
    with pytest.raises(DomainError, match=rf"E304(.|\n)*did you mean `all{suffix}`"):
        as_model_array("A", missing, ["m", "n"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("1;2\r\n3;4", [[1, 2], [3, 4]]),
        ("1\t2\r3\t4\r", [[1, 2], [3, 4]]),
        ("\ufeff1, 2\n\n3 ,4\n\n", [[1, 2], [3, 4]]),
        ("# a, b\na,b\n# c\n1,2\n", [[1, 2]]),
        ('"a;b"\t"c,d"\n"1"\t2\n', [[1, 2]]),
        ('"a;b","c\td"\n1,2\n', [[1, 2]]),
        ("a b;c\n+1e3;-.5E-2\n", [[1000, -0.005]]),
        ("-inf,INF\nInfinity,1.\n", [[-np.inf, np.inf], [np.inf, 1]]),
        ("17976931348623157e292,4e-324\n", [[1.7976931348623157e308, 5e-324]]),
        ("5\n", [[5]]),
    ],
)
def test_layouts_of_a_table(tmp_path: Path, text: str, expected: object) -> None:
    assert read(tmp_path, "x.csv", text, "mn") == expected


def test_nan_is_read_however_it_is_spelled(tmp_path: Path) -> None:
    for file, text in (("x.csv", "nan\nNaN\n-NAN\n"), ("x.json", "[NaN, NaN, NaN]")):
        assert np.isnan(read(tmp_path, file, text, "n")).all()
    with pytest.raises(DomainError, match=r"E308.*3 values.*first `y\[0\]`, which is nan"):
        as_model_array("y", tmp_path / "x.csv", ["n"])


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("x.csv:y", "x,y\n1,2\n3,4\n", [2, 4]),
        ("x.csv:y z", '"who", "y z"\n"Smith, J",2\n"a ""b""",4\n', [2, 4]),
        ("x.csv:2019", "id,2019\n1,2\n3,4\n", [2, 4]),
        ("x.csv", "2\n4\n", [2, 4]),
        ("x.csv", "y\n2\n4\n", [2, 4]),
        ("x.json:b", '{"y": 1, "b": [2, 4]}', [2, 4]),
        ("x.json", '{"y": [2, 4], "b": "text"}', [2, 4]),
        ("x.json", "[2, 4]", [2, 4]),
        ("x.json", "\ufeff[true, false]\r\n", [1, 0]),
        ("x.json", "[12345678901234567890123, 1]", [12345678901234567890123.0, 1]),
        ("x.json", "[]", []),
        ("x.mtx", MTX + "array integer general\n2 1\n2\n4\n", [2, 4]),
        ("x.mtx", "\ufeff" + MTX + "coordinate real general\r\n2 1 1\r\n2 1 4\r\n", [0, 4]),
    ],
)
def test_vectors(tmp_path: Path, file: str, text: str, expected: object) -> None:
    assert read(tmp_path, file, text, "n") == expected
    loaded = load_reference(file_reference(file, "y"), tmp_path)
    assert as_model_array("y", loaded, ["n"]).tolist() == expected


def test_a_table_keeps_its_axes_where_a_matrix_is_declared(tmp_path: Path) -> None:
    assert read(tmp_path, "x.csv", "2\n4\n", "mn") == [[2], [4]]
    assert read(tmp_path, "x.csv:b", "a,b\n1,2\n", "mn") == [[2]]
    assert read(tmp_path, "x.csv:b", "a,b\n1,2\n", "") == 2
    assert read(tmp_path, "x.json", "2.5", "") == 2.5
    assert read(tmp_path, "x.json", '{"y": [[[1], [2]]]}', "abc") == [[[1], [2]]]


def test_sparse_matrices_become_dense(tmp_path: Path) -> None:
    rows, columns = np.array([0, 2, 3]), np.array([1, 0, 2])
    mmwrite(
        tmp_path / "x.mtx", coo_array((A[rows, columns], (rows, columns)), (4, 3)), precision=17
    )
    expected = np.zeros((4, 3))
    expected[rows, columns] = A[rows, columns]
    np.testing.assert_array_equal(as_model_array("y", tmp_path / "x.mtx", ["m", "n"]), expected)
    symmetric = MTX + "coordinate pattern symmetric\n% c\n2 2 2\n1 1\n2 1\n"
    assert read(tmp_path, "x.mtx", symmetric, "mn") == [[1, 1], [1, 0]]


def test_whole_messages(tmp_path: Path) -> None:
    assert refusal(tmp_path, "x.csv", "a,b\n1,2\n3,abc\n") == (
        "error[E316]: `x.csv` has the text `abc` in line 3, column 2 (`b`), "
        "where a number is expected\n"
        ' help: write a number there, or read another column, as in `"file.csv:column"`'
    )
    said = refusal(tmp_path, "x.csv:b", "a,b\n1,2\n3,abc\n", "n")
    assert said.endswith("a column of text is index data, as in `data g[n] in G labels`")
    assert refusal(tmp_path, "x.csv:yy", "x,y\n1,2\n") == (
        "error[E304]: `x.csv` has no column `yy`\n help: did you mean `y`? it holds `x`, `y`"
    )
    assert refusal(tmp_path, "x.csv", "1,2\n", "n") == (
        "error[E307]: data `y` has the shape [n], and the file is a table of shape (1, 2)\n"
        " help: a vector is one column"
    )
    assert refusal(tmp_path, "x.mtx", MTX + "coordinate real general\n90000 90000 0\n") == (
        "error[E317]: `x.mtx` has 90000 rows and 90000 columns, a dense array of 64.8 GB, "
        "and 1 GB are read at most\n"
        " help: declare the data `sparse`, or take a part of the matrix"
    )
    assert refusal(tmp_path, "x.txt", "1") == (
        "error[E303]: `x.txt` is not of a kind that can be read\n"
        " help: the kinds are npz, npy, csv, tsv, json, mtx, svmlight, svm, libsvm; use numpy.savez"
    )


WIDE = ",".join(f"c{k}" for k in range(12)) + "\n" + ",".join("1" * 12) + "\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1,2\n3\n", "[E316] … has 1 cell in line 2, and 2 in line 1"),
        ("a,b,c\n1,2\n3,4\n", "[E316] … has 2 cells in line 2, and 3 in line 1"),
        ("\n# c\n1\n1,2\n", "[E316] … has 2 cells in line 4, and 1 in line 3"),
        (
            "1,abc\n1,2\n",
            "[E316] … the text `abc` in line 1, column 2 … a header line without numbers",
        ),
        ("id,2019\n1,2\n", "[E316] … the text `id` in line 1, column 1 … a header line without"),
        ("1,,3\n", "[E316] … an empty cell in line 1, column 2, where … write nan"),
        (",\n1,2\n", "[E316] … an empty cell in line 1, column 1, where … write nan"),
        ("a\n1\nNA\n", "[E316] … `NA` in line 3, column 1 (`a`), where … write nan"),
        ("1;2\n1,5;2\n", "[E316] … `1,5` in line 2, column 1, where … write a decimal point: 1.5"),
        ("a\n1 2\n", "[E316] … `1 2` in line 2 … separate cells with a comma"),
        ("1\n1e999\n", "[E316] … `1e999` in line 2, column 1, which no float64 can hold"),
        ("1\n1_0\n", "[E316] … the text `1_0` in line 2"),
        ("1\n0x10\n", "[E316] … the text `0x10` in line 2"),
        ("1\n\uff11\n", "[E316] … the text `\uff11` in line 2"),
        ("1\n1j\n", "[E316] … the text `1j` in line 2"),
        ("1\n__import__('os')\n", "[E316] … the text `__import__('os')` in line 2"),
        ("1\n" + "\0" * 30, "[E316] … the text `" + "\ufffd" * 30 + "` in line 2"),
        ("1\n" + "x" * 31, "[E316] … the text `" + "x" * 29 + "…` in line 2"),
        pytest.param("1\n" + "x" * 200_000, "[E316] … a line 2 that is not a row", id="wide"),
        ('1\n"2\n3"\n', "[E316] … a line 2 that is not a row of cells"),
        ("", "[E305] … is empty"),
        ("\ufeff \n# c\n", "[E305] … is empty"),
        ("a,b\n", "[E305] … has a header line and no numbers"),
        (b"1\n\xe9\n", "[E305] … is not UTF-8 text … save it as UTF-8"),
        ("1\n2\n".encode("utf-16"), "[E305] … is not UTF-8 text but UTF-16 … save it"),
    ],
)
def test_tables_that_are_refused(tmp_path: Path, text: str | bytes, words: str) -> None:
    message = refusal(tmp_path, "x.csv", text)
    for phrase in words.split(" … "):
        assert phrase in message


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("x.csv:y", "1,2\n", "[E304] … no column `y`: its first line holds numbers"),
        ("x.csv:y", "y,y\n1,2\n", "[E304] … 2 columns `y`"),
        ("x.csv:y", "y,b\n1,2\n3\n", "[E316] … 1 cell in line 3, and 2 in line 1"),
        ("x.csv:zz", WIDE, "[E304] … `c9` and 2 more"),
        ("x.csv", "who,Y\nme,1\n", "[E304] … no column `y` … it holds `who`, `Y`"),
        ("x.csv", "Y\nme\n", "[E316] … the text `me` in line 2, column 1 (`Y`)"),
        ("x.csv", "a,b\n1,2\n", '[E307] … table of shape (1, 2) … one column: "file:a"'),
        ("x.csv", "a,y,y\n1,2,3\n", '[E307] … table of shape (1, 3) … one column: "file:y"'),
        ("x.json", '{"z": 1}', "[E304] … no array `y` … it holds `z`"),
        ("x.json", "{}", "[E304] … no array `y` … it is empty"),
        ("x.json", "", "[E305] … is empty"),
        ("x.json", "[1,\n2,]", "[E305] … is not JSON in line 2, column "),
        ("x.json", "[1] 2", "[E305] … is not JSON in line 1, column 5"),
        ("x.json", b'["\xe9"]', "[E305] … is not UTF-8 text"),
        ("x.json", "[1]".encode("utf-16"), "[E305] … is not UTF-8 text but UTF-16"),
        ("x.json", '{"y": 1, "y": 2}', "[E305] … two entries `y`"),
        ("x.json", "[[1, 2], [3]]", "[E316] … a list of 1 in `y[1]`, and of 2 before it"),
        ("x.json", "[[1, 2], 3]", "[E316] … the number 3 in `y[1]`, where a list of 2 is expected"),
        ("x.json", "[1, [2]]", "[E316] … a list in `y[1]`, where a number is expected"),
        ("x.json", '[[1, 2], [3, "4"]]', "[E316] … the text `4` in `y[1][1]`, where a number"),
        ("x.json", '["1", "2"]', "[E316] … the text `1` in `y[0]`"),
        ("x.json", "[1, null]", "[E316] … null in `y[1]`, where … write NaN"),
        ("x.json", '{"y": {"z": 1}}', "[E316] … an object in `y`"),
        ("x.json", "[1e999]", "[E316] … `1e999`, which no float64 can hold"),
        pytest.param("x.json", "9" * 5000, "[E316] … which no float64 can hold", id="digits"),
        ("x.json", "[" * 80 + "]" * 80, "[E316] … nested deeper"),
        pytest.param("x.json", "[" * 100_000, "[E316] … nested deeper", id="deep"),
        ("x.mtx", "", "[E305] … is empty"),
        ("x.mtx", "1 2\n", "[E305] … Missing banner"),
        ("x.mtx", MTX + "array real general\n2 2\n1\n", "[E305] … Truncated"),
        ("x.mtx", MTX + "array real general\n1 1\nabc\n", "[E316] … has `abc` in line 3"),
        ("x.mtx", MTX + "array real general\n1 1\n1e999\n", "[E316] … no float64 can hold"),
        ("x.mtx", MTX + "array integer general\n1 1\n" + "9" * 30, "[E305] … Line 3: Integer out"),
        ("x.mtx", MTX + "array complex general\n1 1\n1 2\n", "[E306] … complex values"),
        ("x.mtx", MTX + "coordinate real general\n1 1 1\n2 1 5\n", "[E305] … Line 3: Row index"),
        ("x.mtx", MTX + "coordinate real general\n1 1 999999999999\n", "[E305] … cut short"),
        ("x.mtx", "%%MatrixMarket vector array real general\n1\n1\n", "[E305] … not supported"),
        ("x.mtx:y", MTX + "array real general\n1 1\n1\n", "[E301] … without keys"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, file: str, text: str, words: str) -> None:
    message = refusal(tmp_path, file, text, "n")
    for phrase in words.split(" … "):
        assert phrase in message


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_pipe_is_not_waited_for(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    os.mkfifo(path)
    with pytest.raises(DomainError, match=r"E305.*it is not a regular file"):
        as_model_array("y", path, ["m"])


def test_files_that_are_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (csv_file, json_file, matrix_market):
        monkeypatch.setattr(module, "_MOST_BYTES", 2_000_000)
    long = "1\n" * 1_000_001
    for suffix in ("csv", "json", "mtx"):
        message = refusal(tmp_path, f"x.{suffix}", long)
        assert "[E317]" in message
        assert "has 2 MB, and 2 MB of text are read at most" in message
    assert content.in_bytes(999) == "999 bytes"


def test_a_long_table_is_read_as_written(tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(size=(20_000, 3))
    np.savetxt(tmp_path / "x.csv", values, delimiter=";", fmt="%.17g", header="a;b;c", comments="")
    np.testing.assert_array_equal(as_model_array("y", tmp_path / "x.csv", "mn"), values)
    column = as_model_array("y", tmp_path / "x.csv:b", "n")
    np.testing.assert_array_equal(column, values[:, 1])
    with (tmp_path / "x.csv").open("a") as file:
        file.write("1;2;x\n")
    with pytest.raises(DomainError, match=r"text `x` in line 20002, column 3 \(`c`\)"):
        as_model_array("y", tmp_path / "x.csv", "mn")


TABLE = "x,y,z\n1,2,3\n4,5,6\n"


def test_several_columns_of_one_table(tmp_path: Path) -> None:
    assert read(tmp_path, "t.csv:z,x", TABLE, "mn") == [[3, 1], [6, 4]]
    assert read(tmp_path, "t.csv:y", TABLE, "mn") == [[2], [5]]
    assert read(tmp_path, "t.csv:a, b", '"a, b",c\n1,2\n', "m") == [1]
    assert "`q`" in refusal(tmp_path, "x.csv:y,q", TABLE)
    assert "E307" in refusal(tmp_path, "x.csv:x,z", TABLE, "m")


def test_names_that_share_a_table_read_each_their_column(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    model = tmp_path / "m.slo"
    model.write_text('dim n data x[n], y[n] from "t.csv" var w minimize w * sum(x + 10 * y)')
    assert slomodel.compile(model).value([1.0]) == 75.0
