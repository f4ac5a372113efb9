"""`slomodel new`: a commented model with a stub of its data; and what other programs start from.

These are the schemas of JSON outputs, the completion of shells, and the language server of editors.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from slomodel.cli.errors import handled_errors
from slomodel.cli.outputs import check_target, print_json, write_text
from slomodel.errors import Diagnostic, DomainError

_PACKAGE = Path(__file__).parents[1]
TEMPLATES = _PACKAGE / "templates"
SCHEMAS = _PACKAGE / "schemas" / "1"
KINDS = ("regression", "factorisation", "network", "ode", "mixed")
_NAME = re.compile(r"[^\W\d]\w*")


@click.command()
@click.argument("name")
@click.option(
    "--like", type=click.Choice(KINDS), default="regression", help="Kind of model [regression]."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def new(name: str, like: str, as_json: bool) -> None:
    """Write NAME.slo, a commented model to start from, and a stub of its data.

    Existing files are never overwritten.

    \b
    slomodel new plots --like regression
    slomodel solve plots.slo
    """
    with handled_errors(as_json):
        folder, stem = Path(name).parent, Path(name).name.removesuffix(".slo")
        if not _NAME.fullmatch(stem):
            message = f"`{stem}` cannot be the name of a model"
            remedy = "a name has letters, digits and `_`, such as `my_model`"
            raise DomainError(Diagnostic("E703", message, help=remedy))
        files = {
            folder / source.name.replace(like, stem, 1): source.read_text(encoding="utf-8")
            for source in sorted(TEMPLATES.glob(f"{like}*"), reverse=True)
        }
        for path in files:
            if path.exists():
                message = f"`{path}` exists already"
                raise DomainError(Diagnostic("E705", message, help="choose another name"))
            check_target(path)
        for path, text in files.items():
            write_text(path, text.replace("NAME", stem))
        model = folder / f"{stem}.slo"
        steps = [f"slomodel check {model}", f"slomodel solve {model}"]
        if as_json:
            print_json({"files": [str(path) for path in files], "next": steps})
            return
        for path in files:
            click.echo(f"wrote {path}")
        click.echo("next: " + "; ".join(steps))


@click.command()
@click.argument("name", type=click.Choice(sorted(path.stem for path in SCHEMAS.glob("*.json"))))
def schema(name: str) -> None:
    """Print the JSON schema of what the command NAME prints with --json; `error` is that of errors.

    \b
    slomodel schema solve
    """
    text = (SCHEMAS / f"{name}.json").read_text(encoding="utf-8")
    click.echo(json.dumps(json.loads(text), indent=2, ensure_ascii=False))


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes commands and options in SHELL.

    \b
    slomodel completion bash >> ~/.bashrc
    slomodel completion fish > ~/.config/fish/completions/slomodel.fish
    """
    completion_class = get_completion_class(shell)
    assert completion_class is not None
    root = context.find_root().command
    click.echo(completion_class(root, {}, "slomodel", "_SLOMODEL_COMPLETE").source())


@click.command()
def lsp() -> None:
    """Serve an editor through the language server protocol, on standard input and output.

    Diagnostics are the messages of `slomodel check`; hover, completion, definitions, renaming,
    formatting and an outline are available. It needs the package pygls: pip install
    'slomodel[lsp]'.
    """
    with handled_errors(False):
        try:
            from slomodel.cli.language_server import serve
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
                raise
            message = "a language server needs the package `pygls`"
            remedy = "install it with `pip install 'slomodel[lsp]'`"
            raise DomainError(Diagnostic("E801", message, help=remedy)) from None
    sys.exit(serve(sys.stdin.buffer, sys.stdout.buffer))
