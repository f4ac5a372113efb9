"""`einsum("ij,jk->ik", A, B)` as the language has it: letters, an explicit result, named dims."""

from __future__ import annotations

import re

from slomodel.front.elaboration.contraction import contract
from slomodel.front.elaboration.faults import Fault, fault
from slomodel.front.elaboration.site import Site
from slomodel.front.elaboration.values import Value
from slomodel.front.text.syntax import String
from slomodel.ir.dims import Dim

_SPEC = re.compile(r"([a-zA-Z]*(?:,[a-zA-Z]*)*)->([a-zA-Z]*)")


def einsum(site: Site) -> Value:
    spec = site.text("spec")
    found = _SPEC.fullmatch(spec.text.replace(" ", ""))
    if found is None:
        message = "an einsum text has letters for the axes, `,` between arrays, and `->`"
        raise fault("E208", message, spec.span, 'as in `einsum("ij,jk->ik", A, B)`')
    groups, output = found.group(1).split(","), found.group(2)
    values = site.values
    if len(groups) != len(values):
        message = f"the text has letters for {len(groups)} arrays, not for {len(values)}"
        raise fault("E208", message, spec.span, "separate the letters of each array by `,`")
    dims: dict[str, Dim] = {}
    for group, value, one in zip(groups, values, site.operands, strict=True):
        if len(group) != value.rank:
            message = f"`einsum` takes for `{group}` as many axes, and `{one.text}` has"
            raise site.refuse(message, "write one letter for each axis")
        for letter, dim in zip(group, value.dims, strict=True):
            if dims.setdefault(letter, dim) != dim:
                both = f"`{letter}` stands for `{dims[letter]}` and for `{dim}`"
                message = f"`einsum` takes one dim for each letter ({both})"
                raise site.refuse(message, "the axes of one letter have one dim")
    _check_output(output, dims, spec)
    return contract(list(zip(values, groups, strict=True)), output)


def _check_output(output: str, dims: dict[str, Dim], spec: String) -> None:
    problem = ""
    for letter in output:
        if letter not in dims:
            problem = f"`{letter}` of the result is in no array"
        elif output.count(letter) > 1:
            problem = f"`{letter}` is twice in the result"
    if problem:
        raise _in_spec(problem, spec)


def _in_spec(problem: str, spec: String) -> Fault:
    return fault("E208", problem, spec.span, 'write the result once each, as in `"ij,j->i"`')
