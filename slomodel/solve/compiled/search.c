/* The search of interpolating.py, the gain of a step of stagnation.py, and the stop test of auto.py,
   each for the usual case alone: LEFT says that it is not, and nothing has changed then. MET says
   that a direction meets the test, which is repeated with the Hessian, by Python where that fails.
   GIVES_UP says that the steps of a run become others. */

enum { LEFT, MET, ACCEPTED, GIVES_UP };

typedef struct {
    double *x, *g;
    double f, gnorm;
} Point;

static double noise_of(const LoopState *l, double f) {
    const double noise = ROUNDING * l->eps * fabs(f);
    return noise > l->measured ? noise : l->measured;
}

static double value_at(LoopState *l, const double *x) {
    l->nfev++;
    l->value_table[0] = (void *)x;
    return l->sign * l->value(l->value_table);
}

/* Move x (n,) into the box; whether it was outside. */
static int into_box(const LoopState *l, double *x) {
    int moved = 0;
    for (long i = 0; i < l->n; i++) {
        const double nearest = smaller(larger(x[i], l->low[i]), l->high[i]);
        moved |= nearest != x[i];
        x[i] = nearest;
    }
    return moved;
}

/* The norm of the projected gradient of the box. */
static double projected_norm(const LoopState *l, const double *x, const double *g) {
    for (long i = 0; i < l->n; i++)
        l->w[i] = smaller(larger(-g[i], l->low[i] - x[i]), l->high[i] - x[i]);
    return norm(l->w, l->n);
}

/* f and its gradient; f is NaN if anything is not finite. `counted`: f was counted before. */
static double gradient_at(LoopState *l, Point *p, int counted) {
    l->nfev += !counted;
    l->njev++;
    l->gradient_table[0] = p->x;
    l->gradient_table[2] = p->g;
    const double f = l->sign * l->gradient(l->gradient_table);
    if (l->sign < 0.0)
        for (long i = 0; i < l->n; i++) p->g[i] = -p->g[i];
    p->gnorm = norm(p->g, l->n);
    if (l->low && isfinite(p->gnorm)) p->gnorm = projected_norm(l, p->x, p->g);
    return f;
}

static void move(LoopState *l, const Point *at, const double *v, double delta, Point *end) {
    for (long i = 0; i < l->n; i++) end->x[i] = delta * v[i] + at->x[i];
}

static int armijo(const LoopState *l, const Point *at, double f, double delta, double first) {
    return -INFINITY < f && f <= at->f + l->sigma * delta * first && f < at->f;
}

/* Whether a value that is not low enough may be so by rounding only. */
static int is_close(const LoopState *l, const Point *at, double f) {
    const double noise = noise_of(l, at->f);
    const double band = larger(smaller(at->f, l->lowest) + noise, at->f);
    return at->f - noise <= f && f <= band;
}

/* Whether a value that is not low enough, at a point that is another, may be so by rounding. */
static int is_other_and_close(const LoopState *l, const Point *at, const Point *end) {
    if (!is_close(l, at, end->f)) return 0;
    return end->f != at->f || memcmp(end->x, at->x, l->n * sizeof(double)) != 0;
}

static double cubic(double slope, double t, double p, double u, double q) {
    p /= t * t;
    q /= u * u;
    const double a = (p - q) / (t - u), b = p - a * t;
    if (a == 0.0) return b != 0.0 ? -slope / (2.0 * b) : NAN;
    const double square = b * b - 3.0 * a * slope;
    return square >= 0.0 ? (-b + sqrt(square)) / (3.0 * a) : NAN;
}

/* The next trial after `delta` with value f; `last` was the one before, with its value. */
static double shortened(double f0, double slope, double delta, double f, double last, double last_f) {
    const double low = SHORTEST * delta, high = LONGEST * delta;
    const double excess = f - f0 - slope * delta;
    if (!isfinite(excess)) return low;
    double end = excess > 0.0 ? -slope * delta * delta / (2.0 * excess) : high;
    if (last > 0.0 && isfinite(last_f))
        end = cubic(slope, delta, excess, last, last_f - f0 - slope * last);
    return isfinite(end) ? smaller(larger(end, low), high) : high;
}

