"""The C text before every unit: types, special cases of functions, sums, calls of BLAS."""

SCALARS = """\
static inline real slo_where(real c, real a, real b) { return c != 0 ? a : b; }
static inline real slo_and(real a, real b) { return (a != 0) & (b != 0); }
static inline real slo_or(real a, real b) { return (a != 0) | (b != 0); }
static inline real slo_square(real x) { return x * x; }
static inline real slo_max(real a, real b) { return a > b || a != a ? a : b; }
static inline real slo_min(real a, real b) { return a < b || a != a ? a : b; }
static inline real slo_sign(real x) { return x != x ? x : (real)((x > 0) - (x < 0)); }
"""
"""Functions of numbers that C has not, or has otherwise; for CUDA too."""

PRELUDE = (
    r"""
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
VECTOR_1 double exp(double), log(double), sin(double), cos(double), pow(double, double);
VECTOR_2 double log1p(double), expm1(double), tan(double), tanh(double), sinh(double),
    cosh(double), atan(double), asinh(double), erf(double);
VECTOR_1 float expf(float), logf(float), sinf(float), cosf(float), powf(float, float);
VECTOR_2 float log1pf(float), expm1f(float), tanf(float), tanhf(float), sinhf(float),
    coshf(float), atanf(float), asinhf(float), erff(float);
double sqrt(double), fabs(double);
float sqrtf(float), fabsf(float);

/* Operands are read before they are chosen from: gcc 12 makes wrong code of elements that are read
   under a condition (`p[i] ? q[i] : 0.0` in short loops with masked loads). */
"""
    + SCALARS
    + r"""
/* Whether x is not the point that was kept, or none was. */
static inline int slo_differs(const real *kept, const real *x, long n) {
    return kept[n] == 0 || __builtin_memcmp(kept, x, n * sizeof(real));
}
static inline void slo_fill(real *a, long m, real value) {
    for (long i = 0; i < m; i++) a[i] = value;
}

/* Eight sums at a time: quick, and less rounding than one after another. */
static inline double slo_total(const real *a, long m) {
    double part[8] = {0.0};
    const long whole = m & ~7L;
    for (long i = 0; i < whole; i += 8)
        for (int k = 0; k < 8; k++) part[k] += a[i + k];
    for (long i = whole; i < m; i++) part[i - whole] += a[i];
    for (int k = 0; k < 4; k++) part[k] += part[k + 4];
    return (part[0] + part[2]) + (part[1] + part[3]);
}

static inline double slo_dot(const real *a, const real *b, long m) {
    double part[8] = {0.0};
    const long whole = m & ~7L;
    for (long i = 0; i < whole; i += 8)
        for (int k = 0; k < 8; k++) part[k] += a[i + k] * b[i + k];
    for (long i = whole; i < m; i++) part[i - whole] += a[i] * b[i];
    for (int k = 0; k < 4; k++) part[k] += part[k + 4];
    return (part[0] + part[2]) + (part[1] + part[3]);
}

#define EXTREME(name, start) \
    static inline real name##_of(const real *a, long m) { \
        real part[8] = {start, start, start, start, start, start, start, start}; \
        const long whole = m & ~7L; \
        for (long i = 0; i < whole; i += 8) \
            for (int k = 0; k < 8; k++) part[k] = name(part[k], a[i + k]); \
        for (long i = whole; i < m; i++) part[i - whole] = name(part[i - whole], a[i]); \
        for (int k = 1; k < 8; k++) part[0] = name(part[0], part[k]); \
        return part[0]; \
    }
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

typedef void gemm_call(char *, char *, int *, int *, int *, real *, const real *, int *,
                       const real *, int *, real *, real *, int *);
typedef void gemv_call(char *, int *, int *, real *, const real *, int *, const real *, int *,
                       real *, real *, int *);
static inline void slo_gemm(void *const *blas, char ta, char tb, int m, int n, int k,
                            const real *a, int lda, const real *b, int ldb, real *c, int ldc) {
    real one = 1, zero = 0;
    ((gemm_call *)blas[0])(&ta, &tb, &m, &n, &k, &one, a, &lda, b, &ldb, &zero, c, &ldc);
}
static inline void slo_gemv(void *const *blas, char ta, int m, int n, const real *a, int lda,
                            const real *x, int incx, real *y, int incy) {
    real one = 1, zero = 0;
    ((gemv_call *)blas[1])(&ta, &m, &n, &one, a, &lda, x, &incx, &zero, y, &incy);
}
"""
)

SINGLE = """
typedef float real;
#define exp expf
#define log logf
#define sin sinf
#define cos cosf
#define pow powf
#define log1p log1pf
#define expm1 expm1f
#define tan tanf
#define tanh tanhf
#define sinh sinhf
#define cosh coshf
#define atan atanf
#define asinh asinhf
#define erf erff
#define sqrt sqrtf
#define fabs fabsf
"""

SHARES = r"""
#include <pthread.h>

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
static void slo_share(slo_job given, long threads) {
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
static inline void slo_copy(real *a, const real *b, long m) {
    for (long i = 0; i < m; i++) a[i] = b[i];
}
static inline void slo_join(real *a, const real *b, long m) {
    for (long i = 0; i < m; i++) a[i] += b[i];
}
"""
"""For texts with loops that threads share."""
