"""The grammar: syntax trees, spans of nodes, and limits."""

import keyword
from collections.abc import Iterator
from pathlib import Path

import pytest
from lark import Lark

from slomodel import user_cache
from slomodel.errors import ModelSyntaxError, SourceText
from slomodel.front.text import parse as parsing
from slomodel.front.text import syntax as s
from slomodel.front.text.parse import DEEPEST, LONGEST_TEXT, grammar_path, parse, read_source
from slomodel.front.text.syntax import STATEMENTS, roots
from slomodel.front.text.traversal import children

MODELS = sorted((Path(__file__).parents[2] / "models").glob("*.slo"))
RESERVED = (*STATEMENTS, "init", "from", "for", "in", "if", "and", "or", "not", "None")


def program(text: str) -> s.ModelTree:
    return parse(SourceText(text))


def expression(text: str) -> s.Expr:
    return program(f"minimize {text}").objectives[0].expr


def show(node: s.Node) -> str:
    """Fully bracketed, so that precedence can be read off."""
    match node:
        case s.NumberLiteral() | s.Name():
            return node.text
        case s.String():
            return f'"{node.text}"'
        case s.NoneLiteral():
            return "None"
        case s.Negate():
            return f"(-{show(node.operand)})"
        case s.Not():
            return f"(not {show(node.operand)})"
        case s.SumChain() | s.ProductChain():
            text = show(node.first)
            for term in node.rest:
                text = f"({text}{term.op}{show(term.operand)})"
            return text
        case s.Power():
            return f"({show(node.base)}{node.op}{show(node.exponent)})"
        case s.Transpose():
            return f"{show(node.operand)}'"
        case s.Slice():
            sides = ["" if side is None else show(side) for side in (node.lo, node.hi)]
            return ":".join(sides)
        case s.Index():
            return f"{show(node.base)}[{','.join(map(show, node.items))}]"
        case s.FunctionCall():
            named = [f"{k.name.text}={show(k.value)}" for k in node.kwargs]
            return f"{node.function.text}({','.join([*map(show, node.args), *named])})"
        case s.Comprehension():
            loops = ",".join(f"{i.name.text} in {show(i.domain)}" for i in node.iterations)
            tail = "" if node.condition is None else f" if {show(node.condition)}"
            return f"{node.function.text}({show(node.body)} for {loops}{tail})"
        case s.Compare():
            return f"({show(node.left)}{node.op}{show(node.right)})"
        case s.BoolOp():
            return f"({f' {node.op} '.join(map(show, node.operands))})"


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("-x^2", "(-(x^2))"),
        ("2^3^2", "(2^(3^2))"),
        ("2^-x^2", "(2^(-(x^2)))"),
        ("-x*y", "((-x)*y)"),
        ("- -x", "(-(-x))"),
        ("+x - +y", "(x-y)"),
        ("a - b - c", "((a-b)-c)"),
        ("a / b * c", "((a/b)*c)"),
        ("a - b*c + d", "((a-(b*c))+d)"),
        ("(a - b)*c", "((a-b)*c)"),
        ("A @ B @ x", "((A@B)@x)"),
        ("y .* A ./ b", "((y.*A)./b)"),
        ("x' @ A.T @ x", "((x'@A')@x)"),
        ("A'[0]'^2", "(A'[0]'^2)"),
        ("x ** 2 .^ n", "(x^(2.^n))"),
        ("2.*x", "(2.*x)"),
        ("1./x", "(1./x)"),
        ("3.^2", "(3.^2)"),
        ("2.+.5e-3", "(2.+.5e-3)"),
        ("1_000.5 - 1E+2", "(1000.5-1E+2)"),
        ("x[-1]", "x[(-1)]"),
        ("A[i+1, :, 1:, :n - 1, None]", "A[(i+1),:,1:,:(n-1),None]"),
        ("f(a)[0](b, axis=0)", None),
        ("sum(A, axis=None) + mean(A, 0)", "(sum(A,axis=None)+mean(A,0))"),
        ('einsum("ij,jk->ik", A, B)', 'einsum("ij,jk->ik",A,B)'),
        ("f()", "f()"),
        (
            "sum(x[i] * y for i in n, j in range(1, m - 1) if i < j and not i == 0)",
            "sum((x[i]*y) for i in n,j in range(1,(m-1)) if ((i<j) and (not (i==0))))",
        ),
        (
            "where((a < b) and (c) >= (d) or e != 1, x, y)",
            "where((((a<b) and (c>=d)) or (e!=1)),x,y)",
        ),
        ("form + format + information + x.T", "(((form+format)+information)+x')"),
        ("sum + e + beta + S + ℓ + x̂", "(((((sum+e)+beta)+S)+ℓ)+x̂)"),
    ],
)
def test_precedence_and_forms(text: str, meaning: str | None) -> None:
    if meaning is None:
        with pytest.raises(ModelSyntaxError):
            expression(text)
    else:
        assert show(expression(text)) == meaning


