"""The forward algorithm, y_tk = e_tk + log Σ_j exp(y_(t-1)j + P_jk), in probabilities.

In logarithms each step waits for an exponential and a logarithm of every state. The probabilities
a_k = exp(y_k - base) wait for products and sums alone: those of E_jk = exp(P_jk - C) and of the
exponentials of e, which are computed in vectors, like the logarithms of a block at its end. They
are scaled by powers of two, whose exponents are exact, and the base carries what its roundings
lost. Where a sum is so small that terms of it may have underflowed, or is not a number, the rest
of the block goes in logarithms.
"""

from __future__ import annotations

from slomodel.codegen.loops.nest import LogProducts, TimeLoop
from slomodel.codegen.native.names import EntryNames

NAME = "slo_log_products"

DEFINITION = r"""
/* A step in logarithms; y[-K], .., y[-1] are the last states. */
static void slo_log_step(real *y, const real *e, long by_state, const real *P, long pj, long pk,
                         long K) {
    for (long k = 0; k < K; k++) {
        double top = -INFINITY, sum = 0.0;
        for (long j = 0; j < K; j++) {
            const double one = (double)y[j - K] + P[j * pj + k * pk];
            top = one > top || one != one ? one : top;
        }
        const double shift = __builtin_fabs(top) < INFINITY ? top : 0.0;
        for (long j = 0; j < K; j++) sum += exp((double)y[j - K] + P[j * pj + k * pk] - shift);
        y[k] = e[k * by_state] + (shift + log(sum));
    }
}
static inline __attribute__((always_inline)) void slo_log_products(
    real *y, const real *e, long by_step, long by_state, const real *P, long pj, long pk,
    const long K, long n) {
    enum { BLOCK = 64, MOST = 24 };
    const double least = sizeof(real) == 8 ? 1e-150 : 1e-20, low = sizeof(real) == 8 ? 1e-20 : 1e-3;
    double E[MOST * MOST] ALIGNED, x[BLOCK * MOST] ALIGNED, tops[BLOCK], bases[BLOCK], a[MOST];
    double C = -INFINITY;
    for (long j = 0; j < K; j++)
        for (long k = 0; k < K; k++) C = P[j * pj + k * pk] > C ? P[j * pj + k * pk] : C;
    for (long j = 0; j < K; j++)
        for (long k = 0; k < K; k++) E[j * K + k] = P[j * pj + k * pk] - C;
    for (long i = 0; i < K * K; i++) E[i] = exp(E[i]);
    for (long s = 0; s < n; s += BLOCK) {
        const long m = n - s < BLOCK ? n - s : BLOCK;
        const real *const own = e + s * by_step;
        real *const to = y + s * K;
        double base = to[-K], lost = 0.0;
        for (long k = 1; k < K; k++) base = to[k - K] > base ? to[k - K] : base;
        for (long k = 0; k < K; k++) a[k] = exp(to[k - K] - base);
        for (long t = 0; t < m; t++) {
            double top = own[t * by_step];
            for (long k = 1; k < K; k++) {
                const double one = own[t * by_step + k * by_state];
                top = one > top ? one : top;
            }
            tops[t] = top;
            for (long k = 0; k < K; k++) x[t * K + k] = own[t * by_step + k * by_state] - top;
        }
        for (long i = 0; i < m * K; i++) x[i] = exp(x[i]);
        long t = 0;
        for (; t < m; t++) {
            double b[MOST], most = 0.0;
            int good = 1;
            for (long k = 0; k < K; k++) b[k] = a[0] * E[k];
            for (long j = 1; j < K; j++)
                for (long k = 0; k < K; k++) b[k] += a[j] * E[j * K + k];
            for (long k = 0; k < K; k++) good &= b[k] >= least;
            if (!good) break;
            slo_add(&base, &lost, C);
            bases[t] = base + lost;
            slo_add(&base, &lost, tops[t]);
            for (long k = 0; k < K; k++) {
                a[k] = b[k] * x[t * K + k];
                most = a[k] > most ? a[k] : most;
                x[t * K + k] = b[k];
            }
            if (most < low) {
                int power;
                __builtin_frexp(most, &power);
                const double scale = __builtin_ldexp(1.0, -power);
                for (long k = 0; k < K; k++) a[k] *= scale;
                slo_add(&base, &lost, power * 0.6931471805599453);
            }
        }
        for (long i = 0; i < t * K; i++) x[i] = log(x[i]);
        for (long i = 0; i < t; i++)
            for (long k = 0; k < K; k++)
                to[i * K + k] = own[i * by_step + k * by_state] + (bases[i] + x[i * K + k]);
        for (; t < m; t++) slo_log_step(to + t * K, own + t * by_step, by_state, P, pj, pk, K);
    }
}
"""


def log_product_lines(loop: TimeLoop, products: LogProducts, names: EntryNames) -> list[str]:
    """The statement that computes the states of a loop from step `first` on."""
    (begin,) = loop.begins
    number = loop.length - loop.first
    if number <= 0:
        return []
    terms, weights = products.terms.position, products.weights.position
    operands = (
        f"{names.base(begin.array)} + {loop.first * products.count}",
        f"{names.base(products.terms.array)} + {terms.offset}",
        *map(str, terms.strides),
        f"{names.base(products.weights.array)} + {weights.offset}",
        *map(str, weights.strides),
        str(products.count),
        str(number),
    )
    return [f"{NAME}({', '.join(operands)});"]
