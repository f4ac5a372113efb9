// A session of the extension in Node, with a stand-in for the editor: it opens the document that is
// given on standard input, asks every provider, and prints what the editor would show as JSON.
"use strict";

const Module = require("module");
const path = require("path");

const [, , folder, command] = process.argv;
const plain = kind =>
  class {
    constructor(...values) {
      this.kind = kind;
      this.values = values;
    }
  };
const providers = {};
const shown = [];
const registers = {};
for (const name of ["Hover", "CompletionItem", "Definition", "Rename", "DocumentFormattingEdit", "DocumentSymbol"])
  registers[`register${name}Provider`] = (language, provider) => {
    providers[name] = provider;
    return { dispose() {} };
  };
const text = require("fs").readFileSync(0, "utf8");
const uri = { toString: () => "file:///m.slo" };
const document = { languageId: "slo", version: 1, uri, getText: () => text };
const event = () => () => ({ dispose() {} });
class Edits extends plain("edits") {
  set(target, list) {
    this.values.push(list);
  }
}
const vscode = {
  Range: plain("range"),
  TextEdit: plain("edit"),
  Diagnostic: plain("diagnostic"),
  Hover: plain("hover"),
  MarkdownString: plain("markdown"),
  CompletionItem: plain("completion"),
  Location: plain("location"),
  DocumentSymbol: plain("symbol"),
  WorkspaceEdit: Edits,
  Uri: { parse: value => value },
  window: { showErrorMessage: message => shown.push(message) },
  workspace: {
    textDocuments: [document],
    getConfiguration: () => ({ get: () => command }),
    onDidOpenTextDocument: event(),
    onDidChangeTextDocument: event(),
    onDidCloseTextDocument: event(),
  },
  languages: {
    ...registers,
    createDiagnosticCollection: () => ({ set: (target, list) => shown.push(list), dispose() {} }),
  },
};
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));

(async () => {
  const extension = require(path.join(folder, "extension.js"));
  await extension.activate({ subscriptions: [] });
  if (!providers.Hover) return console.log(JSON.stringify({ shown }));
  const at = { line: 1, character: 5 };
  const spacing = { tabSize: 4, insertSpaces: true };
  const result = {
    hover: await providers.Hover.provideHover(document, at),
    completion: await providers.CompletionItem.provideCompletionItems(document, at),
    definition: await providers.Definition.provideDefinition(document, { line: 2, character: 13 }),
    rename: await providers.Rename.provideRenameEdits(document, at, "renamed"),
    format: await providers.DocumentFormattingEdit.provideDocumentFormattingEdits(document, spacing),
    symbols: await providers.DocumentSymbol.provideDocumentSymbols(document),
    shown,
  };
  await extension.deactivate();
  console.log(JSON.stringify(result));
})();
