/* Steps of levenberg_marquardt.py, with the affine unknowns of variable_projection.py. The columns
   of a Jacobian are stored one after the other, and after them the residuals. */

/* A = U diag(s) V': Householder reflections to a triangle, then rotations of pairs of its columns
   until all are orthogonal (Hestenes 1958). A (m, n), m >= n, is overwritten; V holds a right
   singular vector after the other, and Ur = U'r, with r (m) overwritten. */
static void decompose(double *A, double *r, long m, long n, double *s, double *V, double *Ur) {
    for (long k = 0; k < n; k++) {
        double *v = A + k * m + k;
        const long rest = m - k;
        const double length = norm(v, rest);
        if (length == 0.0) continue;
        const double end = v[0] > 0.0 ? -length : length;
        v[0] -= end;
        const double size = norm(v, rest);
        for (long i = 0; i < rest; i++) v[i] /= size;
        for (long j = k + 1; j < n; j++)
            add_multiple(A + j * m + k, -2.0 * dot(v, A + j * m + k, rest), v, rest);
        add_multiple(r + k, -2.0 * dot(v, r + k, rest), v, rest);
        v[0] = end;
        for (long i = 1; i < rest; i++) v[i] = 0.0;
    }
    memset(V, 0, n * n * sizeof(double));
    for (long k = 0; k < n; k++) V[k * n + k] = 1.0;
    for (int sweep = 0, rotated = 1; rotated && sweep < MOST_SWEEPS; sweep++) {
        rotated = 0;
        for (long p = 0; p < n; p++)
            for (long q = p + 1; q < n; q++) {
                double *a = A + p * m, *b = A + q * m;
                const double aa = dot(a, a, n), bb = dot(b, b, n), ab = dot(a, b, n);
                if (!(fabs(ab) > EPS * sqrt(aa) * sqrt(bb))) continue;
                rotated = 1;
                const double z = (bb - aa) / (2.0 * ab);
                const double t = (z < 0.0 ? -1.0 : 1.0) / (fabs(z) + sqrt(1.0 + z * z));
                const double c = 1.0 / sqrt(1.0 + t * t), d = c * t;
                for (int both = 0; both < 2; both++) {
                    for (long i = 0; i < n; i++) {
                        const double held = a[i];
                        a[i] = c * held - d * b[i];
                        b[i] = d * held + c * b[i];
                    }
                    a = V + p * n;
                    b = V + q * n;
                }
            }
    }
    for (long k = 0; k < n; k++) {
        s[k] = norm(A + k * m, n);
        Ur[k] = s[k] > 0.0 ? dot(A + k * m, r, n) / s[k] : 0.0;
    }
}

/* Columns of the Jacobian at x, those in `which` or all, and the residuals. */
static void columns_at(LoopState *l, const double *x, const long *which, long count, double *J) {
    const long n = l->n, m = l->m;
    const double *r = l->residual_out + 2 * n, *along = r + m;
    memcpy(l->residual_point, x, n * sizeof(double));
    l->residual_table[0] = l->residual_point;
    l->residual_table[2] = l->residual_out;
    for (long k = 0; k < count; k++) {
        const long j = which ? which[k] : k;
        l->residual_point[n + j] = 1.0;
        l->residual(l->residual_table);
        l->residual_point[n + j] = 0.0;
        for (long i = 0; i < m; i++) J[j * m + i] = l->root[i] * along[i];
    }
    for (long i = 0; i < m; i++) J[n * m + i] = l->root[i] * r[i];
    l->nhev += (count + 1) / 2;
}

static int all_finite(const double *a, long n) {
    double sum = 0.0;
    for (long i = 0; i < n; i++) sum += fabs(a[i]);
    return sum < INFINITY;
}

/* The Jacobian at x, with the columns of the last correction if they fit. */
static void jacobian_at(LoopState *l, const double *x, double *J) {
    int fits = l->has_columns;
    for (long k = 0; fits && k < l->n - l->affine_count; k++)
        fits = x[l->others[k]] == l->columns_x[l->others[k]];
    if (!fits) {
        columns_at(l, x, 0, l->n, J);
        return;
    }
    for (long k = 0; k < l->affine_count; k++)
        memcpy(J + l->affine[k] * l->m, l->columns + l->affine[k] * l->m, l->m * sizeof(double));
    columns_at(l, x, l->others, l->n - l->affine_count, J);
}

