/* Values at the ends of steps from a stationary point, for stationary_point.py. */

/* The first of the steps in `ways` at whose end f is below a limit or not finite, and with `bends` the
   curvature along the step negative; their number if there is none. Evaluations are counted up to it. */
long first_lower(LoopState *l) {
    const long n = l->n;
    double *x = l->points, *end = l->points + n, *v = l->v, *Hv = l->y;
    void *const held = l->value_table[0];
    void *const of_product[] = {l->product_table[0], l->product_table[1], l->product_table[2]};
    long k = 0;
    for (; k < l->ways_count; k++) {
        const double *s = l->ways + k * n, length = norm(s, n);
        for (long i = 0; i < n; i++) end[i] = x[i] + s[i];
        if (l->bends) {
            for (long i = 0; i < n; i++) v[i] = s[i] / length;
            l->product_table[0] = end;
            l->product_table[1] = v;
            l->product_table[2] = Hv;
            l->product(l->product_table);
            if (!(l->sign * dot(v, Hv, n) < 0.0)) {
                l->nhev++;
                continue;
            }
        }
        const double f = value_at(l, end);
        if (!isfinite(f) || f < l->limits[k]) {
            l->nfev--;
            break;
        }
        if (l->bends) l->nhev++;
    }
    l->value_table[0] = held;
    memcpy(l->product_table, of_product, sizeof(of_product));
    return k;
}

/* Write the product of the Hessian at the point in `points` with a vector; whether it is finite. */
static int multiply(LoopState *l, const double *v, double *Hv) {
    void *const held[] = {l->product_table[0], l->product_table[1], l->product_table[2]};
    l->product_table[0] = l->points;
    l->product_table[1] = (void *)v;
    l->product_table[2] = Hv;
    l->product(l->product_table);
    memcpy(l->product_table, held, sizeof(held));
    for (long i = 0; i < l->n; i++) Hv[i] *= l->sign;
    return are_finite(Hv, l->n);
}

/* The products of the Hessian at the point in `points` with the unit vectors, in `hessian`. */
void hessian_columns(LoopState *l) {
    for (long k = 0; k < l->n; k++) {
        l->v[k] = 1.0;
        multiply(l, l->v, l->hessian + k * l->n);
        l->v[k] = 0.0;
    }
}

/* The least eigenvalue f of [[a, b], [b, c]], b > 0, with its unit vector (u, w); the largest size. */
static double least_of_two(double a, double b, double c, double *value, double *u, double *w) {
    const double half = 0.5 * (a - c), root = hypot(half, b), middle = 0.5 * (a + c);
    /* Its row with the larger diagonal cancels nothing. */
    const double low = half > 0.0 ? c - b * (b / (root + half)) : a - b * (b / (root - half));
    *u = half > 0.0 ? -b : -(root - half);
    *w = half > 0.0 ? root + half : b;
    const double length = hypot(*u, *w);
    *u /= length;
    *w /= length;
    *value = low;
    return larger(fabs(low), fabs(middle + root));
}

/* The least Ritz value f on the face of x in `points` with the gradient y, after at most two products,
   from the part of s on the face; its vector v, its residual gnorm, the largest size in `reach`. The
   number of products, negative if the last is not finite. */
long least_on_face(LoopState *l) {
    const long n = l->n;
    const double *x = l->points, *g = l->y;
    double *first = l->s, *second = l->r, *Hv = l->d, *w = l->w, u, t;
    for (long i = 0; i < n; i++) {
        w[i] = !((x[i] <= l->low[i] && g[i] >= 0.0) || (x[i] >= l->high[i] && g[i] <= 0.0));
        first[i] *= w[i];
    }
    const double length = norm(first, n);
    if (!(length > 0.0)) return 0;
    for (long i = 0; i < n; i++) first[i] /= length;
    if (!multiply(l, first, Hv)) return -1;
    for (long i = 0; i < n; i++) Hv[i] *= w[i];
    const double a = dot(first, Hv, n);
    for (int both = 0; both < 2; both++) add_multiple(Hv, -dot(first, Hv, n), first, n);
    const double b = norm(Hv, n);
    l->f = a;
    l->gnorm = b;
    l->reach = fabs(a);
    memcpy(l->v, first, n * sizeof(double));
    const double noise = l->eps * l->reach;
    if ((b <= l->alpha * -a && a < -noise) || n == 1 || b <= noise) return 1;
    for (long i = 0; i < n; i++) second[i] = Hv[i] / b;
    if (!multiply(l, second, Hv)) return -2;
    for (long i = 0; i < n; i++) Hv[i] *= w[i];
    const double c = dot(second, Hv, n);
    for (int both = 0; both < 2; both++) {
        const double one = dot(first, Hv, n), other = dot(second, Hv, n);
        add_multiple(Hv, -one, first, n);
        add_multiple(Hv, -other, second, n);
    }
    l->reach = least_of_two(a, b, c, &l->f, &u, &t);
    l->gnorm = norm(Hv, n) * fabs(t);
    for (long i = 0; i < n; i++) l->v[i] = u * first[i] + t * second[i];
    const double size = norm(l->v, n);
    for (long i = 0; i < n; i++) l->v[i] /= size;
    return 2;
}
