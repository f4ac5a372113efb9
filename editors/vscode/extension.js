// A client of `slomodel lsp` without further packages: messages of the language server protocol
// over the standard streams of the command, and providers of the editor that ask it.
"use strict";

const { spawn } = require("child_process");
const vscode = require("vscode");

const LONGEST = 2000; // characters of the end of standard error that a message shows

class Connection {
  constructor(command, onDiagnostics, onEnd) {
    this.next = 1;
    this.waiting = new Map();
    this.received = Buffer.alloc(0);
    this.onDiagnostics = onDiagnostics;
    this.child = spawn(command, ["lsp"], { stdio: ["pipe", "pipe", "pipe"] });
    let said = "";
    this.child.stderr.on("data", data => (said = (said + data).slice(-LONGEST)));
    this.child.stdin.on("error", () => {});
    this.child.stdout.on("data", data => this.read(data));
    this.child.on("error", error => {
      onEnd(error);
      this.end();
    });
    this.child.on("close", code => {
      if (code) onEnd(new Error(said.trim() || `status ${code}`));
      this.end();
    });
  }

  end() {
    for (const answer of this.waiting.values()) answer.reject(new Error("slomodel lsp has ended"));
    this.waiting.clear();
  }

  send(message) {
    const text = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
    this.child.stdin.write(`Content-Length: ${text.length}\r\n\r\n`);
    this.child.stdin.write(text);
  }

  notify(method, params) {
    this.send({ method, params });
  }

  request(method, params) {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.send({ id, method, params });
    });
  }

  read(data) {
    this.received = Buffer.concat([this.received, data]);
    for (;;) {
      const head = this.received.indexOf("\r\n\r\n");
      if (head < 0) return;
      const length = Number(/content-length: *(\d+)/i.exec(this.received.toString("utf8", 0, head))[1]);
      if (this.received.length < head + 4 + length) return;
      const body = this.received.toString("utf8", head + 4, head + 4 + length);
      this.received = this.received.subarray(head + 4 + length);
      this.handle(JSON.parse(body));
    }
  }

  handle(message) {
    if (message.method === "textDocument/publishDiagnostics") this.onDiagnostics(message.params);
    const answer = this.waiting.get(message.id);
    if (!answer || message.method) return;
    this.waiting.delete(message.id);
    if (message.error) answer.reject(new Error(message.error.message));
    else answer.resolve(message.result);
  }
}

const range = one =>
  new vscode.Range(one.start.line, one.start.character, one.end.line, one.end.character);
const edit = one => new vscode.TextEdit(range(one.range), one.newText);

function diagnostic(one) {
  // The protocol counts severities from 1 and the editor from 0.
  const found = new vscode.Diagnostic(range(one.range), one.message, (one.severity || 1) - 1);
  found.code = one.code;
  found.source = one.source || "slomodel";
  return found;
}

function symbol(one) {
  const whole = range(one.range);
  const own = range(one.selectionRange || one.range);
  return new vscode.DocumentSymbol(one.name, one.detail || "", one.kind - 1, whole, own);
}

function providers(connection) {
  const of = document => ({ textDocument: { uri: document.uri.toString() } });
  const at = (document, position) => ({
    ...of(document),
    position: { line: position.line, character: position.character },
  });
  const ask = (method, params) => connection.request(`textDocument/${method}`, params);
  const { languages } = vscode;
  return [
    languages.registerHoverProvider("slo", {
      async provideHover(document, position) {
        const found = await ask("hover", at(document, position));
        return found && new vscode.Hover(new vscode.MarkdownString(found.contents.value));
      },
    }),
    languages.registerCompletionItemProvider("slo", {
      async provideCompletionItems(document, position) {
        const found = await ask("completion", at(document, position));
        return found.map(one => {
          const item = new vscode.CompletionItem(one.label, (one.kind || 1) - 1);
          item.detail = one.detail;
          return item;
        });
      },
    }),
    languages.registerDefinitionProvider("slo", {
      async provideDefinition(document, position) {
        const found = await ask("definition", at(document, position));
        return found && new vscode.Location(vscode.Uri.parse(found.uri), range(found.range));
      },
    }),
    languages.registerRenameProvider("slo", {
      async provideRenameEdits(document, position, newName) {
        const found = await ask("rename", { ...at(document, position), newName });
        const edits = new vscode.WorkspaceEdit();
        for (const [uri, list] of Object.entries(found.changes))
          edits.set(vscode.Uri.parse(uri), list.map(edit));
        return edits;
      },
    }),
    languages.registerDocumentFormattingEditProvider("slo", {
      async provideDocumentFormattingEdits(document, { tabSize, insertSpaces }) {
        const options = { tabSize, insertSpaces };
        return ((await ask("formatting", { ...of(document), options })) || []).map(edit);
      },
    }),
    languages.registerDocumentSymbolProvider("slo", {
      async provideDocumentSymbols(document) {
        return ((await ask("documentSymbol", of(document))) || []).map(symbol);
      },
    }),
  ];
}

let connection;

async function activate(context) {
  const command = vscode.workspace.getConfiguration("slomodel").get("command");
  const shown = vscode.languages.createDiagnosticCollection("slomodel");
  connection = new Connection(
    command,
    params => shown.set(vscode.Uri.parse(params.uri), params.diagnostics.map(diagnostic)),
    error =>
      vscode.window.showErrorMessage(
        error.code === "ENOENT"
          ? `\`${command} lsp\` does not run (${error.message}); set slomodel.command to its path.`
          : `\`${command} lsp\` has ended: ${error.message}`,
      ),
  );
  try {
    await connection.request("initialize", { processId: process.pid, capabilities: {} });
  } catch {
    connection = undefined;
    return;
  }
  connection.notify("initialized", {});
  const open = document => {
    if (document.languageId !== "slo") return;
    const { version } = document;
    const textDocument = { uri: document.uri.toString(), languageId: "slo", version };
    connection.notify("textDocument/didOpen", {
      textDocument: { ...textDocument, text: document.getText() },
    });
  };
  vscode.workspace.textDocuments.forEach(open);
  context.subscriptions.push(
    shown,
    ...providers(connection),
    vscode.workspace.onDidOpenTextDocument(open),
    vscode.workspace.onDidChangeTextDocument(({ document }) => {
      if (document.languageId !== "slo") return;
      connection.notify("textDocument/didChange", {
        textDocument: { uri: document.uri.toString(), version: document.version },
        contentChanges: [{ text: document.getText() }],
      });
    }),
    vscode.workspace.onDidCloseTextDocument(document => {
      if (document.languageId !== "slo") return;
      const textDocument = { uri: document.uri.toString() };
      connection.notify("textDocument/didClose", { textDocument });
    }),
  );
}

async function deactivate() {
  if (!connection) return;
  await connection.request("shutdown", null).catch(() => {});
  connection.notify("exit", null);
  connection.child.stdin.end();
}

module.exports = { activate, deactivate };