/* The change of the affine unknowns that minimises |r + Jc|^2, and that minimum. */
static double best_change(LoopState *l, const double *J, double *change) {
    const long m = l->m, k = l->affine_count, n = l->n;
    double *left = l->right, *A = l->matrix, *s = l->singular, *Ur = l->along;
    memcpy(left, J + n * m, m * sizeof(double));
    if (k == 0) return INFINITY;
    if (k == 1) {
        const double *a = J + l->affine[0] * m, length = norm(a, m);
        if (length == 0.0) {
            change[0] = 0.0;
            return dot(left, left, m);
        }
        double along = 0.0;
        for (long i = 0; i < m; i++) A[i] = a[i] / length;
        along = dot(A, left, m);
        add_multiple(left, -along, A, m);
        change[0] = -along / length;
        return dot(left, left, m);
    }
    double most = 0.0;
    for (long j = 0; j < k; j++) {
        const double *a = J + l->affine[j] * m;
        const double length = sqrt(dot(a, a, m));
        l->small[j] = length == 0.0 ? 1.0 : length;
        for (long i = 0; i < m; i++) A[j * m + i] = a[i] / l->small[j];
    }
    decompose(A, left, m, k, s, l->V, Ur);
    for (long j = 0; j < k; j++) most = larger(most, s[j]);
    memset(change, 0, k * sizeof(double));
    for (long j = 0; j < k; j++)
        if (s[j] > DISTINCT * most) add_multiple(change, -Ur[j] / s[j], l->V + j * k, k);
    memcpy(left, J + n * m, m * sizeof(double));
    for (long j = 0; j < k; j++) {
        change[j] /= l->small[j];
        add_multiple(left, change[j], J + l->affine[j] * m, m);
    }
    return dot(left, left, m);
}

/* Add the best change of the affine unknowns at the end of the step v to it, unless that loses the
   descent; 0 if the end is not below what such a change alone attains. */
static int corrects(LoopState *l, const Point *at, double *v) {
    const long n = l->n, m = l->m, k = l->affine_count;
    if (!k) return 1;
    double *end = l->columns_x, *J = l->columns;
    l->has_columns = 0;
    for (long i = 0; i < n; i++) end[i] = at->x[i] + v[i];
    columns_at(l, end, l->affine, k, J);
    for (long j = 0; j < k; j++)
        if (!all_finite(J + l->affine[j] * m, m)) return 0;
    if (!all_finite(J + n * m, m)) return 0;
    const double after = best_change(l, J, l->change);
    if (!(after <= l->before * (1.0 + SAME))) return 0;
    const double slope = dot(at->g, v, n);
    double corrected = slope;
    for (long j = 0; j < k; j++) corrected += at->g[l->affine[j]] * l->change[j];
    if (corrected <= KEPT_SLOPE * slope) {
        for (long j = 0; j < k; j++) v[l->affine[j]] += l->change[j];
        l->has_columns = 1;
    }
    return 1;
}

/* lambda >= 0 with |p| about the limit. */
static double damping_of(const double *s, const double *b, long n, double limit, double *p) {
    for (long i = 0; i < n; i++) p[i] = b[i] / s[i];
    if (!(norm(p, n) > (1.0 + CLOSE) * limit) || !(limit > 0.0)) return 0.0;
    double damping = 0.0;
    for (int k = 0; k < 50; k++) {
        double sum = 0.0;
        for (long i = 0; i < n; i++) p[i] = s[i] * b[i] / (s[i] * s[i] + damping);
        const double length = norm(p, n);
        if (fabs(length - limit) <= CLOSE * limit) break;
        for (long i = 0; i < n; i++) sum += p[i] * p[i] / (s[i] * s[i] + damping);
        const double slope = length > 0.0 ? sum / length : 0.0;
        if (slope == 0.0) break;
        damping = larger(damping + (length / limit - 1.0) * length / slope, 0.0);
    }
    return damping;
}

