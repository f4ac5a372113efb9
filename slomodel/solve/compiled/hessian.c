/* The matrices of newton.py for few unknowns, by rotations of pairs of unknowns (Jacobi 1846). */

/* A (n, n) symmetric, overwritten, = V' diag(values) V; V holds an eigenvector after the other. */
static void eigenvectors(double *A, long n, double *values, double *V) {
    memset(V, 0, n * n * sizeof(double));
    for (long k = 0; k < n; k++) V[k * n + k] = 1.0;
    for (int sweep = 0, rotated = 1; rotated && sweep < MOST_SWEEPS; sweep++) {
        rotated = 0;
        for (long p = 0; p < n; p++)
            for (long q = p + 1; q < n; q++) {
                const double off = A[p * n + q], one = A[p * n + p], other = A[q * n + q];
                if (!(fabs(off) > EPS * sqrt(fabs(one)) * sqrt(fabs(other))) || off == 0.0) continue;
                rotated = 1;
                const double z = (other - one) / (2.0 * off);
                const double t = (z < 0.0 ? -1.0 : 1.0) / (fabs(z) + sqrt(1.0 + z * z));
                const double c = 1.0 / sqrt(1.0 + t * t), s = c * t;
                for (long i = 0; i < n; i++) {
                    const double a = A[p * n + i], b = A[q * n + i];
                    A[p * n + i] = c * a - s * b;
                    A[q * n + i] = s * a + c * b;
                }
                for (long i = 0; i < n; i++) {
                    const double a = A[i * n + p], b = A[i * n + q], v = V[p * n + i], w = V[q * n + i];
                    A[i * n + p] = c * a - s * b;
                    A[i * n + q] = s * a + c * b;
                    V[p * n + i] = c * v - s * w;
                    V[q * n + i] = s * v + c * w;
                }
                A[p * n + q] = A[q * n + p] = 0.0;
            }
    }
    for (long k = 0; k < n; k++) values[k] = A[k * n + k];
}

/* The scaling of the variables that brings the diagonal of H to +-1 where possible. */
static void balance(const double *H, long n, double eps, double *scale) {
    for (long i = 0; i < n; i++) {
        double size = fabs(H[i * n + i]), rest = 0.0, most = 0.0;
        for (long j = 0; j < n; j++) {
            const double h = fabs(H[i * n + j]), own = fabs(H[j * n + j]);
            if (own > 0.0) rest = larger(rest, h * (h * (1.0 / own)));
            most = larger(most, h);
        }
        size = larger(size, eps * rest);
        if (!(size > 0.0)) size = eps * most;
        scale[i] = size > 0.0 ? 1.0 / sqrt(size) : 1.0;
    }
}

/* The Hessian at x, its scaling in `s`, its positive eigenvalues in `y`; 0 if it is 0 or not finite. */
static int decomposed_hessian(LoopState *l, double *x) {
    const long n = l->n;
    double *H = l->hessian, *A = l->scaled, *scale = l->s, *values = l->y;
    void *const held[] = {l->product_table[0], l->product_table[1], l->product_table[2]};
    l->product_table[0] = x;
    l->product_table[1] = l->v;
    memset(l->v, 0, n * sizeof(double));
    for (long k = 0; k < n; k++) {
        l->v[k] = 1.0;
        l->product_table[2] = A + k * n;
        l->product(l->product_table);
        l->v[k] = 0.0;
    }
    memcpy(l->product_table, held, sizeof(held));
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) {
            H[i * n + j] = 0.5 * (l->sign * A[i * n + j] + l->sign * A[j * n + i]);
            if (!isfinite(H[i * n + j])) return 0;
        }
    balance(H, n, l->eps, scale);
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) A[i * n + j] = scale[i] * H[i * n + j] * scale[j];
    eigenvectors(A, n, values, l->eigenvectors);
    double most = 0.0;
    for (long k = 0; k < n; k++) most = larger(most, fabs(values[k]));
    for (long k = 0; k < n; k++) values[k] = larger(fabs(values[k]), SMALLEST * l->eps * most);
    return most > 0.0;
}

static int are_finite(const double *a, long n) {
    for (long i = 0; i < n; i++)
        if (!isfinite(a[i])) return 0;
    return 1;
}

/* The Hessian at x, and its inverse with positive eigenvalues; 0 without it. Eigenvalues are raised
   as in newton.py, for the value and gradient at x. */
static int inverse_at(LoopState *l, double *x, double f, const double *g) {
    const long n = l->n;
    const double longest = larger(l->farthest, norm(x, n));
    if (!decomposed_hessian(l, x)) return 0;
    memset(l->inverse, 0, n * n * sizeof(double));
    for (long k = 0; k < n; k++) {
        for (long i = 0; i < n; i++) l->w[i] = l->eigenvectors[k * n + i] * l->s[i];
        const double length = norm(l->w, n) / longest;
        l->y[k] = larger(l->y[k], fabs(dot(g, l->w, n)) * length);
        l->y[k] = larger(l->y[k], l->eps * fabs(f) * length * length);
        for (long i = 0; i < n; i++) add_multiple(l->inverse + i * n, l->w[i] / l->y[k], l->w, n);
    }
    return are_finite(l->inverse, n * n);
}

/* The same at the point in `points`. */
long inverse_hessian(LoopState *l) { return inverse_at(l, l->points, l->f, l->points + l->n); }

/* The Hessian at x with positive eigenvalues, in `model`; 0 without it. It counts as n products. */
static int positive_hessian(LoopState *l, double *x) {
    const long n = l->n;
    l->nhev += n;
    if (!decomposed_hessian(l, x)) return 0;
    memset(l->model, 0, n * n * sizeof(double));
    for (long k = 0; k < n; k++) {
        for (long i = 0; i < n; i++) l->w[i] = l->eigenvectors[k * n + i] / l->s[i];
        for (long i = 0; i < n; i++) add_multiple(l->model + i * n, l->w[i] * l->y[k], l->w, n);
    }
    return are_finite(l->model, n * n);
}
