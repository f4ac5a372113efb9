"""The language server of models: pygls for the protocol, `LanguageDocument` for the answers."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, BinaryIO, TypeVar

from lsprotocol import types
from lsprotocol.converters import get_converter
from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest
from pygls.lsp.server import LanguageServer

from slomodel import __version__
from slomodel.cli.language_document import LanguageDocument

_REQUEST_FAILED = -32803
_structure = get_converter().structure

T = TypeVar("T")


def serve(stream: BinaryIO, out: BinaryIO) -> int:
    """Answer messages until `exit` or the end of the stream; 0 after a `shutdown`, otherwise 1."""
    server, is_shut_down = language_server(), False

    @server.feature(types.SHUTDOWN)
    def shut_down(parameters: None) -> None:
        nonlocal is_shut_down
        is_shut_down = True

    # pygls leaves so on `exit`, unless the stream has ended before.
    with suppress(SystemExit):
        server.start_io(stream, out)
    return 0 if is_shut_down else 1


def language_server() -> LanguageServer:
    """A server with diagnostics, hover, completion, definitions, renaming, formatting, symbols."""
    server = LanguageServer(
        "slomodel", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full
    )
    documents: dict[str, LanguageDocument] = {}
    _follow_texts(server, documents)

    def at(parameters: Any) -> LanguageDocument:
        uri = parameters.text_document.uri
        if uri not in documents:
            raise JsonRpcInvalidRequest(f"missing or unknown {uri!r}")
        return documents[uri]

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(parameters: types.HoverParams) -> types.Hover | None:
        place = parameters.position
        text = at(parameters).hover(place.line, place.character)
        if text is None:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text))

    @server.feature(types.TEXT_DOCUMENT_COMPLETION)
    def completion(parameters: types.CompletionParams) -> list[types.CompletionItem]:
        return _all(at(parameters).completions(), types.CompletionItem)

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(parameters: types.DefinitionParams) -> types.Location | None:
        place = parameters.position
        found = at(parameters).definition(place.line, place.character)
        if found is None:
            return None
        return types.Location(parameters.text_document.uri, _structure(found, types.Range))

    @server.feature(types.TEXT_DOCUMENT_RENAME)
    def rename(parameters: types.RenameParams) -> types.WorkspaceEdit:
        place, document = parameters.position, at(parameters)
        try:
            edits = document.rename(place.line, place.character, new=parameters.new_name)
        except ValueError as error:
            raise JsonRpcException(str(error), _REQUEST_FAILED) from None
        return types.WorkspaceEdit({parameters.text_document.uri: _all(edits, types.TextEdit)})

    @server.feature(types.TEXT_DOCUMENT_FORMATTING)
    def formatting(parameters: types.DocumentFormattingParams) -> list[types.TextEdit]:
        return _all(at(parameters).format(), types.TextEdit)

    @server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(parameters: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        return _all(at(parameters).symbols(), types.DocumentSymbol)

    return server


def _follow_texts(server: LanguageServer, documents: dict[str, LanguageDocument]) -> None:
    """Keep the documents that are open in the editor, and publish their diagnostics."""

    def publish(uri: str, diagnostics: list[dict[str, Any]]) -> None:
        every = _all(diagnostics, types.Diagnostic)
        parameters = types.PublishDiagnosticsParams(uri, every)
        server.text_document_publish_diagnostics(parameters)

    def put(uri: str, text: str) -> None:
        before = documents.get(uri)
        documents[uri] = LanguageDocument(uri, text, before and before.last_good)
        publish(uri, documents[uri].diagnostics())

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(parameters: types.DidOpenTextDocumentParams) -> None:
        put(parameters.text_document.uri, parameters.text_document.text)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(parameters: types.DidChangeTextDocumentParams) -> None:
        put(parameters.text_document.uri, parameters.content_changes[-1].text)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def closed(parameters: types.DidCloseTextDocumentParams) -> None:
        documents.pop(parameters.text_document.uri, None)
        publish(parameters.text_document.uri, [])


def _all(found: list[dict[str, Any]], kind: type[T]) -> list[T]:
    """The protocol's objects for their fields in JSON."""
    return [_structure(one, kind) for one in found]