/* Write the step within the limit into v. */
static void damped(LoopState *l, double *v) {
    const long n = l->n;
    double *s = l->singular, *b = l->along, *p = l->small, most = 0.0;
    long k = 0;
    for (long i = 0; i < n; i++) most = larger(most, l->s_all[i]);
    for (long i = 0; i < n; i++)
        if (l->s_all[i] > n * l->eps * most) {
            s[k] = l->s_all[i];
            b[k] = l->b_all[i];
            l->kept[k++] = i;
        }
    const double damping = damping_of(s, b, k, l->limit, p);
    double along = 0.0, square = 0.0;
    for (long i = 0; i < n; i++) v[i] = 0.0;
    for (long i = 0; i < k; i++) {
        p[i] = -s[i] * b[i] / (s[i] * s[i] + damping);
        along += s[i] * p[i] * (s[i] * p[i]);
        square += p[i] * p[i];
        add_multiple(v, p[i], l->V_all + l->kept[i] * n, n);
    }
    for (long i = 0; i < n; i++) v[i] *= l->units[i];
    l->length = norm(p, k);
    l->is_whole = damping == 0.0;
    l->predicted = along + 2.0 * damping * square;
}

/* Write the step with its affine unknowns at their best values, or a change of those alone. */
static void solve_step(LoopState *l, const Point *at, double *v) {
    for (int k = 0; k < CORRECTIONS; k++) {
        damped(l, v);
        const int small = TINY * l->square <= l->predicted && l->predicted <= SMALL * l->square;
        if ((small && l->is_whole && l->was_good) || corrects(l, at, v)) return;
        if (l->moves) {
            memcpy(v, l->first_change, l->n * sizeof(double));
            l->predicted = l->limit = 0.0;
            memset(l->lengths, 0, l->n * sizeof(double));
            return;
        }
        l->limit = SHORTEN * l->length;
    }
}

/* The singular values at a point, and the limit from the last step; else LEFT or GIVES_UP. */
static int factorised(LoopState *l, const Point *at, const double *J) {
    const long n = l->n, m = l->m;
    const double *r = J + n * m;
    if (!all_finite(J, (n + 1) * m)) return LEFT;
    for (long j = 0; j < n; j++) {
        const double length = sqrt(dot(J + j * m, J + j * m, m)), old = l->lengths[j];
        l->lengths[j] = larger(length < FAR * old ? 0.0 : FORGET * old, length);
        l->units[j] = l->lengths[j] == 0.0 ? 1.0 : 1.0 / l->lengths[j];
    }
    l->square = dot(r, r, m);
    l->before = best_change(l, J, l->change);
    l->moves = 0;
    memset(l->first_change, 0, n * sizeof(double));
    for (long j = 0; l->before < LARGE_DROP * l->square && j < l->affine_count; j++) {
        l->first_change[l->affine[j]] = l->change[j];
        l->moves |= l->change[j] != 0.0;
    }
    for (long j = 0; j < n; j++)
        for (long i = 0; i < m; i++) l->matrix[j * m + i] = J[j * m + i] * l->units[j];
    memcpy(l->right, r, m * sizeof(double));
    decompose(l->matrix, l->right, m, n, l->s_all, l->V_all, l->b_all);
    const double size = norm(r, m), in_range = norm(l->b_all, n) / (size > 0.0 ? size : 1.0);
    if (l->limit == 0.0) {
        for (long j = 0; j < n; j++) l->small[j] = l->lengths[j] * at->x[j];
        l->limit = norm(l->small, n);
        if (l->limit == 0.0) l->limit = norm(l->b_all, n);
        if (l->limit == 0.0) l->limit = 1.0;
    }
    if (l->predicted > 0.0) {
        const double ratio = (l->last_f - at->f) / l->predicted;
        l->was_good = ratio > GOOD;
        if (ratio < POOR) l->limit = SHORTEN * l->length;
        else if (ratio > GOOD) l->limit = larger(l->limit, LENGTHEN * l->length);
        const int slow = at->f > SLOW * l->last_f && in_range > SLOW * l->in_range;
        l->slow = slow ? l->slow + 1 : 0;
    }
    l->last_f = at->f;
    l->in_range = in_range;
    return l->slow < PATIENCE ? ACCEPTED : GIVES_UP;
}

