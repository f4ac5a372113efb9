"""Shared fixtures: golden texts and the Hypothesis profiles."""

import gc
import os
import signal
from collections.abc import Callable
from pathlib import Path

import hypothesis
import pytest

from tests.marks import leave_to_slow_runs

# Most tests do not depend on the backend: they do not wait for a C compiler.
os.environ.setdefault("SLOMODEL_BACKEND", "numexpr")

GOLDEN = Path(__file__).parent / "golden"

hypothesis.settings.register_profile("default", deadline=None)
hypothesis.settings.register_profile(
    "ci", max_examples=50, deadline=None, derandomize=True, print_blob=True
)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """A job in the background of a shell ignores Ctrl-C, and so would the processes it starts."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--golden` rewrites the expected texts instead of comparing with them."""
    parser.addoption("--golden", action="store_true", help="rewrite tests/golden")


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark as slow what `sampled` leaves out; with `--golden`, run only what has golden texts."""
    leave_to_slow_runs(items)
    if config.getoption("--golden"):
        rewriting = [item for item in items if "golden" in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=[item for item in items if item not in rewriting])
        items[:] = rewriting


def pytest_collection_finish() -> None:
    """Leave the objects that collection has created out of all later garbage collections."""
    gc.freeze()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)` asserts that `text` is the content of `tests/golden/<name>`."""
    rewrite = bool(request.config.getoption("--golden"))

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if rewrite:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            return
        assert path.is_file(), f"{name} is not in tests/golden: run `make golden`, then read it"
        assert text == path.read_text(encoding="utf-8")

    return compare
