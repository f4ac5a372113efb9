"""The C text before every unit: types, scalar functions, sums, calls of BLAS."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from slomodel.codegen.loops.nest import Computed, Operand
from slomodel.codegen.loops.text import called, helpers
from slomodel.functions import add, sub
from slomodel.ir.function import ScalarFunction, every_function

_ONE_CALL = re.compile(r"(\w+)\(([^()]*)\)")


def prelude(text: str, single: bool) -> str:
    """The type `real`, and the definitions in terms of it that the functions of a text need."""
    # The macros come after the declarations that they would change.
    names = _macros(text) if single else ""
    kind = f"typedef {'float' if single else 'double'} real;\n"
    return kind + _TYPES + _declarations(text) + names + _BRANCHES + helpers(text) + _LOOPS


def _macros(text: str) -> str:
    """Macros by which a text in single precision calls the C library's float functions."""
    names = sorted({name for one in called(text) for name in one.c.library})
    return "".join(f"#define {name} {name}f\n" for name in names)


def _declarations(text: str) -> str:
    """Functions of the C library that a text calls, with the vector forms that they have."""
    levels = {name: level for one in called(text) for name, level in one.c.library.items()}
    binary = {name for one in every_function() for name in _binary(one)}
    lines = []
    for name, level in sorted(levels.items()):
        vectors = f"VECTOR_{level} " if level else ""
        for real, end in (("double", ""), ("float", "f")):
            operands = f"{real}, {real}" if name in binary else real
            lines.append(f"{vectors}{real} {name}{end}({operands});\n")
    return "".join(lines)


def _binary(function: ScalarFunction) -> list[str]:
    """The library functions with two arguments that the spelling of a record calls."""
    calls = _ONE_CALL.findall(function.spelling.get("c", ""))
    return [name for name, operands in calls if operands.count(",") == 1]


_TYPES = """
#define NAN __builtin_nan("")
#define INFINITY __builtin_inf()
#define ALIGNED __attribute__((aligned(64)))

/* Which functions have vector forms: 2 all those of glibc 2.35, 1 those of 2.22, 0 none. */
#if VECTOR_MATH >= 2
#define VECTOR_2 __attribute__((simd("notinbranch"), const))
#else
#define VECTOR_2 __attribute__((const))
#endif
#if VECTOR_MATH >= 1
#define VECTOR_1 __attribute__((simd("notinbranch"), const))
#else
#define VECTOR_1 __attribute__((const))
#endif
"""

_BRANCHES = """
/* gcc 12 makes wrong code of short unrolled loops that store several truth values. */
#if defined(__GNUC__) && !defined(__clang__)
#define NO_SLP __attribute__((optimize("no-tree-slp-vectorize")))
#else
#define NO_SLP
#endif

/* After this a compiler no longer knows what it has stored: with AVX-512, gcc 12 folds comparisons
   of arrays that are all known, such as 0, 1, 2 .. with 11, to wrong truth values. */
#if defined(__GNUC__)
#define FORGET(a) __asm__ volatile("" : : "r"(a) : "memory")
#else
#define FORGET(a) (void)(a)
#endif

/* Operands are read before they are chosen from: gcc 12 makes wrong code of elements that are read
   under a condition (`p[i] ? q[i] : 0.0` in short loops with masked loads). */
"""