DECLARATIONS = """# a comment, then everything that can be declared
model everything; dim d, N, h = 16
data A[d, N + 1] symmetric mask, y[10] from "f.npz:k", lam = 1/10, u, v[h - 2] from "g.npy"
var P[d] init 0, Q[d], R[d] init normal(0, 1), t
let q[i in d, j in range(N)] = A[i, j]
let r = A' fn g(a, b) = a * b
check lam >= 0
maximize fit: sum(r)"""


def test_declarations() -> None:
    p = program(DECLARATIONS)
    assert p.name is not None
    assert p.name.text == "everything"
    assert [(d.name.text, d.default and show(d.default)) for d in p.dims] == [
        ("d", None),
        ("N", None),
        ("h", "16"),
    ]
    sizes = [
        [([(name.text, k) for name, k in size.terms], size.offset) for size in datum.shape]
        for datum in p.data
    ]
    d, many, h = [("d", 1)], [("N", 1)], [("h", 1)]
    assert sizes == [[(d, 0), (many, 1)], [([], 10)], [], [], [(h, -2)]]
    assert [a.text for a in p.data[0].attributes] == ["symmetric", "mask"]
    assert [d.file and d.file.text for d in p.data] == ["f.npz:k", "f.npz:k", None] + ["g.npy"] * 2
    assert [d.default and show(d.default) for d in p.data] == [None, None, "(1/10)", None, None]
    inits = [v.init and show(v.init) for v in p.vars]
    assert inits == ["0", "normal(0,1)", "normal(0,1)", None]
    by_index, plain = p.lets
    assert plain.indices is None
    assert [i.name.text for i in by_index.indices or ()] == ["i", "j"]
    assert [n.name.text for n in p.fns[0].parameters] == ["a", "b"]
    assert show(p.checks[0].condition) == "(lam>=0)"
    (objective,) = p.objectives
    assert (objective.sense, objective.name and objective.name.text) == ("maximize", "fit")
    assert len(p.order) == 3 + 5 + 4 + 2 + 1 + 1 + 1


def test_spans_of_declarations_slice_back() -> None:
    p = program(DECLARATIONS.replace("\n", "\r\n"))
    assert [statement.span.text for statement in p.order] == [
        *("d", "N", "h = 16"),
        *("A[d, N + 1] symmetric mask", 'y[10] from "f.npz:k"', "lam = 1/10", "u"),
        'v[h - 2] from "g.npy"',
        *("P[d] init 0", "Q[d]", "R[d] init normal(0, 1)", "t"),
        "let q[i in d, j in range(N)] = A[i, j]",
        *("let r = A'", "fn g(a, b) = a * b", "check lam >= 0", "maximize fit: sum(r)"),
    ]
    assert [size.span.text for size in p.data[0].shape] == ["d", "N + 1"]
    assert (p.checks[0].span.line, p.checks[0].span.column) == (7, 1)


def test_spans_of_expressions_slice_back() -> None:
    text = "(a - b)' @ -C[1:, None] + f(2 ^ (x), axis=0) - sum(x[i] for i in n if i < 3)"
    node = expression(text)
    found = []
    stack: list[s.Node] = [node]
    while stack:
        top = stack.pop()
        found.append(top.span.text)
        stack.extend(reversed(children(top)))
    assert found == [
        *(text, "(a - b)' @ -C[1:, None]", "(a - b)'", "(a - b)", "a", "b"),
        *("-C[1:, None]", "C[1:, None]", "C", "1:", "1", "None"),
        *("f(2 ^ (x), axis=0)", "2 ^ (x)", "2", "(x)", "0"),
        *("sum(x[i] for i in n if i < 3)", "x[i]", "x", "i", "n", "i < 3", "i", "3"),
    ]
    assert isinstance(node, s.SumChain)
    assert [term.op_span.text for term in node.rest] == ["+", "-"]


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_models_parse(path: Path) -> None:
    p = parse(read_source(path))
    assert len(p.objectives) == 1
    assert p.name is not None
    assert p.name.text == path.stem
    assert p.warnings == ()
    assert p.order == tuple(sorted(p.order, key=lambda statement: statement.span.start))


def test_there_are_nine_models() -> None:
    assert len(MODELS) >= 9


def test_grammar_is_strict_lalr_without_collisions() -> None:
    Lark(grammar_path().read_text(encoding="utf-8"), parser="lalr", strict=True)


