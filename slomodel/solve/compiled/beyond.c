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
