"""`from "file.csv" drop missing`: rows without a value in a column that is read are left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import slomodel
from slomodel.errors import SourceText
from slomodel.front.text.format import formatted

TABLE = """# measured in spring
plot,site,count,rain
a,north,3,1.5

b,north,,2
c,south,4,NA
d,south,5,nan
e,,2,0.5
f,west,9,2.5
"""
TEXT = """
dim N, S
data count[N], rain[N], site[N] in S labels from "t.csv" drop missing
var u[S] init 0, b init 0
minimize sumsq(count - u[site] - b * rain)
"""


def compiled(folder: Path, text: str, table: str = TABLE, name: str = "t.csv") -> slomodel.Model:
    (folder / name).write_text(table, encoding="utf-8")
    (folder / "m.slo").write_text(text, encoding="utf-8")
    return slomodel.compile(folder / "m.slo", backend="numpy")


def test_rows_are_dropped_together(tmp_path: Path) -> None:
    model = compiled(tmp_path, TEXT)
    np.testing.assert_array_equal(model.data["count"], [3.0, 9.0])
    np.testing.assert_array_equal(model.data["rain"], [1.5, 2.5])
    assert model.labels["S"] == ("north", "west")
    assert "4 of 6 in `t.csv` have missing values" in model.explain()


def test_columns_that_are_not_read_do_not_matter(tmp_path: Path) -> None:
    text = 'dim N data count[N] from "t.csv" drop missing var a minimize sumsq(count - a)'
    np.testing.assert_array_equal(compiled(tmp_path, text).data["count"], [3, 4, 5, 2, 9])


def test_named_columns_and_whole_tables(tmp_path: Path) -> None:
    table = "a,b\n1,2\n,3\n4,nan\n5,6\n"
    named = 'dim N data X[N, 2] from "t.csv:b,a" drop missing var w[2] minimize sumsq(X @ w - 1)'
    whole = named.replace(":b,a", "")
    np.testing.assert_array_equal(compiled(tmp_path, named, table).data["X"], [[2, 1], [6, 5]])
    np.testing.assert_array_equal(compiled(tmp_path, whole, table).data["X"], [[1, 2], [5, 6]])


def test_given_data_are_taken_as_they_are(tmp_path: Path) -> None:
    model = compiled(tmp_path, TEXT)
    given = {"count": [1.0], "rain": [2.0], "site": ["north"]}
    other = slomodel.compile(tmp_path / "m.slo", data=given, backend="numpy")
    assert "dropped" not in other.explain()
    assert model.bind(**given, labels={"S": ["north"]}).data["count"].tolist() == [1.0]


def test_without_the_words_an_empty_cell_is_an_error(tmp_path: Path) -> None:
    text = 'dim N data count[N] from "t.csv" var a minimize sumsq(count - a)'
    with pytest.raises(slomodel.DomainError, match="empty cell in line 5") as caught:
        compiled(tmp_path, text)
    assert "drop missing" in str(caught.value)


def test_wrong_cells_keep_their_lines(tmp_path: Path) -> None:
    with pytest.raises(slomodel.DomainError, match="the text `many` in line 6"):
        compiled(tmp_path, TEXT, TABLE.replace("c,south,4,NA", "c,south,many,1"))


def test_only_tables_have_rows(tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", np.ones(3))
    text = 'dim n data y[n] from "y.npy" drop missing var a minimize sumsq(y - a)'
    with pytest.raises(slomodel.SlomodelError, match="not a table with rows"):
        compiled(tmp_path, text)


def test_the_words_are_names_elsewhere_and_are_formatted() -> None:
    text = "data drop, missing var x minimize drop * x^2 + missing * x"
    assert slomodel.compile(text, data={"drop": 1.0, "missing": 1.0}).n == 1
    layout = 'data y[3] from "t.csv" drop missing, x[3] = 1\n'
    source = layout.replace("drop missing", "drop\n  missing") + "var a minimize sum(y) * a\n"
    assert formatted(SourceText(source)).startswith(layout)


def test_all_data_of_a_table_have_to_drop_its_rows(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,\n5,6\n")
    text = 'dim N data a[N] from "t.csv" data b[N] from "t.csv" drop missing var m\n'
    (tmp_path / "t.slo").write_text(text + "minimize sumsq(a - m * b)")
    with pytest.raises(slomodel.ShapeError) as caught:
        slomodel.compile(tmp_path / "t.slo")
    assert 'write `drop missing` after every `"t.csv"`' in str(caught.value)
