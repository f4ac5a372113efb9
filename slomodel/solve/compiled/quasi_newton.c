/* Steps of quasi_newton.py: by pairs (two loops) or by a matrix. */

/* gamma of curvature_scale; 0 for a pair that teaches nothing. */
static double curvature_scale(double sy, double snorm, double ynorm, double eps) {
    if (!(sy > sqrt(eps) * snorm * ynorm && sqrt(eps) * snorm * ynorm > 0.0)) return 0.0;
    if (!isfinite(1.0 / sy)) return 0.0;
    return finite_or_0(finite_or_0(sy / ynorm) / ynorm);
}

static double *row(const LoopState *l, double *M, long k) { return M + (l->first + k) % l->pair_rows * l->n; }

/* Write -Hg into v by the two-loop recursion. */
static void by_pairs(LoopState *l, const double *g, double *v) {
    const long n = l->n;
    double *a = l->coefficients;
    for (long i = 0; i < n; i++) v[i] = -g[i];
    for (long k = l->count - 1; k >= 0; k--) {
        a[k] = dot(row(l, l->S, k), v, n) / l->D[k];
        add_multiple(v, -a[k], row(l, l->Y, k), n);
    }
    for (long i = 0; i < n; i++) v[i] *= l->gamma;
    for (long k = 0; k < l->count; k++) {
        const double b = dot(row(l, l->Y, k), v, n) / l->D[k];
        add_multiple(v, a[k] - b, row(l, l->S, k), n);
    }
}

static void by_matrix(const LoopState *l, const double *g, double *v) {
    for (long i = 0; i < l->n; i++) v[i] = -dot(l->H + i * l->n, g, l->n);
}

/* Update the pairs or the matrix with a step between two points. */
static void learn(LoopState *l, const Point *old, const Point *new) {
    const long n = l->n;
    double *s = l->s, *y = l->y;
    for (long i = 0; i < n; i++) {
        s[i] = new->x[i] - old->x[i];
        y[i] = new->g[i] - old->g[i];
    }
    const double sy = dot(s, y, n);
    const double gamma = curvature_scale(sy, norm(s, n), norm(y, n), l->eps);
    if (!(gamma > 0.0)) return;
    l->own_gamma = gamma;
    if (l->H) {
        double *w = l->w;
        for (long i = 0; i < n; i++) w[i] = dot(l->H + i * n, y, n);
        const double half = 0.5 * (sy + dot(y, w, n));
        for (long i = 0; i < n; i++) {
            s[i] /= sy;
            w[i] -= half * s[i];
        }
        for (long i = 0; i < n; i++)
            for (long j = 0; j < n; j++) l->H[i * n + j] = l->H[i * n + j] - s[i] * w[j] - s[j] * w[i];
        return;
    }
    l->gamma = gamma;
    if (l->count == l->memory) {
        memmove(l->D, l->D + 1, (l->memory - 1) * sizeof(double));
        l->first = (l->first + 1) % l->pair_rows;
        l->count--;
    }
    memcpy(row(l, l->S, l->count), s, n * sizeof(double));
    memcpy(row(l, l->Y, l->count), y, n * sizeof(double));
    l->D[l->count++] = sy;
    l->learned++;
}

/* The inverse of the upper triangle of S Y', which the steps in Python use. */
static void invert_triangle(LoopState *l) {
    const long m = l->memory;
    double *column = l->coefficients;
    for (long k = 0; k < l->count; k++) {
        for (long i = 0; i < k; i++) column[i] = dot(row(l, l->S, i), row(l, l->Y, k), l->n);
        for (long i = 0; i < k; i++) {
            l->Rinv[i * m + k] = dot(l->Rinv + i * m + i, column + i, k - i) / -l->D[k];
            l->Rinv[k * m + i] = 0.0;
        }
        l->Rinv[k * m + k] = 1.0 / l->D[k];
    }
}

/* Let the block end at a point. */
static void store_point(LoopState *l, const Point *at) {
    memmove(l->points, at->x, l->n * sizeof(double));
    memmove(l->points + l->n, at->g, l->n * sizeof(double));
    l->f = at->f;
    l->gnorm = at->gnorm;
}

static int quasi_newton_step(LoopState *l, Point *at, Point *new, Point *other, double *length) {
    double *v = l->v;
    const long work = l->nfev + l->njev + 2 * l->nhev;
    if (work >= l->due || !(l->H || l->count)) return LEFT;
    if (l->H) by_matrix(l, at->g, v);
    else by_pairs(l, at->g, v);
    const double vnorm = norm(v, l->n);
    if (!(0.0 < vnorm && vnorm <= LARGEST)) return LEFT;
    const double slope = slope_along(at->g, at->gnorm, v, vnorm, l->n);
    if (!(slope <= -l->alpha * at->gnorm)) return LEFT;
    const int how = judged(l, at, v, vnorm, slope);
    if (how != ACCEPTED) return how;
    const double longest = longest_step(l, v, vnorm);
    double delta = smaller(1.0, longest);
    long accepts_first;
    if (search(l, at, v, slope * vnorm, longest, new, other, &delta, &accepts_first) != ACCEPTED)
        return LEFT;
    *length = delta * vnorm;
    if (!records_gain(l, new, *length / l->reach)) return LEFT;
    l->accepts_first = accepts_first;
    record_length(l, delta >= longest * (1.0 - 4.0 * EPS), delta, *length);
    learn(l, at, new);
    return ACCEPTED;
}

typedef int (*Step)(LoopState *, Point *, Point *, Point *, double *);

/* Steps from the point in x, g, f and gnorm until the block ends or a step is not plain. */
static long take_steps(LoopState *l, Step step, int has_pairs) {
    const double began = seconds();
    void *const held[] = {l->value_table[0], l->gradient_table[0], l->gradient_table[2]};
    const long n = l->n;
    Point at = {l->points, l->points + n, l->f, l->gnorm};
    Point new = {l->points + 2 * n, l->points + 3 * n, 0.0, 0.0};
    Point other = {l->points + 4 * n, l->points + 5 * n, 0.0, 0.0};
    l->steps = l->was_left = l->meets_test = 0;
    for (;;) {
        const LoopState saved = *l;
        double length;
        const int how = step(l, &at, &new, &other, &length);
        if (how != ACCEPTED) {
            leave(l, &saved, how);
            break;
        }
        const Point swapped = at;
        at = new;
        new = swapped;
        if (ends_block(l, &at, length, began)) break;
    }
    if (l->steps && has_pairs) invert_triangle(l);
    store_point(l, &at);
    l->value_table[0] = held[0];
    l->gradient_table[0] = held[1];
    l->gradient_table[2] = held[2];
    return l->steps;
}

long quasi_newton(LoopState *l) { return take_steps(l, quasi_newton_step, !l->H); }
