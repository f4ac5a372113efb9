"""Ranges over a ball or a box: of scalar functions, of their derivatives, and of nodes of graphs.

values, derivatives        of a function over an interval; `kinks`, `smoothness` of its pieces
enclose                    of every node of a graph, in intervals; `hessian`: of D²f and D³f
elements/                  of sums over elements, whose functions have few arguments
curvature/                 of nodes and their gradients, to second order in the distance
derivative_norms/          of norms of derivatives, node by node
taylor/, power_series/     of nodes in few unknowns, to first order and to any order
recurrences                of the states of loops; `linear_recurrences`: of all steps at once
matrices, affine_norms     of solutions and determinants; of ‖Ax + b‖
evaluation_errors          of the rounding errors of computed values and gradients
"""
