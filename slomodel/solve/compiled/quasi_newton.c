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

typedef double (*Slope)(LoopState *, const Point *, const double *, double);

static double work_of(const LoopState *l) { return l->nfev + l->njev + 2 * l->nhev; }

/* Whether the first Hessian is not worth its work yet, by the progress of the pairs. */
static int puts_off(LoopState *l, const Point *at) {
    if (l->has_put_off || l->H || !(0.0 < at->gnorm && at->gnorm < l->start_gnorm)) return 0;
    const double now = work_of(l), fall = log(l->start_gnorm / at->gnorm);
    const double left = (now - l->work_began) * (log(1.0 / REACHED) / fall - 1.0);
    if (!(left < SOON * 2.0 * l->n)) return 0;
    l->due = now + larger(left, l->n);
    l->has_put_off = 1;
    return 1;
}

/* Replace the estimate by the inverse of the Hessian at a point, and write the step into v; 0 where
   that is impossible. */
static int computes(LoopState *l, const Point *at) {
    const long n = l->n;
    l->interval *= 2.0;
    l->work_computed = work_of(l);
    l->nhev += n;
    const int exists = inverse_at(l, at->x, at->f, at->g);
    l->due = work_of(l) + l->interval;
    if (!exists) return 0;
    if (!l->H) l->H = l->own_H;
    memcpy(l->H, l->inverse, n * n * sizeof(double));
    for (long i = 0; i < n; i++) l->diagonal[i] = l->hessian[i * n + i];
    l->curvatures = l->diagonal;
    by_matrix(l, at->g, l->v);
    l->own_gamma = finite_or_0(-dot(at->g, l->v, n) / at->gnorm / at->gnorm);
    l->computed = 1;
    return 1;
}

/* Repeat the test at a point with the Hessian; `confirmed` if it is met. 0 without a direction. */
static int repeats_test(LoopState *l, const Point *at, Slope slope_of) {
    if (!l->can_compute || !computes(l, at)) return 0;
    const double vnorm = norm(l->v, l->n);
    if (!(0.0 < vnorm && vnorm <= LARGEST)) return 0;
    const double slope = slope_of(l, at, l->v, vnorm);
    if (!(slope < 0.0)) return 0;
    l->decrease = -0.5 * vnorm * slope;
    l->confirmed = meets_test(l, at, l->v, l->decrease);
    return 1;
}

/* Write the step along -g by the curvature of f along it, or of the last pair; 0 without any. */
static int first_step(LoopState *l, const Point *at, double *v) {
    const long n = l->n;
    if (!l->own_gamma) {
        if (!l->product) return 0;
        void *const held[] = {l->product_table[0], l->product_table[1], l->product_table[2]};
        for (long i = 0; i < n; i++) l->s[i] = at->g[i] / at->gnorm;
        l->product_table[0] = at->x;
        l->product_table[1] = l->s;
        l->product_table[2] = l->y;
        l->product(l->product_table);
        memcpy(l->product_table, held, sizeof(held));
        l->nhev++;
        const double curvature = fabs(dot(l->s, l->y, n));
        l->own_gamma = curvature > 0.0 ? finite_or_0(1.0 / curvature) : 0.0;
        if (!l->own_gamma) return 0;
    }
    for (long i = 0; i < n; i++) v[i] = -l->own_gamma * at->g[i];
    return 1;
}

/* <g, v>/|v| of a suitable direction; 0 for others. */
static double plain_slope(LoopState *l, const Point *at, const double *v, double vnorm) {
    const double slope = slope_along(at->g, at->gnorm, v, vnorm, l->n);
    return slope <= -l->alpha * at->gnorm ? slope : 0.0;
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
    if (work_of(l) >= l->until) return LEFT;
    if (l->H) by_matrix(l, at->g, v);
    else if (l->count) by_pairs(l, at->g, v);
    else if (!first_step(l, at, v)) return LEFT;
    const double vnorm = norm(v, l->n);
    if (!(0.0 < vnorm && vnorm <= LARGEST)) return LEFT;
    const double slope = plain_slope(l, at, v, vnorm);
    if (!(slope < 0.0)) return LEFT;
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

static void begin_block(LoopState *l) {
    l->steps = l->was_left = l->meets_test = l->confirmed = l->computed = l->gave_up = 0;
    l->by_rounding = l->best_is = 0;
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
    begin_block(l);
    for (;;) {
        if (l->can_compute && work_of(l) >= l->due && !puts_off(l, &at)) {
            /* The kind of the steps changes. */
            if (!l->H && l->steps) break;
            computes(l, &at);
        }
        const LoopState saved = *l;
        double length;
        const int how = step(l, &at, &new, &other, &length);
        if (how == MET) {
            if (l->can_compute && !l->H && l->steps) break;
            const LoopState before = *l;
            if (!repeats_test(l, &at, plain_slope)) *l = before;
            else if (!l->confirmed) continue;
        }
        if (how != ACCEPTED) {
            leave(l, &saved, how);
            break;
        }
        const Point swapped = at;
        at = new;
        new = swapped;
        if (ends_block(l, &at, length, began)) break;
    }
    if (l->steps && has_pairs && !l->H) invert_triangle(l);
    store_point(l, &at);
    l->value_table[0] = held[0];
    l->gradient_table[0] = held[1];
    l->gradient_table[2] = held[2];
    return l->steps;
}

long quasi_newton(LoopState *l) { return take_steps(l, quasi_newton_step, 1); }
