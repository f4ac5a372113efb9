"""docs/bounds.md has a section for every rule, by the name that users see, and for nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from slomodel.bounds.rules.table import RULES, BoundRule

PAGE = Path(__file__).parents[2] / "docs" / "bounds.md"


def sections() -> dict[str, str]:
    """The text under each rule's heading; a heading may name several rules."""
    _, rules = PAGE.read_text(encoding="utf-8").split("\n## The rules\n")
    parts = re.split(r"^### (.+)$", rules.split("\n## ")[0], flags=re.MULTILINE)[1:]
    named = zip(parts[::2], parts[1::2], strict=True)
    return {name: text for heading, text in named for name in heading.split(", ")}


def public_name(rule: BoundRule) -> str:
    """The rule as claims name it, without the inequality that gave the number."""
    return rule.name


def test_every_rule_has_a_section_and_every_section_a_rule() -> None:
    assert sorted(sections()) == sorted(map(public_name, RULES))


@pytest.mark.parametrize("name", sections())
def test_a_section_states_proves_cites_and_gives_an_example(name: str) -> None:
    text = sections()[name]
    for part in ("*Theorem.*", "*Proof.*", "∎", "*Source*", "*Exact*"):
        assert part in text


@pytest.mark.parametrize("name", ["bounds", "ranges", "certificates", "rays"])
def test_lines_fit(name: str) -> None:
    text = (PAGE.parent / f"{name}.md").read_text(encoding="utf-8")
    assert all(len(line) <= 100 for line in text.splitlines())
