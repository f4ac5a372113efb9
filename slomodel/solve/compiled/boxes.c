/* Steps of projected_search.py over a box: the minimiser of minimize.py with the compact form of
   pairs or, for few unknowns, a matrix of theirs or the Hessian; and the search of arc.py. */

/* B of limited_memory.py by its pairs, oldest first; without any it has one curvature. */
static void model_of_pairs(LoopState *l) {
    const long n = l->n;
    double *B = l->model, *Bs = l->w;
    memset(B, 0, n * n * sizeof(double));
    for (long i = 0; i < n; i++) B[i * n + i] = l->curvature;
    for (long k = 0; k < l->count; k++) {
        const double *s = row(l, l->S, k), *y = row(l, l->Y, k);
        for (long i = 0; i < n; i++) Bs[i] = dot(B + i * n, s, n);
        const double curvature = dot(s, Bs, n);
        for (long i = 0; i < n; i++) {
            add_multiple(B + i * n, -Bs[i] / curvature, Bs, n);
            add_multiple(B + i * n, y[i] / l->D[k], y, n);
        }
    }
}

static int product(LoopState *l, const double *s, double *Bs) {
    if (!l->model) return compact_product(l, s, Bs);
    for (long i = 0; i < l->n; i++) Bs[i] = dot(l->model + i * l->n, s, l->n);
    return 1;
}

/* The positions of the elements that move on the face in which -r leaves x; their number. */
static long face(const LoopState *l, const double *x, const double *r) {
    long count = 0;
    for (long i = 0; i < l->n; i++) {
        const int held = (x[i] <= l->low[i] && r[i] >= 0.0) || (x[i] >= l->high[i] && r[i] <= 0.0);
        if (!held) l->free[count++] = i;
    }
    return count;
}

/* Write the minimiser d over the first `count` positions in `free`, by Cholesky's factor. */
static int dense_solve(LoopState *l, long count, const double *r, double *d) {
    double *L = l->factor, *z = l->w;
    for (long i = 0; i < count; i++) {
        for (long j = 0; j <= i; j++) {
            const double b = l->model[l->free[i] * l->n + l->free[j]];
            const double rest = b - dot(L + i * l->n, L + j * l->n, j);
            if (j < i) L[i * l->n + j] = rest / L[j * l->n + j];
            else if (rest > 0.0) L[i * l->n + i] = sqrt(rest);
            else return 0;
        }
        z[i] = (-r[l->free[i]] - dot(L + i * l->n, z, i)) / L[i * l->n + i];
    }
    memset(d, 0, l->n * sizeof(double));
    for (long i = count - 1; i >= 0; i--) {
        const double end = z[i] / L[i * l->n + i];
        d[l->free[i]] = end;
        for (long j = 0; j < i; j++) z[j] -= L[i * l->n + j] * end;
        if (!isfinite(end)) return 0;
    }
    return 1;
}

/* A point `end` on the face with a sufficient decrease of the model, s and Bs; 0 if there is none. */
static int on_face(LoopState *l, const double *y, const double *r, long count, double *end) {
    static const double factors[] = {FACTORS};
    const long n = l->n;
    double *d = l->d, *s = l->s, *Bs = l->y, *Bd = l->Bd;
    if (!(l->model ? dense_solve(l, count, r, d) : compact_solve(l, count, r, d, Bd))) return 0;
    for (unsigned k = 0; k < sizeof factors / sizeof *factors; k++) {
        for (long i = 0; i < n; i++) end[i] = y[i] + factors[k] * d[i];
        const int moved = into_box(l, end);
        for (long i = 0; i < n; i++) s[i] = end[i] - y[i];
        const double slope = dot(r, s, n);
        if (slope >= 0.0) continue;
        if (l->model || moved) {
            if (!product(l, s, Bs)) return 0;
        } else {
            for (long i = 0; i < n; i++) Bs[i] = factors[k] * Bd[i];
        }
        if (slope + 0.5 * dot(s, Bs, n) <= SUFFICIENT * slope) return 1;
    }
    return 0;
}

