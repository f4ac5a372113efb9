"""The LaTeX of a model as MathML, which browsers typeset without scripts or a network."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape

_GREEK = dict(
    zip(
        (
            *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota"),
            *("kappa", "lambda", "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi"),
            *("chi", "psi", "omega", "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma"),
            *("Upsilon", "Phi", "Psi", "Omega"),
        ),
        "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ",
        strict=True,
    )
)
_OPERATORS = {
    "in": "∈",
    "times": "×",
    "odot": "⊙",
    "oslash": "⊘",
    "otimes": "⊗",
    "cdot": "·",
    "circ": "∘",
    "cap": "∩",
    "bmod": "mod",
    "le": "≤",
    "ge": "≥",
    "ne": "≠",
    "wedge": "∧",
    "vee": "∨",
    "neg": "¬",
    "ldots": "…",
    "lVert": "‖",
    "rVert": "‖",
}
_LETTERS = {**_GREEK, "infty": "∞", "top": "⊤"}
_BIG = {"sum": "∑", "prod": "∏", "min": "min", "max": "max", "det": "det"}
_FUNCTIONS = frozenset({"log", "exp", "sin", "cos", "tan", "sinh", "cosh", "tanh"})
_SPACES = {",": 0.17, ";": 0.28, "quad": 1.0}
_ARGUMENTS = {"frac": 2, "sqrt": 1, "_": 1, "^": 1}
_TOKEN = re.compile(
    r"\\(?P<word>operatorname\*?|mathrm|text|mathbb)\{(?P<verbatim>(?:[^{}\\]|\\_)*)\}"
    r"|\\(?P<around>begin|end)\{(?P<environment>\w+)\}"
    r"|\\(?P<delimited>left|right)\s*(?:\\(?P<norm>[lr]Vert)|(?P<fence>.))"
    r"|\\(?P<command>[A-Za-z]+|.)|(?P<number>\d+(?:\.\d*)?|\.\d+)|(?P<space>\s+)|(?P<character>.)",
    re.DOTALL,
)


@dataclass(slots=True)
class _Item:
    """An expression with a subscript and a superscript; those of a big operator are limits."""

    base: str
    is_big: bool = False
    below: str = ""
    above: str = ""

    def text(self) -> str:
        parts = self.base + self.below + self.above
        if not (self.below or self.above):
            return parts
        names = ("munder", "mover", "munderover") if self.is_big else ("msub", "msup", "msubsup")
        name = names[2 if self.below and self.above else 0 if self.below else 1]
        return f"<{name}>{parts}</{name}>"


@dataclass(slots=True)
class _Group:
    """A group that is open: how it began, its expressions, finished cells, and what waits."""

    began: str
    items: list[_Item] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=lambda: [[]])
    waiting: list[tuple[str, list[str]]] = field(default_factory=list)

    def add(self, item: _Item) -> None:
        """Append an expression, or give it to the command that waits for an argument."""
        while self.waiting:
            command, arguments = self.waiting[-1]
            arguments.append(item.text())
            if len(arguments) < _ARGUMENTS[command]:
                return
            self.waiting.pop()
            if command in "_^":
                base = self.items[-1] if self.items else _Item("<mrow></mrow>")
                if command == "_":
                    base.below = arguments[0]
                else:
                    base.above = arguments[0]
                self.items[-1:] = [base]
                return
            item = _Item(f"<m{command}>{''.join(arguments)}</m{command}>")
        self.items.append(item)

    def row(self) -> str:
        """The expressions so far as one."""
        return f"<mrow>{''.join(item.text() for item in self.items)}</mrow>"

    def end_cell(self) -> None:
        self.rows[-1].append(f"<mtd>{self.row()}</mtd>")
        self.items = []


def mathml(latex: str) -> str:
    """LaTeX as printed by `latex_of` as one element `math`, displayed as a block."""
    groups = [_Group("")]
    for token in _TOKEN.finditer(latex):
        group = groups[-1]
        if token["space"]:
            continue
        if token["around"] == "begin":
            groups.append(_Group(token["environment"]))
        elif token["delimited"] == "left":
            groups.append(_Group(_fence(token)))
        elif token["character"] == "{":
            groups.append(_Group("{"))
        elif token["around"] or token["delimited"] or token["character"] == "}":
            groups.pop()
            groups[-1].add(_Item(_closed(group, token)))
        elif token["character"] == "&":
            group.end_cell()
        elif token["command"] == "\\":
            group.end_cell()
            group.rows.append([])
        elif token["command"] in ("frac", "sqrt") or token["character"] in ("_", "^"):
            group.waiting.append((token["command"] or token["character"], []))
        else:
            group.add(_leaf(token))
    return f'<math display="block">{groups[0].row()}</math>'


def _fence(token: re.Match[str]) -> str:
    return "‖" if token["norm"] else token["fence"]


def _closed(group: _Group, token: re.Match[str]) -> str:
    """A finished group: braces, delimiters or an environment."""
    if token["character"]:
        return group.row()
    if token["delimited"]:
        left, right = escape(group.began), escape(_fence(token))
        return f"<mrow><mo>{left}</mo>{group.row()}<mo>{right}</mo></mrow>"
    group.end_cell()
    rows = "".join(f"<mtr>{''.join(cells)}</mtr>" for cells in group.rows)
    if group.began == "pmatrix":
        return f"<mrow><mo>(</mo><mtable>{rows}</mtable><mo>)</mo></mrow>"
    if group.began == "cases":
        return f'<mrow><mo>{{</mo><mtable class="cases">{rows}</mtable></mrow>'
    return f'<mtable class="{group.began}" displaystyle="true">{rows}</mtable>'


def _leaf(token: re.Match[str]) -> _Item:
    """A number, letter, operator, space or name."""
    word, command = token["word"], token["command"]
    if token["number"]:
        return _Item(f"<mn>{token['number']}</mn>")
    if word:
        text = escape(token["verbatim"].replace("\\_", "_"))
        if word == "mathbb":
            return _Item(f"<mi>{text.replace('R', 'ℝ')}</mi>")
        if word == "text":
            return _Item(f"<mtext>{text}</mtext>")
        return _Item(f'<mi mathvariant="normal">{text}</mi>', is_big=word.endswith("*"))
    if command in _SPACES:
        return _Item(f'<mspace width="{_SPACES[command]}em"></mspace>')
    if command in _BIG:
        tag = "mo" if command in ("sum", "prod") else "mi"
        return _Item(f"<{tag}>{_BIG[command]}</{tag}>", is_big=True)
    if command in _FUNCTIONS:
        return _Item(f"<mi>{command}</mi>")
    if command in _LETTERS:
        return _Item(f"<mi>{_LETTERS[command]}</mi>")
    if command:
        return _Item(f"<mo>{escape(_OPERATORS.get(command, command))}</mo>")
    character = token["character"]
    if character.isalpha():
        return _Item(f"<mi>{character}</mi>")
    shown = "−" if character == "-" else escape(character)
    return _Item(f'<mo stretchy="false">{shown}</mo>')
