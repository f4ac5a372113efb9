"""Displays in notebooks: well-formed tables and pictures that agree with the object."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np
import pytest

import slomodel
from slomodel.html import Curve, chart, histogram

TEXT = "dim n data y[n] var b < 5, a\nlet e = y - a\nminimize sumsq(e) + (b - 1)^4 + b^2"


def parsed(html: str) -> ElementTree.Element:
    assert "<script" not in html
    assert "http" not in html
    return ElementTree.fromstring(f"<div>{html}</div>")


def words(html: str) -> str:
    return " ".join("".join(parsed(html).itertext()).split())


@pytest.fixture(scope="module")
def solution() -> slomodel.Solution:
    model = slomodel.compile(TEXT, data={"y": [1.0, 2.0, 4.0]}, backend="numpy")
    return model.solve("pgd", verify=True, max_iter=20)


def test_a_solution(solution: slomodel.Solution) -> None:
    text = words(solution._repr_html_())
    assert f"{solution.fun:.12g}" in text
    assert solution.message.split(".", maxsplit=1)[0] in text
    assert parsed(solution._repr_html_()).find(".//polyline") is not None


def test_its_certificate_and_uncertainty(solution: slomodel.Solution) -> None:
    assert solution.certificate is not None
    assert "inequality" in words(solution.certificate._repr_html_())
    assert solution.uncertainty().assumption in words(solution.uncertainty()._repr_html_())


def test_bounds() -> None:
    model = slomodel.compile("var x[2] init 1 minimize exp(x[0]) + x[1]^2", backend="numpy")
    bounds = model.bounds([0.0, 0.0], 1.0)
    text = words(bounds._repr_html_())
    assert bounds.rule in text
    assert "certified" in text


def heights(svg: str) -> list[list[tuple[float, float]]]:
    lines = parsed(svg).findall(".//polyline")
    return [
        [(float(x), float(y)) for x, y in (one.split(",") for one in line.attrib["points"].split())]
        for line in lines
    ]


def test_a_chart_is_logarithmic_where_all_values_are_positive() -> None:
    (points,) = heights(chart([Curve("f", [0.0, 1.0, 2.0], [1.0, 10.0, 100.0])], "t", "f"))
    across, up = np.diff([x for x, _ in points]), np.diff([y for _, y in points])
    np.testing.assert_allclose(across, across[0])
    np.testing.assert_allclose(up, up[0])
    (linear,) = heights(chart([Curve("f", [0.0, 1.0, 2.0], [0.0, 1.0, 4.0])], "t", "f"))
    up = np.diff([y for _, y in linear])
    assert up[1] == pytest.approx(3.0 * up[0], rel=1e-2)


def test_a_chart_leaves_out_what_is_not_finite() -> None:
    curves = [Curve("a<b", [1.0, 2.0, 3.0], [1.0, math.inf, math.nan]), Curve("c", [1.0], [2.0])]
    svg = chart(curves, "r", "L", log_x=True)
    assert [len(one) for one in heights(svg)] == [1, 1]
    assert "a<b" in words(svg)
    assert "nothing finite" in chart([Curve("f", [1.0], [math.nan])], "t", "f")


def test_a_histogram_has_the_proportions_of_its_counts() -> None:
    bars = parsed(histogram([1, 0, 4])).findall(".//rect")
    assert [float(one.attrib["height"]) for one in bars] == [6.0, 0.0, 24.0]
