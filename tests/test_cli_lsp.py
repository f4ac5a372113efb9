"""`slomodel lsp` through its protocol: messages in, messages out."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest
from click.testing import CliRunner

import slomodel
from slomodel.cli.new import lsp

URI = "file:///m.slo"
GOOD = """model m
dim  n, k
data y[n], A[n, k]   # 𝛼 is not a name
var  u[k] init 0
var  s > 0
let  𝛼u = A @ u
let  r = y - 𝛼u
minimize sumsq(r) / s^2 + n * log(s^2)
"""


def message(**fields: Any) -> bytes:
    text = json.dumps({"jsonrpc": "2.0", **fields}).encode()
    return b"Content-Length: %d\r\n\r\n" % len(text) + text


def opened(text: str) -> bytes:
    document = {"uri": URI, "languageId": "slo", "version": 1, "text": text}
    return message(method="textDocument/didOpen", params={"textDocument": document})


def changed(text: str) -> bytes:
    parameters = {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"text": text}]}
    return message(method="textDocument/didChange", params=parameters)


def request(method: str, at: tuple[int, int] = (0, 0), **more: Any) -> bytes:
    position = {"line": at[0], "character": at[1]}
    parameters = {"textDocument": {"uri": URI}, "position": position, **more}
    return message(id=1, method=f"textDocument/{method}", params=parameters)


class Output(io.BytesIO):
    """What a server wrote; it closes the stream when it exits."""

    def close(self) -> None:
        pass


BEGIN = message(id=0, method="initialize", params={"capabilities": {}})


def served(*sent: bytes, status: int = 1) -> list[dict[str, Any]]:
    from slomodel.cli.language_server import serve  # half a second, not for every collection

    out = Output()
    assert serve(io.BytesIO(b"".join(sent)), out) == status
    found, rest = [], out.getvalue()
    while rest:
        head, _, rest = rest.partition(b"\r\n\r\n")
        length = int(head.partition(b"\r\n")[0].removeprefix(b"Content-Length: "))
        found.append(json.loads(rest[:length]))
        rest = rest[length:]
    return found


def exchange(*sent: bytes) -> list[dict[str, Any]]:
    """What follows the answer to `initialize`."""
    return served(BEGIN, *sent)[1:]


def answer(*sent: bytes) -> Any:
    last = exchange(*sent)[-1]
    return last.get("result", last.get("error"))


def applied(text: str, edits: list[dict[str, Any]]) -> str:
    """The text after edits, whose positions count UTF-16 code units."""
    lines = [line.encode("utf-16-le") for line in text.split("\n")]
    for edit in sorted(edits, key=lambda e: tuple(e["range"]["start"].values()), reverse=True):
        start, end = edit["range"]["start"], edit["range"]["end"]
        assert start["line"] == end["line"]
        line = lines[start["line"]]
        new = edit["newText"].encode("utf-16-le")
        lines[start["line"]] = line[: 2 * start["character"]] + new + line[2 * end["character"] :]
    return "\n".join(line.decode("utf-16-le") for line in lines)


def test_a_session_begins_and_ends() -> None:
    (begun,) = served(BEGIN)
    assert begun["result"]["capabilities"]["hoverProvider"]
    assert begun["result"]["serverInfo"]["name"] == "slomodel"
    assert served(BEGIN, message(id=9, method="shutdown"), message(method="exit"), status=0)
    assert served(BEGIN, message(method="exit"))


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "slomodel.cli.language_server")
    monkeypatch.setitem(sys.modules, "pygls.exceptions", None)
    asked = CliRunner().invoke(lsp)
    assert asked.exit_code == 1
    assert "error[E801]" in asked.stderr
    assert "slomodel[lsp]" in asked.stderr


def test_diagnostics_are_the_messages_of_the_compiler() -> None:
    wrong = GOOD.replace("- 𝛼u", "- 𝛼v")
    with pytest.raises(slomodel.SlomodelError) as caught:
        slomodel.compile(wrong)
    (first, second) = exchange(opened(wrong), changed(GOOD))
    (found,) = first["params"]["diagnostics"]
    assert found["code"] == caught.value.diagnostics[0].code
    assert "declare it before" in found["message"]
    # The letter before takes two code units.
    assert found["range"]["start"] == {"line": 6, "character": 13}
    assert found["range"]["end"] == {"line": 6, "character": 16}
    assert second["params"]["diagnostics"] == []


def test_hover_shows_shapes_sets_and_functions() -> None:
    shown = answer(opened(GOOD), request("hover", (6, 6)))["contents"]["value"]
    assert "**definition** `r` [n]" in shown
    assert "let  r = y - 𝛼u" in shown
    assert "> 0" in answer(opened(GOOD), request("hover", (7, 20)))["contents"]["value"]
    function = answer(opened(GOOD), request("hover", (7, 12)))["contents"]["value"]
    assert "sumsq(x" in function
    assert answer(opened(GOOD), request("hover", (0, 0))) is None
    assert answer(opened(GOOD), request("hover", (99, 0))) is None


def test_names_of_the_last_good_text_are_completed() -> None:
    found = answer(opened(GOOD), changed(GOOD + "let z = (("), request("completion", (8, 10)))
    details = {one["label"]: one.get("detail") for one in found}
    assert details["u"] == "variable [k]"
    assert "softplus" in details
    assert "minimize" in details


def test_shapes_are_those_of_the_last_text_without_errors() -> None:
    """While a name is typed the text parses, and the name is not known yet."""
    typed = (GOOD + "let z = A @ u_", GOOD + "let z = A @ u_k", GOOD + "let z = (")
    for count in (1, 2, 3):
        texts = [changed(one) for one in typed[:count]]
        found = answer(opened(GOOD), *texts, request("completion", (8, 10)))
        details = {one["label"]: one.get("detail") for one in found}
        assert (details["u"], details["A"], details["n"]) == ("variable [k]", "data [n, k]", "dim")
    shown = answer(opened(GOOD), changed(typed[0]), request("hover", (6, 6)))["contents"]["value"]
    assert "**definition** `r` [n]" in shown


def test_definitions_are_found() -> None:
    found = answer(opened(GOOD), request("definition", (7, 15)))
    assert found["range"] == {
        "start": {"line": 6, "character": 5},
        "end": {"line": 6, "character": 6},
    }
    assert answer(opened(GOOD), request("definition", (7, 11))) is None


def test_renaming_changes_every_use_and_no_comment() -> None:
    edits = answer(opened(GOOD), request("rename", (5, 6), newName="eta"))["changes"][URI]
    assert applied(GOOD, edits) == GOOD.replace("𝛼u", "eta")


@pytest.mark.parametrize(
    ("at", "new", "why"),
    [
        ((5, 6), "y", "cannot be the name"),
        ((5, 6), "2b", "not a name"),
        ((7, 11), "s2", "declares"),
    ],
)
def test_renaming_is_refused_with_the_reason(at: tuple[int, int], new: str, why: str) -> None:
    assert why in answer(opened(GOOD), request("rename", at, newName=new))["message"]


OPTIONS = {"tabSize": 4, "insertSpaces": True}


def test_formatting_and_outline() -> None:
    (edit,) = answer(
        opened("var x[3]   minimize  sumsq( x )"), request("formatting", options=OPTIONS)
    )
    assert edit["newText"] == "var  x[3]\nminimize sumsq(x)\n"
    assert answer(opened("var x["), request("formatting", options=OPTIONS)) == []
    names = [one["name"] for one in answer(opened(GOOD), request("documentSymbol"))]
    assert names == ["n", "k", "y", "A", "u", "s", "𝛼u", "r"]


def test_nonsense_is_answered_and_survived() -> None:
    assert answer(message(id=1, method="no/such", params={}))["code"] == -32601
    assert answer(request("hover"))["code"] == -32600
    rubbish = b"Content-Length: 3\r\n\r\n{{{" + b"Content-Length: x\r\n\r\n"
    assert exchange(rubbish, opened(GOOD))[-1]["method"] == "textDocument/publishDiagnostics"
