"""The CUDA C text before all kernels: no headers, as NVRTC has none, and no templates."""

from __future__ import annotations

from slomodel.codegen.loops.text import helpers

THREADS = 256
"""Threads of a block; the reductions in the text depend on it."""

_HEAD = """
#define INFINITY __longlong_as_double(0x7ff0000000000000LL)
#define NAN __longlong_as_double(0x7ff8000000000000LL)
"""

_DOUBLES = """\
static inline double slo_plus(double a, double b) { return a + b; }
static inline double slo_larger(double a, double b) { return a > b || a != a ? a : b; }
static inline double slo_smaller(double a, double b) { return a < b || a != a ? a : b; }
"""

_BLOCKS = """
/* Joins the values of all threads of a block whose numbers agree modulo `width`, always in the
   same order; thread t < width gets the total of its own. Every thread has to call it. */
#define BLOCK(name, join) \\
    static inline double name(double *shared, double value, int width) { \\
        const int t = threadIdx.x; \\
        shared[t] = value; \\
        __syncthreads(); \\
        for (int half = 128; half >= width; half >>= 1) { \\
            if (t < half) shared[t] = join(shared[t], shared[t + half]); \\
            __syncthreads(); \\
        } \\
        return t < width ? shared[t] : 0.0; \\
    }
BLOCK(slo_sum_block, slo_plus)
BLOCK(slo_max_block, slo_larger)
BLOCK(slo_min_block, slo_smaller)
"""


def prelude(text: str, single: bool) -> str:
    """Types, the scalar functions that a text calls, and reductions over a block."""
    kind = f"typedef {'float' if single else 'double'} real;"
    device = "static __device__ __forceinline__ "
    common = _HEAD + helpers(text) + _DOUBLES + _BLOCKS
    return kind + common.replace("static inline ", device)
