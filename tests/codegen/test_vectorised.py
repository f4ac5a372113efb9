"""The compiler turns the passes of hot loops into vector instructions: its own report says so."""

import re
import shutil
import subprocess

import numpy as np
import pytest

import slomodel
from benchmarks.unseen_fourth import FOURTH
from benchmarks.unseen_models import MODELS
from benchmarks.unseen_more import MORE
from benchmarks.unseen_third import THIRD
from slomodel.codegen.native.compiler import compilers, flags_of
from slomodel.codegen.native.target import NATIVE

_LOOP = re.compile(r"#pragma GCC ivdep\n( *)for \(long i = 0; i < m; i\+\+\) \{")
_SHORTEST = 48
_COPY = re.compile(r"\w+\[i\] = \w+\[i( \* \d+)?\];")
_REPORT = re.compile(r"<stdin>:(\d+):\d+: optimized: +loop vectorized")


LONG = "dim N\ndata y[N]\nvar m, s, k init 1\nminimize sum(log(1 + (y - m)^2/(exp(s)*k^2)))"

RING = """dim T, n
data y[T, n], u0[n]
var k[n]
let u[t in T, i in n] = u[t-1, i]
    + exp(k[i]) * (u[t-1, (i+1) % n] - 2*u[t-1, i] + u[t-1, (i-1) % n])  first u0[i]
minimize sumsq(u - y)"""


def _is_gcc() -> bool:
    command = shutil.which("gcc")
    return command is not None and compilers()[:1] == (shutil.which("cc") or command,)


def _text(name: str) -> str:
    one = next(one for one in (*MODELS, *MORE, *THIRD, *FOURTH) if one.name == name)
    data = one.data(np.random.default_rng(0))
    compiled = slomodel.compile(one.source, data=data, backend="c")._compiled
    entry = compiled.derivatives.entry("value_and_gradient")
    return NATIVE.printed("own", entry, compiled._layout, compiled.numbers).text


def _blocked(text: str) -> set[int]:
    """The lines of loops over blocks that are long or of a length that the compiler does not know.

    Copies are left out: they become calls of memcpy, or read every k-th element.
    """
    lines = text.splitlines()
    found = set()
    for match in _LOOP.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        declared = next(one for one in reversed(lines[:line]) if "const long m = " in one)
        length = re.search(r"= (\d+);", declared)
        is_long = "?" in declared or (length is not None and int(length[1]) >= _SHORTEST)
        if is_long and not _COPY.fullmatch(lines[line].strip()):
            found.add(line)
    return found


@pytest.mark.skipif(not _is_gcc(), reason="reads the report of gcc")
@pytest.mark.parametrize("name", ["machine_failures", "perceptual_map", "pulse_train"])
def test_passes_over_blocks_are_vectorised(name: str) -> None:
    _check(_text(name))


@pytest.mark.skipif(not _is_gcc(), reason="reads the report of gcc")
def test_steps_of_a_stencil_are_vectorised() -> None:
    data = {"y": np.zeros((9, 60)), "u0": np.zeros(60)}
    compiled = slomodel.compile(RING, data=data, backend="c")._compiled
    entry = compiled.derivatives.entry("value_and_gradient")
    text = NATIVE.printed("own", entry, compiled._layout, compiled.numbers).text
    steps = text[text.index("for (long step = ") : text.rindex("slo_fill(")]
    assert steps.count("const long m = 58;") == 2, "forward and back"
    _check(text)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::slomodel.errors.ModelWarning")
@pytest.mark.skipif(not _is_gcc(), reason="reads the report of gcc")
@pytest.mark.parametrize("name", [one.name for one in (*MODELS, *MORE, *THIRD, *FOURTH)])
def test_passes_of_unseen_models_are_vectorised(name: str) -> None:
    _check(_text(name), 2)  # choices of which gcc makes branches, in 4 of the models


@pytest.mark.slow
@pytest.mark.skipif(not _is_gcc(), reason="reads the report of gcc")
def test_long_passes_are_vectorised() -> None:
    model = slomodel.compile(LONG, data={"y": np.arange(2000.0)}, backend="c")
    rays = model._rays
    assert not isinstance(rays, str)
    text = rays.source()
    assert "-fno-tree-pre" in flags_of(text)
    _check(text, 1)  # gcc may report a loop under the line of a statement


def _check(text: str, elsewhere: int = 0) -> None:
    flags = [one for one in flags_of(text) if one != "-shared"]
    call = ["gcc", *flags, "-DVECTOR_MATH=2", "-fopt-info-vec-optimized", "-S", "-o", "/dev/null"]
    ended = subprocess.run(
        [*call, "-x", "c", "-"], input=text, capture_output=True, text=True, check=True
    )
    vectorised = {int(line) for line in _REPORT.findall(ended.stderr)}
    wanted = _blocked(text)
    assert wanted
    assert len(wanted - vectorised) <= elsewhere