_LOOPS = r"""
/* Whether x is not the point that was kept, or none was. */
static inline int slo_differs(const real *kept, const real *x, long n) {
    return kept[n] == 0 || __builtin_memcmp(kept, x, n * sizeof(real));
}
/* How many of m whole numbers, from the first one on, differ from their neighbours by `step`. */
static inline long slo_run(const long *a, long step, long m) {
    long i = 1;
    for (; i + 8 <= m; i += 8) {
        long other = 0;
        for (int k = 0; k < 8; k++) other |= a[i + k] ^ (a[0] + (i + k) * step);
        if (other) break;
    }
    for (; i < m; i++)
        if (a[i] != a[0] + i * step) break;
    return i;
}
static inline long slo_cut(long k, long most) { return k < 0 ? 0 : k > most ? most : k; }
static inline void slo_fill(real *a, long m, real value) {
    for (long i = 0; i < m; i++) a[i] = value;
}

/* Neighbouring elements of an array, from any element on. */
typedef real slo_vec
    __attribute__((vector_size(8 * sizeof(real)), aligned(sizeof(real)), may_alias));
typedef real slo_half
    __attribute__((vector_size(4 * sizeof(real)), aligned(sizeof(real)), may_alias));
typedef double slo_sums __attribute__((vector_size(8 * sizeof(double))));
static inline slo_sums slo_at(const real *a) {
    return __builtin_convertvector(*(const slo_vec *)a, slo_sums);
}
static inline double slo_joined(slo_sums a) {
    return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
}

/* A reduction is a function of its own where it is long or of a length that is not known: a copy in
   every loop would take half of the time of the compiler. */
#define ALWAYS static inline __attribute__((always_inline))
#define REDUCTION(type, name, parameters, arguments) \
    static __attribute__((noinline)) type name##_called parameters { \
        return name##_inline arguments; \
    } \
    ALWAYS type name parameters { \
        const int is_short = __builtin_constant_p(m) && m <= 64; \
        return is_short ? name##_inline arguments : name##_called arguments; \
    }

/* Many sums at a time: no addition waits for the last one, and the rounding is less. */
ALWAYS double slo_total_inline(const real *a, long m) {
    slo_sums s0 = {0.0}, s1 = {0.0}, s2 = {0.0}, s3 = {0.0};
    long i = 0;
    for (; i + 32 <= m; i += 32) {
        s0 += slo_at(a + i), s1 += slo_at(a + i + 8);
        s2 += slo_at(a + i + 16), s3 += slo_at(a + i + 24);
    }
    for (; i + 8 <= m; i += 8) s0 += slo_at(a + i);
    double rest = 0.0;
    for (; i < m; i++) rest += a[i];
    return slo_joined((s0 + s1) + (s2 + s3)) + rest;
}
REDUCTION(double, slo_total, (const real *a, long m), (a, m))

static __attribute__((noinline, unused)) double slo_rows_total(const double *a, long m) {
    double part[8] = {0.0};
    for (long i = 0; i < m; i++) part[i & 7] += a[i];
    for (int k = 0; k < 4; k++) part[k] += part[k + 4];
    return (part[0] + part[2]) + (part[1] + part[3]);
}

ALWAYS double slo_dot_inline(const real *a, const real *b, long m) {
    slo_sums s0 = {0.0}, s1 = {0.0}, s2 = {0.0}, s3 = {0.0};
    long i = 0;
    for (; i + 32 <= m; i += 32) {
        s0 += slo_at(a + i) * slo_at(b + i), s1 += slo_at(a + i + 8) * slo_at(b + i + 8);
        s2 += slo_at(a + i + 16) * slo_at(b + i + 16);
        s3 += slo_at(a + i + 24) * slo_at(b + i + 24);
    }
    for (; i + 8 <= m; i += 8) s0 += slo_at(a + i) * slo_at(b + i);
    double rest = 0.0;
    for (; i < m; i++) rest += a[i] * b[i];
    return slo_joined((s0 + s1) + (s2 + s3)) + rest;
}
REDUCTION(double, slo_dot, (const real *a, const real *b, long m), (a, b, m))

#define EXTREME(name, start) \
    ALWAYS real name##_of_inline(const real *a, long m) { \
        real part[8] = {start, start, start, start, start, start, start, start}; \
        const long whole = m & ~7L; \
        for (long i = 0; i < whole; i += 8) \
            for (int k = 0; k < 8; k++) part[k] = name(part[k], a[i + k]); \
        for (long i = whole; i < m; i++) part[i - whole] = name(part[i - whole], a[i]); \
        for (int k = 1; k < 8; k++) part[0] = name(part[0], part[k]); \
        return part[0]; \
    } \
    REDUCTION(real, name##_of, (const real *a, long m), (a, m))
EXTREME(slo_max, -INFINITY)
EXTREME(slo_min, INFINITY)

/* A sum of many totals with what its roundings lost (Neumaier). */
static inline void slo_add(double *sum, double *lost, double x) {
    double t = *sum + x;
    *lost += __builtin_fabs(*sum) >= __builtin_fabs(x) ? (*sum - t) + x : (x - t) + *sum;
    *sum = t;
}
static inline double slo_settled(double sum, double lost) {
    double all = sum + lost;
    return all == all ? all : sum;
}

static inline real slo_across(slo_vec a) {
    return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
}

/* While a product runs, BLAS uses one thread: the bits would depend on the number of its own, and
   threads that share parts of products would each start others. Its number is that of the whole
   process, so that it is restored by the last of those that run at a time. */
typedef struct {
    int (*get)(void);
    void (*set)(int);
    long locked, users, before;
} slo_alone;
static inline slo_alone *slo_locked(void *const *blas) {
    slo_alone *one = blas[7];
    for (; one && __atomic_exchange_n(&one->locked, 1, __ATOMIC_ACQUIRE);) continue;
    return one;
}
static inline void slo_begin(void *const *blas) {
    slo_alone *one = slo_locked(blas);
    if (!one) return;
    if (one->users++ == 0) {
        one->before = one->get();
        if (one->before != 1) one->set(1);
    }
    __atomic_store_n(&one->locked, 0, __ATOMIC_RELEASE);
}
static inline void slo_end(void *const *blas) {
    slo_alone *one = slo_locked(blas);
    if (!one) return;
    if (--one->users == 0 && one->before != 1) one->set((int)one->before);
    __atomic_store_n(&one->locked, 0, __ATOMIC_RELEASE);
}

typedef void gemm_call(char *, char *, int *, int *, int *, real *, const real *, int *,
                       const real *, int *, real *, real *, int *);
typedef void gemv_call(char *, int *, int *, real *, const real *, int *, const real *, int *,
                       real *, real *, int *);
static inline void slo_gemm(void *const *blas, char ta, char tb, int m, int n, int k,
                            const real *a, int lda, const real *b, int ldb, real *c, int ldc) {
    real one = 1, zero = 0;
    slo_begin(blas);
    ((gemm_call *)blas[0])(&ta, &tb, &m, &n, &k, &one, a, &lda, b, &ldb, &zero, c, &ldc);
    slo_end(blas);
}
static inline void slo_gemv(void *const *blas, char ta, int m, int n, const real *a, int lda,
                            const real *x, int incx, real *y, int incy) {
    real one = 1, zero = 0;
    slo_begin(blas);
    ((gemv_call *)blas[1])(&ta, &m, &n, &one, a, &lda, x, &incx, &zero, y, &incy);
    slo_end(blas);
}
"""