/* The step `delta` to `best`, or a longer one if its slope is still steep. */
static int extended(
    LoopState *l, const Point *at, const double *v, double first, double longest,
    Point *best, Point *other, double *delta
) {
    double before = first, last = 0.0;
    for (int k = 0; k < EXTENSIONS; k++) {
        const double slope = dot(best->g, v, l->n);
        if (!(slope < STEEP * first) || *delta >= longest) break;
        const double rise = slope - before;
        double factor = LENGTHEN_MOST;
        if (rise > 0.0) factor = 1.0 - slope * (1.0 - last / *delta) / rise;
        factor = smaller(larger(factor, LENGTHEN_LEAST), LENGTHEN_MOST);
        const double trial = smaller(*delta * factor, longest);
        if (l->nfev >= l->max_nfev) return LEFT;
        move(l, at, v, trial, other);
        other->f = value_at(l, other->x);
        if (!isfinite(other->f)) return LEFT;
        if (!(armijo(l, at, other->f, trial, first) && other->f < best->f)) break;
        gradient_at(l, other, 1);
        if (!isfinite(other->gnorm)) return LEFT;
        last = *delta;
        before = slope;
        const Point swapped = *best;
        *best = *other;
        *other = swapped;
        *delta = trial;
    }
    return ACCEPTED;
}

/* Search from `at` along v with the slope `first` of f; the result is in `end` and `delta`. */
static int search(
    LoopState *l, const Point *at, const double *v, double first, double longest,
    Point *end, Point *other, double *delta, long *accepts_first
) {
    const double noise = noise_of(l, at->f);
    double last = 0.0, last_f = 0.0;
    for (int trials = 0; trials < MOST_TRIALS; trials++) {
        const int both = trials == 0 && l->accepts_first && l->computes_both;
        if (l->nfev >= l->max_nfev) return LEFT;
        move(l, at, v, *delta, end);
        end->f = both ? gradient_at(l, end, 0) : value_at(l, end->x);
        if (!isfinite(end->f)) return LEFT;
        if (armijo(l, at, end->f, *delta, first)) {
            if (!both) gradient_at(l, end, 1);
            if (!isfinite(end->gnorm)) return LEFT;
            *accepts_first = trials == 0;
            return extended(l, at, v, first, longest, end, other, delta);
        }
        if (both && !isfinite(end->gnorm)) return LEFT;
        if (is_other_and_close(l, at, end)) {
            if (!both) gradient_at(l, end, 1);
            if (!(end->gnorm < at->gnorm)) return LEFT;
            *accepts_first = trials == 0;
            l->by_rounding++;
            return ACCEPTED;
        }
        if (is_close(l, at, end->f)) return LEFT;
        if (-*delta * first < INVISIBLE * noise) return LEFT;
        const double next = shortened(at->f, first, *delta, end->f, last, last_f);
        last = *delta;
        last_f = end->f;
        *delta = next;
    }
    return LEFT;
}

/* The longest step along v: to the boundary of the ball, or to the limit of a variable. */
static double longest_step(const LoopState *l, const double *v, double vnorm) {
    const double longest = smaller(l->reach / vnorm, LARGEST);
    double fastest = 0.0;
    if (!l->logarithmic) return longest;
    for (long i = 0; i < l->n; i++) fastest = larger(fastest, fabs(v[i] * l->logarithmic[i]));
    return fastest > 0.0 ? smaller(longest, LOGARITHMIC_MOVE / fastest) : longest;
}

