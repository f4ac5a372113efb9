"""`slomodel lsp`: a language server on standard input and output, for editors."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO, final

import click

from slomodel import __version__
from slomodel.cli.language_document import LanguageDocument

_METHOD_NOT_FOUND, _REQUEST_FAILED, _INVALID = -32601, -32803, -32600
_LONGEST = 50_000_000
"""Bytes of the longest message that is read."""
_CAPABILITIES = {
    "textDocumentSync": 1,  # a change sends the whole text
    "hoverProvider": True,
    "completionProvider": {},
    "definitionProvider": True,
    "renameProvider": True,
    "documentFormattingProvider": True,
    "documentSymbolProvider": True,
}

Message = Mapping[str, Any]


@final
class LanguageServer:
    """Open models by address, and the answers to requests about them."""

    def __init__(self, stream: BinaryIO, out: BinaryIO) -> None:
        self._stream = stream
        self._out = out
        self._documents: dict[str, LanguageDocument] = {}
        self._is_shut_down = False

    def run(self) -> int:
        """Answer messages until `exit`; 0 after a `shutdown`, otherwise 1."""
        while (message := self._read()) is not None:
            if message.get("method") == "exit":
                break
            if "method" in message:
                self._handle(message)
        return 0 if self._is_shut_down else 1

    def _read(self) -> Message | None:
        """The next message; None at the end of the stream."""
        length = 0
        while (line := self._stream.readline()) not in (b"\r\n", b"\n"):
            if not line:
                return None
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length" and value.strip().isdigit():
                length = int(value)
        if not 0 < length <= _LONGEST:
            return {}
        try:
            message = json.loads(self._stream.read(length))
        except ValueError:
            return {}
        return message if isinstance(message, dict) else {}

    def _handle(self, message: Message) -> None:
        answers: dict[str, Callable[[Any], Any]] = {
            "initialize": self._initialize,
            "shutdown": self._shut_down,
            "textDocument/hover": self._hover,
            "textDocument/completion": lambda p: self._document(p).completions(),
            "textDocument/definition": self._definition,
            "textDocument/rename": self._rename,
            "textDocument/formatting": lambda p: self._document(p).format(),
            "textDocument/documentSymbol": lambda p: self._document(p).symbols(),
        }
        events: dict[str, Callable[[Any], None]] = {
            "textDocument/didOpen": self._opened,
            "textDocument/didChange": self._changed,
            "textDocument/didClose": self._closed,
        }
        method, parameters = message["method"], message.get("params") or {}
        if "id" not in message:
            if method in events:
                events[method](parameters)
            return
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if method not in answers:
            answer["error"] = {"code": _METHOD_NOT_FOUND, "message": f"no method {method}"}
        else:
            try:
                answer["result"] = answers[method](parameters)
            except KeyError as error:
                answer["error"] = {"code": _INVALID, "message": f"missing or unknown {error}"}
            except ValueError as error:
                answer["error"] = {"code": _REQUEST_FAILED, "message": str(error)}
        self._send(answer)

    def _send(self, message: Message) -> None:
        text = json.dumps(message).encode()
        self._out.write(b"Content-Length: %d\r\n\r\n" % len(text) + text)
        self._out.flush()

    def _initialize(self, parameters: Any) -> dict[str, Any]:
        return {
            "capabilities": _CAPABILITIES,
            "serverInfo": {"name": "slomodel", "version": __version__},
        }

    def _shut_down(self, parameters: Any) -> None:
        self._is_shut_down = True

    def _document(self, parameters: Any) -> LanguageDocument:
        return self._documents[parameters["textDocument"]["uri"]]

    def _opened(self, parameters: Any) -> None:
        self._set(parameters["textDocument"]["uri"], parameters["textDocument"]["text"])

    def _changed(self, parameters: Any) -> None:
        self._set(parameters["textDocument"]["uri"], parameters["contentChanges"][-1]["text"])

    def _closed(self, parameters: Any) -> None:
        uri = parameters["textDocument"]["uri"]
        self._documents.pop(uri, None)
        self._publish(uri, [])

    def _set(self, uri: str, text: str) -> None:
        before = self._documents.get(uri)
        document = LanguageDocument(uri, text, before and before.last_good)
        self._documents[uri] = document
        self._publish(uri, document.diagnostics())

    def _publish(self, uri: str, diagnostics: list[dict[str, Any]]) -> None:
        method = "textDocument/publishDiagnostics"
        parameters = {"uri": uri, "diagnostics": diagnostics}
        self._send({"jsonrpc": "2.0", "method": method, "params": parameters})

    def _hover(self, parameters: Any) -> dict[str, Any] | None:
        text = self._document(parameters).hover(**parameters["position"])
        return None if text is None else {"contents": {"kind": "markdown", "value": text}}

    def _definition(self, parameters: Any) -> dict[str, Any] | None:
        definition = self._document(parameters).definition(**parameters["position"])
        uri = parameters["textDocument"]["uri"]
        return None if definition is None else {"uri": uri, "range": definition}

    def _rename(self, parameters: Any) -> dict[str, Any]:
        uri, new = parameters["textDocument"]["uri"], parameters["newName"]
        edits = self._document(parameters).rename(**parameters["position"], new=new)
        return {"changes": {uri: edits}}


@click.command()
def lsp() -> None:
    """Serve an editor through the language server protocol, on standard input and output.

    Diagnostics are the messages of `slomodel check`; hover, completion, definitions, renaming,
    formatting and an outline are available.
    """
    sys.exit(LanguageServer(sys.stdin.buffer, sys.stdout.buffer).run())
