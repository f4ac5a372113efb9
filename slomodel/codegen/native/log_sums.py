"""Running log-sum-exps, y_k = log(exp y_(k-1) + exp e_k), a block at a time.

Step by step each waits for an exponential and a logarithm. With the largest of a block as M, the
sums s_k of exp(e - M) wait for additions alone, and y_k = M + log s_k are computed in vectors. The
sums carry what their roundings lost, since log s_k is small where s_k is nearly 1. Where the first
sum of a block could underflow, or there are infinities, the block goes step by step.
"""

from __future__ import annotations

from math import prod

from slomodel.codegen.loops.nest import Element, TimeLoop
from slomodel.codegen.native.names import EntryNames

NAME = "slo_log_sums"

DEFINITION = r"""
static void slo_log_sums(real *y, long own, const real *e, long step, long n) {
    for (long s = 0; s < n; s += 256) {
        const long m = n - s < 256 ? n - s : 256;
        double t[256] ALIGNED, u[256] ALIGNED, v[256] ALIGNED;
        const double before = y[(s - 1) * own], first = e[s * step];
        double top = before, sum, lost = 0.0;
        for (long i = 0; i < m; i++) {
            t[i] = e[(s + i) * step];
            top = t[i] > top ? t[i] : top;
        }
        if (!(top - (before > first ? before : first) < (sizeof(real) == 8 ? 600.0 : 60.0))) {
            for (long i = s; i < s + m; i++) {
                const real a = y[(i - 1) * own], b = e[i * step], apart = a == b ? 0 : a - b;
                y[i * own] = slo_max(a, b) + log1p(exp(-__builtin_fabs(apart)));
            }
            continue;
        }
        for (long i = 0; i < m; i++) t[i] = exp(t[i] - top);
        sum = exp(before - top);
        for (long i = 0; i < m; i++) {
            const double all = sum + t[i], part = all - sum;
            lost += (sum - (all - part)) + (t[i] - part);
            t[i] = sum = all;
            u[i] = lost;
        }
        for (long i = 0; i < m; i++) v[i] = log1p((t[i] - 1.0) + u[i]);
        for (long i = 0; i < m; i++) u[i] = log(t[i] + u[i]);
        for (long i = 0; i < m; i++) {
            const double small = v[i], other = u[i];
            y[(s + i) * own] = top + (__builtin_fabs(t[i] - 1.0) < 0.5 ? small : other);
        }
    }
}
"""


def log_sum_lines(loop: TimeLoop, terms: Element, names: EntryNames) -> list[str]:
    """The statements that compute the states of a loop from step `first` on."""
    (begin,) = loop.begins
    count, number = prod(begin.shape[1:]), loop.length - loop.first
    if number <= 0:
        return []
    stride, *between = terms.position.strides
    state = f"{names.base(begin.array)} + {loop.first * count}"
    term = f"{names.base(terms.array)} + {terms.position.offset}"
    if not between:
        return [f"{NAME}({state}, {count}, {term}, {stride}, {number});"]
    call = f"{NAME}({state} + k, {count}, {term} + k * {between[0]}, {stride}, {number});"
    return [f"for (long k = 0; k < {count}; k++) {call}"]
