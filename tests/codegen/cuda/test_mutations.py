"""Faults injected into the generated text are detected: thread orders, array edges, values."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from codegen.cuda import standin
from codegen.cuda.everything import differs, evaluated

N = 257
BARRIER = "__syncthreads();"


def without_barrier(k: int) -> Callable[[str], str]:
    """The text without its k-th barrier."""

    def edit(text: str) -> str:
        parts = text.split(BARRIER)
        return BARRIER.join(parts[: k + 1]) + " " + BARRIER.join(parts[k + 1 :])

    return edit


def replaced(pattern: str, by: str, at: int = 0) -> Callable[[str], str]:
    """The text with one place of a pattern replaced."""

    def edit(text: str) -> str:
        found = list(re.finditer(pattern, text))[at]
        return text[: found.start()] + found.expand(by) + text[found.end() :]

    return edit


MUTATIONS = {
    "no barrier before the tree": without_barrier(0),
    "no barrier in the tree": without_barrier(1),
    "one element too many": replaced(rf"i < {N};", f"i <= {N};"),
    "one element too few": replaced(rf"i < {N};", f"i < {N - 1};"),
    "one place of a sum too many": replaced(rf"r < {N};", f"r <= {N};"),
    "one place of a sum too few": replaced(rf"r < {N};", f"r < {N - 1};"),
    "a constant of single precision": replaced(r"\b0\.1\b", "0.1f"),
    "a barrier for some threads": replaced(
        r"(double a0 = 0\.0;)", r"\1 if (threadIdx.x) __syncthreads();"
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fault_in_the_text_is_seen(name: str, cupy_on_cpu: type[standin.RawModule]) -> None:
    mutated: list[str] = []

    def edit(text: str) -> str:
        mutated.append(text)
        return MUTATIONS[name](text)

    cupy_on_cpu.edit = staticmethod(edit)
    try:
        seen = not differs(evaluated(N, "cupy", 1), evaluated(N, "numpy", 1)) < 1e-12
    except RuntimeError as fault:
        seen = "order of threads" in str(fault) or "threads reach" in str(fault)
        seen |= "beyond the end" in str(fault)
    finally:
        cupy_on_cpu.edit = staticmethod(lambda text: text)
    assert mutated
    assert seen


ASAN = """
import sys
from codegen.cuda import standin
standin.RawModule.flags = (*standin.FLAGS, "-g", "-fsanitize=address")
sys.modules["cupy"] = standin.module()
from codegen.cuda.everything import differs, evaluated
from codegen.cuda.test_mutations import MUTATIONS
assert differs(evaluated(33, "cupy"), evaluated(33, "numpy")) < 1e-12
print("clean", flush=True)
standin.RawModule.edit = staticmethod(MUTATIONS["one place of a sum too many"])
evaluated(257, "cupy", 1)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the sanitizer is preloaded as on Linux")
@pytest.mark.usefixtures("cupy_on_cpu")
def test_an_address_sanitizer_finds_nothing_in_it_and_a_fault_put_into_it() -> None:
    command = ["g++", "-print-file-name=libasan.so"]
    library = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    if not Path(library).is_absolute():
        pytest.skip("g++ has no address sanitizer here")
    tests = Path(__file__).parents[2]
    own = {
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": os.pathsep.join([str(tests), str(tests.parent)]),
    }
    done = subprocess.run(
        [sys.executable, "-c", ASAN],
        env=os.environ | own,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "clean\n", done.stderr
    assert done.returncode != 0
    assert re.search(r"AddressSanitizer: heap-buffer-overflow", done.stderr)
