"""The layer order, checked without import-linter; pyproject.toml states the same as a contract."""

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.sizes import statements

PACKAGE = Path(__file__).parent.parent / "slomodel"
LAYERS = (
    {"errors", "html", "user_cache"},
    {"ir"},
    {"functions"},
    {"problem", "reference", "calculus"},
    {"bounds", "rewrite", "codegen"},
    {"front", "solve"},
    {"model", "plots"},
    {"cli"},
    {"__main__"},
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


def contract_layers() -> dict[str, list[set[str]]]:
    """The layers of each import-linter contract, lowest first, by the package they are in."""
    settings = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    return {
        container: [
            {name.strip(" ()") for name in line.split("|")} for line in reversed(contract["layers"])
        ]
        for contract in contracts
        if contract["type"] == "layers"
        for container in contract["containers"]
    }


CONTRACTS = contract_layers()


@cache
def imports_in(source: str) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Every import in `source`, deferred ones and those for types included."""
    return tuple(
        node
        for node in statements(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


def imported_parts(source: str) -> Iterator[str]:
    """First name below `slomodel` of every import in `source`, deferred ones included."""
    for node in imports_in(source):
        if isinstance(node, ast.ImportFrom) and node.module == "slomodel":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from parts_below_root([node.module or ""])
        else:
            yield from parts_below_root([alias.name for alias in node.names])


def parts_below_root(modules: list[str]) -> Iterator[str]:
    """`ir` for `slomodel.ir.expr`; nothing for other packages."""
    for module in modules:
        root, _, rest = module.partition(".")
        if root == "slomodel" and rest:
            yield rest.split(".")[0]


def wrong_imports(part: str, source: str) -> list[str]:
    """Parts that `part` imports and that do not stand in a lower layer."""
    others = set(imported_parts(source)) & RANK.keys() - {part}
    return sorted(other for other in others if RANK[other] >= RANK[part])


def part_of(path: Path) -> str:
    """The layer's name for a file of the package."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def test_imports_point_to_lower_layers() -> None:
    parts = {path: part_of(path) for path in FILES}
    assert set(parts.values()) <= RANK.keys(), "a new part needs a place in the layer order"
    wrong = {path: wrong_imports(part, path.read_text("utf-8")) for path, part in parts.items()}
    assert {path: imports for path, imports in wrong.items() if imports} == {}


@pytest.mark.parametrize(
    ("part", "source", "wrong"),
    [
        ("ir", "from slomodel.functions import table", ["functions"]),
        ("front", "def f():\n    from slomodel import solve", ["solve"]),
        ("calculus", "import slomodel.reference", ["reference"]),
        ("calculus", "from slomodel.calculus.gradient import gradient", []),
        ("cli", "import slomodel\nfrom slomodel.model import compile", []),
    ],
)
def test_the_check_itself(part: str, source: str, wrong: list[str]) -> None:
    assert wrong_imports(part, source) == wrong


def modules_imported(source: str, modules: set[str]) -> set[str]:
    """Those of `modules` that `source` imports, deferred imports and imports for types included."""
    imported = set()
    for node in imports_in(source):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            imported |= {name if name in modules else node.module or "" for name in names}
        else:
            imported |= {alias.name for alias in node.names}
    return imported & modules


def module_of(path: Path) -> str:
    """`slomodel.ir.expr` for a file; a package has the name of its folder."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def import_graph() -> dict[str, set[str]]:
    """For every module of slomodel those that it imports."""
    sources = {module_of(path): path.read_text(encoding="utf-8") for path in FILES}
    names = set(sources)
    return {name: modules_imported(text, names) - {name} for name, text in sources.items()}


def on_cycles(graph: dict[str, set[str]]) -> list[str]:
    """The modules on a cycle or on a path between two: what is left when modules that import
    nothing, or that nothing imports, are removed again and again.
    """
    left = dict(graph)
    while True:
        targets = set().union(*left.values())
        ends = {name for name in left if not left[name] or name not in targets}
        if not ends:
            return sorted(left)
        left = {name: left[name] - ends for name in left.keys() - ends}


def test_no_module_is_imported_in_a_cycle() -> None:
    assert on_cycles(import_graph()) == []


def test_the_cycle_check_itself() -> None:
    assert on_cycles({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert on_cycles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == ["b", "c"]
    deferred = "def f():\n    from a.b import c"
    assert modules_imported(deferred, {"a.b", "a.b.c"}) == {"a.b.c"}


def test_contract_states_the_same_order() -> None:
    assert CONTRACTS["slomodel"] == list(LAYERS)


@pytest.mark.parametrize("package", sorted(CONTRACTS.keys() - {"slomodel"}))
def test_rooms_import_lower_rooms(package: str) -> None:
    """Inside a package with a contract; modules that it does not name are free."""
    rank = {name: k for k, names in enumerate(CONTRACTS[package]) for name in names}
    wrong = []
    for module, imports in import_graph().items():
        own = room_in(package, module)
        for imported in imports if own in rank else ():
            other = room_in(package, imported)
            if other in rank and other != own and rank[other] >= rank[own]:
                wrong.append((module, imported))
    assert wrong == []


def room_in(package: str, module: str) -> str:
    """`text` of `slomodel.front.text.parse` in `slomodel.front`; empty outside the package."""
    root, _, rest = module.partition(f"{package}.")
    return "" if root else rest.split(".")[0]