/* <g, v>/|v| of a suitable direction, in units of the variables if need be; 0 for others. */
static double slope_of(LoopState *l, const Point *at, const double *v, double vnorm) {
    const double slope = slope_along(at->g, at->gnorm, v, vnorm, l->n);
    if (slope <= -l->alpha * at->gnorm) return slope;
    for (long i = 0; i < l->n; i++) {
        l->s[i] = at->g[i] * l->units[i];
        l->y[i] = v[i] / l->units[i];
    }
    const double least = l->alpha * norm(l->s, l->n) * norm(l->y, l->n);
    return slope * vnorm <= -least && least > 0.0 ? slope : 0.0;
}

static int least_squares_step(
    LoopState *l, Point *at, Point *new, const double *J, double *next_J, double *length
) {
    const long n = l->n, m = l->m;
    double *v = l->v;
    const int begun = factorised(l, at, J);
    if (begun != ACCEPTED) return begun;
    solve_step(l, at, v);
    for (int bends = 0; bends < BENDS; bends++) {
        const double vnorm = norm(v, n);
        if (!(0.0 < vnorm && vnorm <= LARGEST)) return LEFT;
        const double slope = bends ? slope_along(at->g, at->gnorm, v, vnorm, n) : slope_of(l, at, v, vnorm);
        if (!(slope < 0.0)) return LEFT;
        const int how = bends ? ACCEPTED : judged(l, at, v, vnorm, slope);
        if (how != ACCEPTED) return how;
        const double longest = longest_step(l, v, vnorm), delta = smaller(1.0, longest);
        if (l->nfev >= l->max_nfev) return LEFT;
        move(l, at, v, delta, new);
        new->f = value_at(l, new->x);
        if (!isfinite(new->f)) return LEFT;
        const int falls = armijo(l, at, new->f, delta, slope * vnorm);
        if (falls || is_other_and_close(l, at, new)) {
            jacobian_at(l, new->x, next_J);
            for (long j = 0; j < n; j++) new->g[j] = 2.0 * dot(next_J + j * m, next_J + n * m, m);
            new->gnorm = norm(new->g, n);
            if (!(falls ? isfinite(new->gnorm) : new->gnorm < at->gnorm)) return LEFT;
            l->by_rounding += !falls;
            *length = delta * vnorm;
            if (!records_gain(l, new, *length / l->reach)) return LEFT;
            l->accepts_first = 1;
            record_length(l, delta >= longest * (1.0 - 4.0 * EPS), delta, *length);
            learn(l, at, new);
            return ACCEPTED;
        }
        if (l->at_floor || is_close(l, at, new->f)) return LEFT;
        l->limit = SHORTEN * l->length;
        solve_step(l, at, v);
    }
    return LEFT;
}

/* Steps as `quasi_newton`, from the Jacobian in `jacobians`. */
long least_squares(LoopState *l) {
    const double began = seconds();
    void *const held[] = {l->value_table[0], l->residual_table[0], l->residual_table[2]};
    const long n = l->n, size = (n + 1) * l->m;
    Point at = {l->points, l->points + n, l->f, l->gnorm};
    Point new = {l->points + 2 * n, l->points + 3 * n, 0.0, 0.0};
    double *J = l->jacobians, *next_J = J + size;
    begin_block(l);
    l->has_columns = 0;
    for (;;) {
        const LoopState saved = *l;
        double length;
        memcpy(l->old_lengths, l->lengths, n * sizeof(double));
        const int how = least_squares_step(l, &at, &new, J, next_J, &length);
        if (how == MET) {
            const LoopState before = *l;
            if (!repeats_test(l, &at, slope_of) || !l->confirmed) *l = before;
        }
        if (how != ACCEPTED) {
            leave(l, &saved, how);
            if (how == LEFT) memcpy(l->lengths, l->old_lengths, n * sizeof(double));
            break;
        }
        const Point swapped = at;
        at = new;
        new = swapped;
        double *const last = J;
        J = next_J;
        next_J = last;
        if (ends_block(l, &at, length, began)) break;
    }
    if (l->steps && !l->H) invert_triangle(l);
    if (J != l->jacobians) memcpy(l->jacobians, J, size * sizeof(double));
    store_point(l, &at);
    l->value_table[0] = held[0];
    l->residual_table[0] = held[1];
    l->residual_table[2] = held[2];
    return l->steps;
}
