"""Index data given as texts: their order, sizes, files, what is kept and what is refused."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import slomodel
from slomodel.cli import main
from slomodel.errors import SlomodelError

TEXT = "dim N, C data city[N] in C labels, y[N] var a[C], m minimize sumsq(y - m - a[city]) + m^2"
CITY, Y = ["Rome", "Bern", "Rome", "Oslo"], np.array([1.0, 2.0, 3.0, 4.0])
POINT = np.array([1.0, 2.0, 4.0, 0.5])


def value(places: list[int]) -> float:
    return float(np.sum((Y - POINT[3] - POINT[places]) ** 2) + POINT[3] ** 2)


def test_labels_are_sorted_and_give_the_size() -> None:
    model = slomodel.compile(TEXT, data={"city": CITY, "y": Y})
    assert model.labels == {"C": ("Bern", "Oslo", "Rome")}
    assert model.axis_labels == {"a": (("Bern", "Oslo", "Rome"),)}
    assert model.value(POINT) == pytest.approx(value([2, 0, 2, 1]))


def test_bind_keeps_labels_and_takes_new_ones() -> None:
    model = slomodel.compile(TEXT, data={"city": CITY, "y": Y})
    again = model.bind(city=["Bern"] * 4)
    assert again.value(POINT) == pytest.approx(value([0, 0, 0, 0]))
    assert again.labels == model.labels
    other = model.bind(city=["x", "y", "x", "x"], labels={"C": ["y", "z", "x"]})
    assert other.value(POINT) == pytest.approx(value([2, 0, 2, 2]))
    assert other.labels == {"C": ("y", "z", "x")}
    assert pickle.loads(pickle.dumps(model)).labels == model.labels
    assert pickle.loads(pickle.dumps(again)).value(POINT) == again.value(POINT)


def test_data_over_one_dim_share_their_labels() -> None:
    text = "dim N, T data home[N] in T labels, away[N] in T labels var a[T] "
    text += "minimize sumsq(a[home] - a[away] - 1)"
    model = slomodel.compile(text, data={"home": ["b", "a"], "away": ["c", "b"]})
    assert model.labels == {"T": ("a", "b", "c")}
    assert model.value(np.array([1.0, 2.0, 5.0])) == 4.0**2 + 2.0**2


def test_numbers_are_labels_in_their_order() -> None:
    text = "dim N, S data who[N] in S labels var a[S] minimize sumsq(a[who])"
    for given in ([10, 9, 10], np.array([10.0, 9.0, 10.0]), ["10", "9", "10"]):
        assert slomodel.compile(text, data={"who": given}).labels == {"S": ("9", "10")}


FILES = {
    "t.csv": 'city;y\n"Rome";1\nBern;2\nRome;3\nOslo;4\n',
    "t.json": '{"city": ["Rome", "Bern", "Rome", "Oslo"], "y": [1, 2, 3, 4]}',
}


@pytest.mark.parametrize("name", [*FILES, "t.npz"])
def test_labels_from_files(name: str, tmp_path: Path) -> None:
    if name in FILES:
        (tmp_path / name).write_text(FILES[name])
    else:
        np.savez(tmp_path / name, city=np.array(CITY), y=Y)
    file = tmp_path / "m.slo"
    file.write_text(TEXT.replace(", y[N]", f', y[N] from "{name}"') + " let twice = 2 * a")
    model = slomodel.compile(file)
    assert model.value(POINT) == pytest.approx(value([2, 0, 2, 1]))
    given = slomodel.compile(TEXT, data={"city": tmp_path / f"{name}:city", "y": Y})
    assert given.labels == model.labels
    result = CliRunner().invoke(main, ["solve", str(file), "--evaluate", "twice"])
    assert result.output.count("Bern: ") == 2


REFUSED: dict[str, tuple[object, str, str]] = {
    "an unknown one": (["Rome", "Bern", "Rom", "Oslo"], "E312", "did you mean `Rome`"),
    "a missing one": (["Rome", None, "Rome", "Oslo"], "E306", "holds no label at 1"),
    "an empty one": (["Rome", " ", "Rome", "Oslo"], "E306", "holds no label at 1"),
    "not a number": ([np.nan, 1.0, 2.0, 3.0], "E306", "holds no label at 0"),
    "a matrix": ([CITY, CITY], "E307", r"\[N\]"),
    "a text": ("Rome", "E306", "is a text"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_a_label_is_refused(name: str) -> None:
    model = slomodel.compile(TEXT, data={"city": CITY, "y": Y})
    given, code, words = REFUSED[name]
    with pytest.raises(SlomodelError, match=words) as caught:
        model.bind(city=given)
    assert caught.value.diagnostics[0].code == code


@pytest.mark.parametrize(
    ("labels", "code"),
    [
        ({"T": ["a"]}, "E309"),
        ({"C": "abc"}, "E602"),
        ({"C": ["Rome", "Bern", "Rome", "Oslo"]}, "E602"),
        (["Rome"], "E602"),
        ({"C": ["Rome", "Bern"]}, "E312"),
    ],
)
def test_wrong_lists_of_labels(labels: object, code: str) -> None:
    with pytest.raises(SlomodelError) as caught:
        slomodel.compile(TEXT, data={"city": CITY, "y": Y}, labels=labels)  # type: ignore[arg-type]
    assert caught.value.diagnostics[0].code == code


def test_sizes_that_disagree_with_the_labels() -> None:
    text = TEXT.replace(", y[N]", ", y[N], u[C] = 0") + " + sum(u)"
    for given in ({"dims": {"C": 4}}, {"data": {"u": np.zeros(2)}}):
        data = {"city": CITY, "y": Y, **given.get("data", {})}
        with pytest.raises(SlomodelError) as caught:
            slomodel.compile(text, data=data, dims=given.get("dims"))
        assert caught.value.diagnostics[0].code == "E311"


@pytest.mark.parametrize("backend", ["numpy", "numexpr", "c"])
def test_no_label_reaches_generated_source(backend: str) -> None:
    label = 'a"""\nraise SystemExit'
    model = slomodel.compile(
        "dim N, G data g[N] in G labels, y[N] var a[G] init 0 minimize sumsq(y - a[g])",
        data={"g": np.array([label, "b"]), "y": [1.0, 2.0]},
        backend=backend,
    )
    assert model.value([0.0, 0.0]) == 5.0
    assert "SystemExit" not in model.source()


def test_an_element_of_an_array_is_read_from_the_array() -> None:
    text = "dim n, sites\ndata site[n] in sites labels, y[n]\nvar u[sites]\n"
    data = {"site": ["oak", "cedar"], "y": [1.0, 2.0]}
    model = slomodel.compile(text + "minimize sumsq(y - u[site])", data=data, backend="numpy")
    solution = model.solve()
    for name in ("u[cedar]", "u[0]"):
        with pytest.raises(KeyError, match=r"whole array.*labels of `sites`.*model\.labels"):
            solution[name]
    place = model.labels["sites"].index("cedar")
    assert solution["u"][place] == pytest.approx(2.0)