@pytest.mark.parametrize("word", [*(one for one in RESERVED if " " not in one), *keyword.kwlist])
def test_reserved_words_are_not_names(word: str) -> None:
    with pytest.raises(ModelSyntaxError, match=f"`{word}`"):
        program(f"let {word} = 1")
    for name in (word + "_", word + "2", "x" + word):
        assert program(f"let {name} = {name}").lets[0].name.text == name


def test_long_sum_is_flat_and_deep_nesting_does_not_recurse() -> None:
    node = expression("+".join(["x"] * 3000))
    assert isinstance(node, s.SumChain)
    assert len(node.rest) == 2999
    assert expression("(" * DEEPEST + "x" + ")" * DEEPEST).span.end == len("minimize x") + 2 * 5000
    for opening, closing in (("-", ""), ("f(", ")"), ("2^", ""), ("", "'"), ("", "[0]")):
        expression(opening * DEEPEST + "x" + closing * DEEPEST)
        with pytest.raises(ModelSyntaxError, match=r"E119.*5000 levels"):
            expression(opening * (DEEPEST + 1) + "x" + closing * (DEEPEST + 1))


def test_byte_order_mark_and_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "m.slo"
    path.write_bytes(b"\xef\xbb\xbfvar x\r\nminimize x^2\r\n")
    p = parse(read_source(path))
    assert (p.objectives[0].span.line, p.objectives[0].span.text) == (2, "minimize x^2")
    assert program("\ufeffvar x").vars[0].name.text == "x"


@pytest.mark.parametrize(
    ("raw", "code", "words"),
    [
        (b"var x\nminimize \xff x", "E002", "line 2 has the byte 0xff"),
        (b"var x\n\0", "E002", "line 2 has a zero byte"),
        ("var x".encode("utf-16"), "E002", "UTF-16"),
        (b"x" * (LONGEST_TEXT + 1), "E003", "longer than 2 MB"),
    ],
)
def test_files_that_are_not_texts(tmp_path: Path, raw: bytes, code: str, words: str) -> None:
    path = tmp_path / "m.slo"
    path.write_bytes(raw)
    with pytest.raises(ModelSyntaxError, match=words) as caught:
        read_source(path)
    assert caught.value.diagnostics[0].code == code


def test_missing_file_and_folder(tmp_path: Path) -> None:
    (tmp_path / "near.slo").write_text("var x")
    with pytest.raises(ModelSyntaxError, match=r"no such file(.|\n)*`near\.slo`"):
        read_source(tmp_path / "far.slo")
    with pytest.raises(ModelSyntaxError, match="E001"):
        read_source(tmp_path)


def test_bracket_on_a_new_line_continues_with_a_warning() -> None:
    p = program("let y = f\n(a)\nlet z = A # here\n[0]\nlet w = g(a\n)[1]")
    assert [show(let.expr) for let in p.lets] == ["f(a)", "A[0]", "g(a)[1]"]
    assert [(w.code, w.severity, w.span and w.span.line) for w in p.warnings] == [
        ("W101", "warning", 2),
        ("W101", "warning", 4),
    ]


def test_every_root_is_reached() -> None:
    p = program(DECLARATIONS)
    texts = [[root.span.text for root in roots(statement)] for statement in p.order]
    assert [t for t in texts if t] == [
        *(["16"], ['"f.npz:k"'], ['"f.npz:k"'], ["1/10"], ['"g.npy"'], ['"g.npy"']),
        *(["0"], ["normal(0, 1)"], ["normal(0, 1)"], ["d", "range(N)", "A[i, j]"]),
        *(["A'"], ["a * b"], ["lam >= 0"], ["sum(r)"]),
    ]


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the parser's tables, empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = (user_cache.directory, parsing._machine)
    for one in made:
        one.cache_clear()
    yield tmp_path / "slomodel" / "parser"
    for one in made:
        one.cache_clear()


def test_tables_of_an_earlier_process_parse_the_same(tables: Path) -> None:
    text = "dim n, N\ndata A[N, n], y[N]\nvar x[n] init 1\nminimize sumsq(A @ x - y) + x[0]\n"
    first = parse(SourceText(text))
    (file,) = tables.iterdir()
    made = file.stat().st_mtime_ns
    parsing._machine.cache_clear()
    again = parse(SourceText(text))
    assert file.stat().st_mtime_ns == made
    assert [type(one) for one in again.order] == [type(one) for one in first.order]
    with pytest.raises(ModelSyntaxError, match="E108"):
        parse(SourceText("minimize x x"))


@pytest.mark.parametrize("content", [b"", b"no tables", bytes(3000)])
def test_broken_tables_are_made_again(tables: Path, content: bytes) -> None:
    parse(SourceText("var x minimize x"))
    (file,) = tables.iterdir()
    file.write_bytes(content)
    parsing._machine.cache_clear()
    assert parse(SourceText("var x minimize x")).order
    (file,) = tables.iterdir()
    assert file.stat().st_size > 3000