/* The step of the model along P(y - r/b) - y, b its curvature along r; 0 without products. */
static int projected(LoopState *l, const double *y, const double *r, double *end) {
    const long n = l->n;
    double *s = l->s, *Bs = l->y;
    if (!product(l, r, Bs)) return 0;
    const double curvature = dot(r, Bs, n), square = dot(r, r, n);
    const double t = curvature > 0.0 && square > 0.0 ? square / curvature : 1.0;
    for (long i = 0; i < n; i++) end[i] = y[i] - t * r[i];
    into_box(l, end);
    for (long i = 0; i < n; i++) s[i] = end[i] - y[i];
    product(l, s, Bs);
    const double slope = dot(r, s, n), bend = dot(s, Bs, n);
    if (bend <= -slope) return 1;
    const double length = -slope / bend;
    for (long i = 0; i < n; i++) {
        s[i] *= length;
        Bs[i] *= length;
        end[i] = y[i] + s[i];
    }
    into_box(l, end);
    return 1;
}

/* The minimiser of the model over the box, in `end`, and its decrease; 0 without a model. */
static int minimiser(LoopState *l, const Point *at, double *decrease) {
    const long n = l->n;
    double *y = l->end, *r = l->r, *trial = l->trial;
    const double goal = l->accuracy * at->gnorm;
    long count = face(l, at->x, at->g);
    if (count == n && !l->by_hessian && l->count) {
        by_pairs(l, at->g, l->v);
        for (long i = 0; i < n; i++) y[i] = at->x[i] + l->v[i];
        *decrease = -0.5 * dot(at->g, l->v, n);
        if (!into_box(l, y)) return 1;
    }
    l->curvature = theta_of(l, at->gnorm);
    l->has_factors = l->has_face = 0;
    if (l->by_hessian && !positive_hessian(l, at->x)) return 0;
    if (!l->by_hessian && l->model) model_of_pairs(l);
    memcpy(y, at->x, n * sizeof(double));
    memcpy(r, at->g, n * sizeof(double));
    for (long k = 0; k < l->most_on_faces; k++) {
        if (!on_face(l, y, r, count, trial) && !projected(l, y, r, trial)) return 0;
        const double curvature = dot(l->s, l->y, n);
        memcpy(y, trial, n * sizeof(double));
        for (long i = 0; i < n; i++) r[i] += l->y[i];
        if (!(curvature > 0.0) || projected_norm(l, y, r) <= goal) break;
        count = face(l, y, r);
    }
    double sum = 0.0;
    for (long i = 0; i < n; i++) sum += (y[i] - at->x[i]) * (at->g[i] + r[i]);
    *decrease = -0.5 * sum;
    return 1;
}

/* The point P(x + delta v), or `end` at the full step; 0 beyond the most evaluations. */
static int place(LoopState *l, const Point *at, double delta, int to_end, Point *new) {
    if (l->nfev >= l->max_nfev) return 0;
    if (to_end && delta == 1.0) {
        memcpy(new->x, l->end, l->n * sizeof(double));
    } else {
        move(l, at, l->v, delta, new);
        into_box(l, new->x);
    }
    return 1;
}

/* The slope at a point of the arc along v. */
static double slope_of_arc(const LoopState *l, const Point *p, const double *v) {
    double sum = 0.0;
    for (long i = 0; i < l->n; i++) {
        const int leaves = (p->x[i] <= l->low[i] && v[i] < 0.0) || (p->x[i] >= l->high[i] && v[i] > 0.0);
        sum += leaves ? 0.0 : p->g[i] * v[i];
    }
    return sum;
}

/* The step `delta` to `best`, or a longer one if f falls more steeply at its end than at x. */
static int lengthened(
    LoopState *l, const Point *at, double slope, double too_long, Point *best, Point *other, double *delta
) {
    const long n = l->n;
    for (int k = 0; k < LENGTHENINGS; k++) {
        if (dot(best->g, l->v, n) >= slope || slope_of_arc(l, best, l->v) >= slope) break;
        const double trial = smaller(LENGTHEN_ARC * *delta, 0.5 * (*delta + too_long));
        if (trial <= *delta * (1.0 + LEAST_FRACTION)) break;
        if (!place(l, at, trial, 0, other)) return LEFT;
        other->f = value_at(l, other->x);
        if (!isfinite(other->f)) return LEFT;
        for (long i = 0; i < n; i++) l->s[i] = other->x[i] - at->x[i];
        const double along = slope * norm(l->s, n) / norm(l->v, n);
        const double predicted = smaller(dot(at->g, l->s, n), along);
        if (other->f < best->f && armijo(l, at, other->f, 1.0, predicted)) {
            gradient_at(l, other, 1);
            if (!isfinite(other->gnorm)) return LEFT;
            const Point swapped = *best;
            *best = *other;
            *other = swapped;
            *delta = trial;
        } else {
            too_long = trial;
        }
    }
    return ACCEPTED;
}