SHARES = r"""
#include <pthread.h>
#include <time.h>

/* A loop in parts: `run` does part k and leaves its totals in `out`. A thread that is late finds
   nothing left to do; nobody waits for it, and the last user of the job frees it. */
typedef void slo_part(void *const *c, const real *in, long k, double *out);
typedef struct {
    slo_part *run;
    void *const *c;
    const real *in;
    double *out;
    long parts, next, done, users;
} slo_job;
static void *slo_take(void *given) {
    slo_job *job = given;
    long k, parts = job->parts;
    while ((k = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED)) < parts) {
        job->run(job->c, job->in, k, job->out);
        __atomic_fetch_add(&job->done, 1, __ATOMIC_RELEASE);
    }
    return 0;
}
static void slo_leave(slo_job *job) {
    if (__atomic_fetch_sub(&job->users, 1, __ATOMIC_ACQ_REL) == 1) __builtin_free(job);
}
static void *slo_help(void *given) {
    slo_take(given);
    slo_leave(given);
    return 0;
}

/* The least times of a loop with one thread and with several. Now and then both are tried: where
   other processes hold the processors, helpers that have to wait make a loop slower. */
typedef struct {
    long calls;
    double least[2];
} slo_times;
static double slo_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}
static int slo_several(slo_times *known) {
    long call = known->calls++ % 256;
    if (call == 0) known->least[0] = known->least[1] = INFINITY;
    return call < 4 ? 1 - call % 2 : known->least[1] < known->least[0];
}
static void slo_share_among(slo_job given, long threads) {
    slo_job *job = threads > 1 ? __builtin_malloc(sizeof given) : 0;
    if (!job) {
        slo_take(&given);
        return;
    }
    *job = given;
    for (long n = 1; n < threads && n < given.parts; n++) {
        pthread_t other;
        __atomic_fetch_add(&job->users, 1, __ATOMIC_RELAXED);
        if (pthread_create(&other, 0, slo_help, job)) {
            __atomic_fetch_sub(&job->users, 1, __ATOMIC_RELAXED);
            break; /* fewer threads do the same */
        }
        pthread_detach(other);
    }
    slo_take(job);
    while (__atomic_load_n(&job->done, __ATOMIC_ACQUIRE) < given.parts) sched_yield();
    slo_leave(job);
}
static void slo_share(slo_job given, long threads, slo_times *known) {
    if (threads < 2) {
        slo_take(&given);
        return;
    }
    int several = slo_several(known);
    double begin = slo_now();
    slo_share_among(given, several ? threads : 1);
    double time = slo_now() - begin;
    if (time < known->least[several]) known->least[several] = time;
}
static inline void slo_copy(real *a, const real *b, long m) {
    for (long i = 0; i < m; i++) a[i] = b[i];
}
static inline void slo_join(real *a, const real *b, long m) {
    for (long i = 0; i < m; i++) a[i] += b[i];
}

/* A product in parts of `step` rows of the result, columns, or terms of its sums (axis 0, 1, 2).
   Sums of terms go to `sums`, one after another, and are added in the order of the parts. With
   `tb` 'V' it is one of a matrix and a vector b, with distances ldb and ldc of elements. */
typedef struct {
    void *const *blas;
    char ta, tb;
    int m, n, k;
    const real *a;
    int lda;
    const real *b;
    int ldb;
    real *c;
    int ldc, axis;
    long step;
    real *sums;
} slo_product;
static void slo_multiply(void *const *given, const real *in, long part, double *out) {
    const slo_product *p = (const void *)given;
    const int axis = p->axis, all = axis == 0 ? p->m : axis == 1 ? p->n : p->k;
    const long from = part * p->step;
    const int size = (int)(all - from < p->step ? all - from : p->step);
    const int a_runs = (p->ta == 'N') == (axis == 0);
    const int m = axis == 0 ? size : p->m, n = axis == 1 ? size : p->n, k = axis == 2 ? size : p->k;
    const real *const a = axis == 1 ? p->a : p->a + (a_runs ? from : from * p->lda);
    real *c = p->c;
    (void)in, (void)out;
    if (p->tb == 'V') {
        const real *const x = axis == 0 ? p->b : p->b + from * p->ldb;
        real *const y = axis == 0 ? c + from * p->ldc : p->sums + part * m;
        const int turned = p->ta == 'T';
        slo_gemv(p->blas, p->ta, turned ? k : m, turned ? m : k, a, p->lda, x, p->ldb, y,
                 axis == 0 ? p->ldc : 1);
        return;
    }
    const int b_runs = (p->tb == 'N') == (axis == 2);
    const real *const b = axis == 0 ? p->b : p->b + (b_runs ? from : from * p->ldb);
    c = axis == 0 ? c + from : axis == 1 ? c + from * p->ldc : p->sums + part * m * n;
    slo_gemm(p->blas, p->ta, p->tb, m, n, k, a, p->lda, b, p->ldb, c, axis == 2 ? m : p->ldc);
}
static void slo_share_product(slo_product one, slo_times *known) {
    void *const *const blas = one.blas;
    const int axis = one.axis;
    const long all = axis == 0 ? one.m : axis == 1 ? one.n : one.k;
    const long parts = (all + one.step - 1) / one.step, m = one.m, n = one.n;
    const long down = one.tb == 'V' ? one.ldc : 1, right = one.tb == 'V' ? 1 : one.ldc;
    if (axis == 2) one.sums = __builtin_malloc(parts * m * n * sizeof(real));
    if (!blas[7] || (axis == 2 && !one.sums)) {
        one.axis = 0, one.step = m; /* BLAS has threads of its own, or there is no memory */
        slo_multiply((void *const *)&one, 0, 0, 0);
        return;
    }
    const slo_job job = {slo_multiply, (void *const *)&one, 0, 0, parts, 0, 0, 1};
    slo_begin(blas); /* once for all parts */
    slo_share(job, (long)blas[2], known);
    slo_end(blas);
    if (axis < 2) return;
    for (long j = 0; j < n; j++)
        for (long i = 0; i < m; i++) {
            double sum = 0.0;
            for (long part = 0; part < parts; part++) sum += one.sums[(part * n + j) * m + i];
            one.c[i * down + j * right] = sum;
        }
    __builtin_free(one.sums);
}
static inline void slo_shared_gemm(slo_times *known, int axis, long step, void *const *blas,
                                   char ta, char tb, int m, int n, int k, const real *a, int lda,
                                   const real *b, int ldb, real *c, int ldc) {
    const slo_product one = {blas, ta, tb, m, n, k, a, lda, b, ldb, c, ldc, axis, step, 0};
    slo_share_product(one, known);
}
static inline void slo_shared_gemv(slo_times *known, int axis, long step, void *const *blas,
                                   char ta, int m, int n, const real *a, int lda, const real *x,
                                   int incx, real *y, int incy) {
    const int rows = ta == 'N' ? m : n, terms = ta == 'N' ? n : m;
    const slo_product one = {blas, ta,   'V', rows, 1,    terms, a, lda,
                             x,    incx, y,   incy, axis, step,  0};
    slo_share_product(one, known);
}
"""
"""Definitions for texts with loops or products that are divided among threads."""

FUSED_NAME = "slo_fused"
FUSED = f"""
/* a b + c, the product rounded or not: one instruction where the processor has it. Only of a
   product that nothing else reads: it has one value then. */
static inline real {FUSED_NAME}(real a, real b, real c) {{
#if defined(__FP_FAST_FMA) && defined(__FP_FAST_FMAF)
    return sizeof(real) == sizeof(double) ? __builtin_fma(a, b, c) : __builtin_fmaf(a, b, c);
#else
    return a * b + c;
#endif
}}
"""


def fused(
    function: ScalarFunction | None,
    operands: Sequence[Operand],
    texts: Sequence[str],
    factors: Mapping[int, Sequence[str]],
) -> str | None:
    """The text of a sum or difference with a product among its operands; None for others.

    `texts` are those of the operands, and `factors` those of products by their statements.
    """
    if function not in (add, sub):
        return None
    for k, operand in enumerate(operands):
        if isinstance(operand, Computed) and operand.statement in factors:
            left, right = factors[operand.statement]
            other = texts[1 - k]
            if function is sub:
                left, other = (left, f"(-{other})") if k == 0 else (f"(-{left})", other)
            return f"{FUSED_NAME}({left}, {right}, {other})"
    return None
