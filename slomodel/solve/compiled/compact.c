/* B = theta I - W' M W of limited_memory.py in its compact form, W the rows Y and theta S, for steps
   over a box in many unknowns. Products of rows are those of their positions in memory. */

/* A (k, k) = LU by rows, with partial pivoting; 0 if it is singular. */
static int factor_lu(double *A, long *order, long k) {
    for (long i = 0; i < k; i++) {
        long most = i;
        for (long j = i + 1; j < k; j++)
            if (fabs(A[j * k + i]) > fabs(A[most * k + i])) most = j;
        order[i] = most;
        if (!(fabs(A[most * k + i]) > 0.0)) return 0;
        for (long j = 0; j < k && most != i; j++) {
            const double held = A[i * k + j];
            A[i * k + j] = A[most * k + j];
            A[most * k + j] = held;
        }
        for (long j = i + 1; j < k; j++) {
            A[j * k + i] /= A[i * k + i];
            add_multiple(A + j * k + i + 1, -A[j * k + i], A + i * k + i + 1, k - i - 1);
        }
    }
    return 1;
}

static void solve_lu(const double *A, const long *order, long k, double *b) {
    for (long i = 0; i < k; i++) {
        const double held = b[order[i]];
        b[order[i]] = b[i];
        b[i] = held;
    }
    for (long i = 0; i < k; i++) b[i] -= dot(A + i * k, b, i);
    for (long i = k - 1; i >= 0; i--)
        b[i] = (b[i] - dot(A + i * k + i + 1, b + i + 1, k - i - 1)) / A[i * k + i];
}

static double theta_of(const LoopState *l, double gnorm) {
    const double theta = l->count ? 1.0 / l->gamma : gnorm / l->first_length;
    return theta > 0.0 && isfinite(theta) ? theta : 1.0;
}

/* Add the products of the pairs that have been learned since, to those of all elements. */
static void update_products(LoopState *l) {
    const long n = l->n, rows = l->pair_rows, last = l->first + l->count;
    long missing = l->multiplied < 0 ? l->count : l->learned - l->multiplied;
    for (missing = missing < l->count ? missing : l->count; missing > 0; missing--) {
        const long a = (last - missing) % rows;
        for (long k = 0; k < l->count; k++) {
            const long b = (l->first + k) % rows;
            l->SS[a * rows + b] = l->SS[b * rows + a] = dot(l->S + a * n, l->S + b * n, n);
            l->YY[a * rows + b] = l->YY[b * rows + a] = dot(l->Y + a * n, l->Y + b * n, n);
            l->SY[a * rows + b] = dot(l->S + a * n, l->Y + b * n, n);
            l->SY[b * rows + a] = dot(l->S + b * n, l->Y + a * n, n);
        }
    }
    l->multiplied = l->learned;
}

/* Add `sign` times the products over some elements to those over the free ones, (m, m) each. */
static void add_products(LoopState *l, const long *positions, long count, double sign) {
    const long m = l->count;
    double *s = l->taken, *y = s + m * count;
    for (long k = 0; k < m; k++) {
        const double *S = row(l, l->S, k), *Y = row(l, l->Y, k);
        for (long i = 0; i < count; i++) {
            s[k * count + i] = S[positions[i]];
            y[k * count + i] = Y[positions[i]];
        }
    }
    for (long a = 0; a < m; a++)
        for (long b = 0; b < m; b++) {
            l->free_SY[a * m + b] += sign * dot(s + a * count, y + b * count, count);
            if (b > a) continue;
            l->free_SS[a * m + b] += sign * dot(s + a * count, s + b * count, count);
            l->free_YY[a * m + b] += sign * dot(y + a * count, y + b * count, count);
        }
}

/* Whether few digits of the products over the free elements have cancelled. */
static int are_resolved(const LoopState *l) {
    for (long k = 0; k < l->count; k++) {
        const long a = (l->first + k) % l->pair_rows, own = k * l->count + k;
        if (!(l->free_SS[own] >= RESOLVED * l->SS[a * l->pair_rows + a])) return 0;
        if (!(l->free_YY[own] >= RESOLVED * l->YY[a * l->pair_rows + a])) return 0;
    }
    return 1;
}

/* The products over the free elements anew: by those, or by the others if they are fewer. */
static void compute_free_products(LoopState *l, long count) {
    const long n = l->n, m = l->count, rows = l->pair_rows;
    if (2 * (n - count) < n) {
        long held = 0;
        for (long i = 0; i < n; i++)
            if (!l->moves_now[i]) l->changed[held++] = i;
        for (long a = 0; a < m; a++)
            for (long b = 0; b < m; b++) {
                const long at = (l->first + a) % rows * rows + (l->first + b) % rows;
                l->free_SS[a * m + b] = l->SS[at];
                l->free_SY[a * m + b] = l->SY[at];
                l->free_YY[a * m + b] = l->YY[at];
            }
        add_products(l, l->changed, held, -1.0);
        if (are_resolved(l)) return;
    }
    memset(l->free_SS, 0, m * m * sizeof(double));
    memset(l->free_SY, 0, m * m * sizeof(double));
    memset(l->free_YY, 0, m * m * sizeof(double));
    add_products(l, l->free, count, 1.0);
}

