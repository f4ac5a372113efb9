"""Reports about a model, as text or data: its shapes, sizes, smoothness and warnings."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace

from slomodel.errors import Diagnostic, ModelSyntaxError, ModelWarning, NonsmoothWarning
from slomodel.front.data.bind import Binding
from slomodel.front.lints.kinks import smoothness_class
from slomodel.ir.dims import Shape, concrete, show_shape
from slomodel.problem import NONSMOOTH, Problem
from slomodel.rewrite import Change, work_once

_LEAST_REPORTED = 1000
"""Fewer operations on data are not reported, since they take about a microsecond."""


def explanation(problem: Problem, binding: Binding, changes: Sequence[Change] = ()) -> str:
    """Variables, data, sizes, smoothness and rewrites, one per line."""
    lines = [f"model {problem.name}: {problem.sense} {problem.objective_name}"]
    sizes = [f"{dim.name} = {binding.sizes.get(dim.name, '?')}" for dim in problem.dims]
    if sizes:
        lines.append(f"dims       {', '.join(sizes)}")
    if problem.vector is not None:
        lines.append(f"variables  {problem.vector.name}: {len(problem.variables)} numbers")
    else:
        for variable in problem.variables:
            inside = "" if variable.set is None else f" {variable.set.text}"
            lines.append(f"variable   {variable.name} {show_shape(variable.shape)}{inside}")
    for declaration in problem.data:
        if declaration.owner:
            continue
        state = "missing" if declaration.name in binding.missing else "given"
        if declaration.entries is not None and state == "given":
            state = f"{binding.arrays[declaration.name].size} entries stored"
        shape = show_shape(declaration.declared_shape)
        lines.append(f"data       {declaration.name} {shape}, {state}")
    lines += [
        f"constraint {fromkey}" for fromkey in dict.fromkeys(c.text for c in problem.constraints)
    ]
    for path, (count, rows) in binding.dropped.items():
        lines.append(
            f"rows       {count} of {rows} in `{path}` have missing values and are dropped"
        )
    lines.append(f"unknowns   {_unknowns(problem, binding.sizes)}")
    lines.append(f"smoothness {smoothness_class(problem, binding.arrays)}")
    lines += [f"rewritten  sums: {remark}" for remark in problem.remarks]
    once = work_once(problem.objective, binding.sizes) if binding.has_all_sizes else 0.0
    if once >= _LEAST_REPORTED:
        lines.append(f"once       {once:.3g} operations on data alone are done once per bind")
    for change in changes:
        saved = f"{change.before:.3g} operations per gradient become {change.after:.3g}"
        lines.append(f"rewritten  {change.name}: {saved}")
        lines += [f"           {note}" for note in change.notes]
    return "\n".join(lines)


def facts(problem: Problem, binding: Binding) -> dict[str, object]:
    """The same report as data for JSON: unknown sizes are null; in a shape they appear by name."""
    shapes = {v.name: _known(v.shape, binding.sizes) for v in problem.variables}
    counts = [concrete(v.shape, binding.sizes) for v in problem.variables if not binding.unsized]
    return {
        "model": problem.name,
        "sense": problem.sense,
        "objective": problem.objective_name,
        "dims": {dim.name: binding.sizes.get(dim.name) for dim in problem.dims},
        "variables": shapes,
        "sets": {v.name: v.set.text for v in problem.variables if v.set is not None},
        "data": {
            d.name: _known(d.declared_shape, binding.sizes) for d in problem.data if not d.owner
        },
        "missing": list(binding.missing),
        "n": None if binding.unsized else sum(map(math.prod, counts)),
        "smoothness": smoothness_class(problem, binding.arrays),
        "warnings": [warning.facts() for warning in problem.warnings],
    }


def _known(shape: Shape, sizes: Mapping[str, int]) -> list[int | str]:
    return [
        dim.size(sizes) if all(name in sizes for name, _ in dim.terms) else str(dim)
        for dim in shape
    ]


def _unknowns(problem: Problem, sizes: Mapping[str, int]) -> str:
    """The number of unknowns as text; sizes that are not known appear by name."""
    counts: dict[tuple[str, ...], int] = {}
    for variable in problem.variables:
        factors = _known(variable.shape, sizes)
        named = [
            f"({factor})" if " " in factor else factor
            for factor in factors
            if isinstance(factor, str)
        ]
        number = math.prod(one for one in factors if isinstance(one, int))
        counts[tuple(named)] = counts.get(tuple(named), 0) + number
    total = counts.pop((), 0)
    products = ["*".join([str(n)] * (n != 1) + list(named)) for named, n in counts.items() if n]
    return " + ".join([*products, str(total)] if total or not products else products)


def warn(diagnostics: Sequence[Diagnostic], strict: bool) -> None:
    """Issue the warnings of a model; if `strict`, raise ModelSyntaxError for its kinks."""
    kinks = [warning for warning in diagnostics if warning.code == NONSMOOTH]
    if strict and kinks:
        raise ModelSyntaxError(*(replace(kink, severity="error") for kink in kinks))
    for warning in diagnostics:
        category = NonsmoothWarning if warning.code == NONSMOOTH else ModelWarning
        warnings.warn(warning.render(), category, stacklevel=3)
