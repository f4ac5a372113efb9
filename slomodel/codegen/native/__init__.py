"""Target `c`: one C function per entry, compiled by the system's compiler.

target, compiler, binding       from an entry to a compiled library and its calls
source, prelude, names          the text of a unit; `pieces` and `repeated` divide it
loops, passes, totals           nests in blocks of elements; their axes (`axis_order`), `lookups`,
                                and functions in vectors (`vector_calls`)
plain                           nests, recurrences and copies with one loop per axis
time, log_sums, log_products    loops over time; running log-sum-exps; the forward algorithm
products, direct, matrices      products and linear algebra: BLAS, LAPACK, loops for small ones
parallel                        several threads
"""