/* The same from those of the face before, in the same minimisation, where few elements differ. */
static void change_free_products(LoopState *l, long count, int is_first) {
    const long n = l->n;
    long freed = 0, held = n;
    double *before = l->moved_before, *now = l->moves_now;
    memcpy(before, now, n * sizeof(double));
    memset(now, 0, n * sizeof(double));
    for (long k = 0; k < count; k++) now[l->free[k]] = 1.0;
    for (long i = 0; i < n && !is_first; i++) {
        if (now[i] > before[i]) l->changed[freed++] = i;
        if (now[i] < before[i]) l->changed[--held] = i;
    }
    const long least = count < n - count ? count : n - count;
    if (is_first || freed + n - held > least) {
        compute_free_products(l, count);
        return;
    }
    add_products(l, l->changed, freed, 1.0);
    add_products(l, l->changed + held, n - held, -1.0);
    if (!are_resolved(l)) compute_free_products(l, count);
}

/* The inverse of M, (2m, 2m). */
static void inner(const LoopState *l, double theta, double *A) {
    const long m = l->count, k = 2 * m, rows = l->pair_rows;
    for (long a = 0; a < m; a++) {
        const long at = (l->first + a) % rows * rows;
        for (long b = 0; b < m; b++) {
            const long to = (l->first + b) % rows;
            A[a * k + b] = a == b ? -l->SY[at + to] : 0.0;
            A[(m + a) * k + b] = A[b * k + m + a] = b < a ? l->SY[at + to] : 0.0;
            A[(m + a) * k + m + b] = theta * l->SS[at + to];
        }
    }
}

/* W v (2m,). */
static void times_rows(const LoopState *l, double theta, const double *v, double *out) {
    for (long k = 0; k < l->count; k++) {
        out[k] = dot(row(l, l->Y, k), v, l->n);
        out[l->count + k] = theta * dot(row(l, l->S, k), v, l->n);
    }
}

/* out -= W' c. */
static void subtract_rows(const LoopState *l, double theta, const double *c, double *out) {
    for (long k = 0; k < l->count; k++) {
        add_multiple(out, -c[k], row(l, l->Y, k), l->n);
        add_multiple(out, -theta * c[l->count + k], row(l, l->S, k), l->n);
    }
}

/* Write Bs; the factors of the inverse of M are computed once per step. 0 if that is singular. */
static int compact_product(LoopState *l, const double *s, double *Bs) {
    const double theta = l->curvature;
    const long k = 2 * l->count;
    for (long i = 0; i < l->n; i++) Bs[i] = theta * s[i];
    if (!k) return 1;
    if (!l->has_factors) {
        update_products(l);
        inner(l, theta, l->factors);
        if (!factor_lu(l->factors, l->order, k)) return 0;
        l->has_factors = 1;
    }
    times_rows(l, theta, s, l->c);
    solve_lu(l->factors, l->order, k, l->c);
    subtract_rows(l, theta, l->c, Bs);
    return 1;
}

/* Write the minimiser d over the free elements, and Bd, as LimitedMemory.solve; 0 if that fails. */
static int compact_solve(LoopState *l, long count, const double *r, double *d, double *Bd) {
    const long n = l->n, m = l->count, k = 2 * m;
    const double theta = l->curvature;
    memset(d, 0, n * sizeof(double));
    for (long i = 0; i < count; i++) d[l->free[i]] = -r[l->free[i]] / theta;
    memset(Bd, 0, n * sizeof(double));
    if (m) {
        double *A = l->inner_matrix;
        update_products(l);
        change_free_products(l, count, !l->has_face);
        l->has_face = 1;
        inner(l, theta, A);
        for (long a = 0; a < m; a++)
            for (long b = 0; b < m; b++) {
                const long low = (a > b ? a : b) * m + (a > b ? b : a);
                A[a * k + b] -= l->free_YY[low] / theta;
                A[(m + a) * k + b] -= l->free_SY[a * m + b];
                A[b * k + m + a] -= l->free_SY[a * m + b];
                A[(m + a) * k + m + b] -= theta * l->free_SS[low];
            }
        if (!factor_lu(A, l->order_of_face, k)) return 0;
        times_rows(l, theta, d, l->c);
        solve_lu(A, l->order_of_face, k, l->c);
        subtract_rows(l, theta, l->c, Bd);
        for (long i = 0; i < count; i++) d[l->free[i]] -= Bd[l->free[i]] / theta;
    }
    for (long i = 0; i < n; i++) {
        Bd[i] += theta * d[i];
        if (!isfinite(d[i])) return 0;
    }
    return 1;
}