/* PredictedDecrease.met, for a step v with a predicted decrease. */
static int meets_test(const LoopState *l, const Point *at, const double *v, double decrease) {
    if (!(at->gnorm <= l->test_steepest)) return 0;
    double curved = 0.0;
    if (l->curvatures) {
        for (long i = 0; i < l->n; i++) curved += fabs(l->curvatures[i]) * (at->x[i] * at->x[i]);
        curved *= 0.5;
    }
    const double gained = l->test_first - at->f;
    double size = smaller(fabs(at->f), larger(gained, curved));
    if (decrease >= VANISHING * fabs(at->f) || fabs(at->f) <= VANISHED * gained)
        size = larger(larger(size, CURVED * curved), ABSOLUTE * smaller(1.0, gained));
    if (decrease <= l->gtol * l->gtol * size) return 1;
    for (long i = 0; i < l->n; i++)
        if (!(fabs(v[i]) <= MOVED * l->gtol * fabs(at->x[i]))) return 0;
    return 1;
}

/* MET for a direction that meets the test; whether it is at the resolution of f is noted. */
static int judged(LoopState *l, const Point *at, const double *v, double vnorm, double slope) {
    const double decrease = -0.5 * vnorm * slope;
    if (l->tests && meets_test(l, at, v, decrease)) return MET;
    l->at_floor = l->tests && decrease <= noise_of(l, at->f);
    return ACCEPTED;
}

/* Leave a block before a step; what its direction has learned is kept unless the step is LEFT. */
static void leave(LoopState *l, const LoopState *saved, int how) {
    if (how == LEFT) *l = *saved;
    l->meets_test = how == MET;
    l->gave_up = how == GIVES_UP;
    l->was_left = how != GIVES_UP;
}

/* Record the step of length `fraction` in units of the longest to an accepted point; 0 where the run
   stagnates. Of points whose f cannot be told apart the best is copied. */
static int records_gain(LoopState *l, const Point *at, double fraction) {
    const double noise = noise_of(l, at->f);
    const double decrease = l->gain_f - at->f;
    const double total = larger(l->first_f - at->f, fabs(l->first_f));
    const int negligible = fraction <= SHORT && decrease <= STEEP_FALL * total;
    const int gained = (decrease > noise && !negligible) || at->gnorm < LOWERED * l->gain_gnorm;
    if (!gained && l->idle + 1 >= (l->at_floor ? FLOOR_STEPS : l->idle_steps)) return 0;
    l->lowest = smaller(l->lowest, at->f);
    l->steepest = larger(l->steepest, at->gnorm);
    if (at->f < l->anchor - noise) {
        l->anchor = at->f;
        l->best_gnorm = at->gnorm;
        l->best_is = LAST_POINT;
    } else if (at->gnorm < l->best_gnorm) {
        memcpy(l->best, at->x, l->n * sizeof(double));
        memcpy(l->best + l->n, at->g, l->n * sizeof(double));
        l->best_f = at->f;
        l->best_gnorm = at->gnorm;
        l->best_is = COPY;
    }
    l->idle = gained ? 0 : l->idle + 1;
    if (gained) {
        l->gain_f = at->f;
        l->gain_gnorm = at->gnorm;
    }
    return 1;
}

/* What an accepted step changes besides the direction: whether it had full length, and the ball. */
static void record_length(LoopState *l, int full, double delta, double length) {
    l->in_a_row = full ? l->in_a_row + 1 : 0;
    if (!full) l->next_probe = FIRST_PROBE;
    if (full && l->grows) l->reach = smaller(larger(l->reach, length) * GROWTH, LARGEST);
    l->delta = delta;
}

/* Write the row of a step; whether the block of steps ends with it. */
static int ends_block(LoopState *l, const Point *at, double length, double began) {
    double *row = l->rows + 5 * l->steps++;
    const double now = seconds() - began;
    row[0] = l->clock + now;
    row[1] = l->sign * at->f;
    row[2] = at->gnorm;
    row[3] = length;
    row[4] = l->epoch++;
    if (l->watches_pole && at->gnorm > 0.0) {
        int level;
        frexp(at->gnorm, &level);
        if (l->pole_levels == 0 || level < l->pole_base) l->pole_base = level;
        l->pole_levels = level - l->pole_base + 1;
        if (l->pole_levels > ENOUGH_DOUBLINGS) return 1;
    }
    return at->f < l->examined || at->gnorm < l->tolerance || at->gnorm == 0.0 || now > l->most_seconds
           || l->steps >= l->most_steps || l->in_a_row >= l->next_probe;
}