/* Search from `at` along the arc of v; the result is in `new` and `delta`. */
static int search_arc(
    LoopState *l, const Point *at, double slope, double longest, Point *new, Point *other, double *delta,
    long *accepts_first
) {
    double failed = INFINITY;
    for (int trials = 0; trials < MOST_TRIALS; trials++) {
        const int both = trials == 0 && l->accepts_first && l->computes_both;
        if (!place(l, at, *delta, 1, new)) return LEFT;
        new->f = both ? gradient_at(l, new, 0) : value_at(l, new->x);
        if (!isfinite(new->f)) return LEFT;
        if (armijo(l, at, new->f, *delta, slope)) {
            if (!both) gradient_at(l, new, 1);
            if (!isfinite(new->gnorm)) return LEFT;
            *accepts_first = trials == 0;
            return lengthened(l, at, slope, smaller(failed, longest), new, other, delta);
        }
        if ((both && !isfinite(new->gnorm)) || is_close(l, at, new->f)) return LEFT;
        failed = *delta;
        const double predicted = *delta * slope, excess = new->f - at->f - predicted;
        double factor = l->theta;
        if (0.0 < excess && excess < INFINITY)
            factor = smaller(larger(-0.5 * predicted / excess, LEAST_FRACTION), l->theta);
        *delta *= factor;
    }
    return LEFT;
}

/* Whether the turn of the present model goes on; its middle is noted, as by alternating.py. */
static int turn_goes_on(LoopState *l, const Point *at) {
    const double work = l->nfev + l->njev + l->nhev + (l->operations + l->others_operations) / l->unit;
    if (!l->has_middle && 2.0 * work >= l->turn_began + l->turn_ends) {
        l->has_middle = 1;
        l->middle_work = work;
        l->middle_f = at->f;
    }
    return work < l->turn_ends;
}

static int box_step(LoopState *l, Point *at, Point *new, Point *other, double *length) {
    const long n = l->n;
    double *v = l->v, decrease, delta;
    long accepts_first;
    if (!l->by_hessian) l->operations += l->of_step * l->count * n;
    if (!minimiser(l, at, &decrease)) return LEFT;
    for (long i = 0; i < n; i++) v[i] = l->end[i] - at->x[i];
    const double vnorm = norm(v, n), slope = dot(at->g, v, n);
    if (!(0.0 < vnorm && vnorm <= LARGEST && slope <= -l->alpha * at->gnorm * vnorm)) return LEFT;
    if (l->tests && decrease < l->confirm_below && meets_test(l, at, v, decrease)) return LEFT;
    const double longest = smaller(l->reach / vnorm, LARGEST);
    delta = smaller(1.0, longest);
    if (search_arc(l, at, slope, longest, new, other, &delta, &accepts_first) != ACCEPTED) return LEFT;
    for (long i = 0; i < n; i++) l->s[i] = new->x[i] - at->x[i];
    *length = norm(l->s, n);
    if (!records_gain(l, new, *length / l->reach)) return LEFT;
    l->accepts_first = accepts_first;
    record_length(l, *length >= l->reach * (1.0 - 4.0 * EPS), delta, *length);
    if (l->memory) learn(l, at, new);
    /* The block ends with the turn. */
    if (!turn_goes_on(l, new)) l->most_steps = 0;
    return ACCEPTED;
}

/* Steps from the point in x, g, f and gnorm until the block ends or a step is not plain. */
long projected_search(LoopState *l) { return take_steps(l, box_step, l->memory > 0); }
