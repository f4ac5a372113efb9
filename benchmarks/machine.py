"""The machine in words, and processes with other settings of memory and threads."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import numexpr
import numpy as np
from threadpoolctl import threadpool_info

# glibc gives freed blocks of 128 KiB and more back to the system and faults them in again at the
# next call; if it retains them, a NumPy process is up to three times as fast.
MALLOC: dict[str, dict[str, str]] = {
    "kept": {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)},
    "default": {},
}
"""Environment of each memory setting."""

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def run_again(script: str, arguments: Sequence[str], malloc: str, threads: int) -> object:
    """The JSON that a script prints in its own process, with its standard error passed on.

    Raises CalledProcessError if it ends with an error.
    """
    kept = {key: value for key, value in os.environ.items() if not key.startswith("MALLOC_")}
    environment = kept | MALLOC[malloc] | dict.fromkeys(_THREADS, str(threads))
    environment["NUMEXPR_MAX_THREADS"] = str(threads)
    ended = subprocess.run(
        [sys.executable, script, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(ended.stdout)


def description(threads: int) -> dict[str, str]:
    """Processor, cores, threads, versions, load and date."""
    blas = sorted(
        {
            f"{one['internal_api']} {one['version']} ({one.get('architecture')})"
            for one in threadpool_info()
            if one["user_api"] == "blas"
        }
    )
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "threads": str(threads),
        "python": f"{platform.python_version()}, {' '.join(platform.libc_ver())}",
        "libraries": f"numpy {np.__version__}, numexpr {numexpr.__version__}"
        + (" with VML" if numexpr.use_vml else ""),
        "blas": ", ".join(blas),
        "load": " ".join(f"{load:.1f}" for load in _load()),
        "date": datetime.now(UTC).date().isoformat(),
    }


def _processor() -> str:
    """Name and vector width, if the system reports them."""
    file = Path("/proc/cpuinfo")
    facts: Mapping[str, str] = {}
    if file.exists():
        lines = (line.split(":", 1) for line in file.read_text(encoding="utf-8").splitlines())
        facts = {pair[0].strip(): pair[1].strip() for pair in lines if len(pair) == 2}
    name = facts.get("model name") or platform.processor() or platform.machine()
    flags = facts.get("flags", "").split()
    width = next((w for w in ("avx512f", "avx2") if w in flags), None)
    return f"{name} ({width})" if width else name


def _load() -> tuple[float, ...]:
    return os.getloadavg() if hasattr(os, "getloadavg") else ()
