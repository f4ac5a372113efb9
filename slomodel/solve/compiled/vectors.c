/* Vectors: sums over many elements in eight partial sums, whose order does not depend on the machine. */
#include <math.h>
#include <string.h>
#include <time.h>

#define EPS 2.220446049250313e-16
#define LARGEST 1.7976931348623157e308

typedef double vec __attribute__((vector_size(64), aligned(8), may_alias));

static double dot(const double *a, const double *b, long n) {
    vec sums = {0.0};
    double rest = 0.0;
    long i = 0;
    for (; i + 8 <= n; i += 8) sums += *(const vec *)(a + i) * *(const vec *)(b + i);
    for (; i < n; i++) rest += a[i] * b[i];
    if (n < 8) return rest;
    return (((sums[0] + sums[4]) + (sums[2] + sums[6]))
            + ((sums[1] + sums[5]) + (sums[3] + sums[7]))) + rest;
}

static void add_multiple(double *a, double factor, const double *b, long n) {
    long i = 0;
    for (; i + 8 <= n; i += 8) *(vec *)(a + i) += factor * *(const vec *)(b + i);
    for (; i < n; i++) a[i] += factor * b[i];
}

static double larger(double a, double b) { return a > b ? a : b; }
static double smaller(double a, double b) { return a < b ? a : b; }

/* Euclidean norm, as that of norms.py. */
static double norm(const double *v, long n) {
    const double square = dot(v, v, n);
    if (1e-280 < square && square < 1e280) return sqrt(square);
    double most = 0.0, sum = 0.0;
    for (long i = 0; i < n; i++) {
        if (v[i] != v[i]) return v[i];
        most = larger(most, fabs(v[i]));
    }
    if (most == 0.0 || !isfinite(most)) return most;
    for (long i = 0; i < n; i++) sum += (v[i] / most) * (v[i] / most);
    return most * sqrt(sum);
}

/* <g, v>/|v| for vectors with their norms, both positive and finite. */
static double slope_along(const double *g, double gnorm, const double *v, double vnorm, long n) {
    const double product = dot(g, v, n);
    if (1e-280 < fabs(product) && fabs(product) < 1e280) return product / vnorm;
    double sum = 0.0;
    for (long i = 0; i < n; i++) sum += (g[i] / gnorm) * (v[i] / vnorm);
    return sum * gnorm;
}

static double finite_or_0(double a) { return isfinite(a) ? a : 0.0; }

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}
