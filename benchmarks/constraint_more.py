"""Further problems with constraints, and some without a solution.

Those that tend to a limit and those that begin at a saddle of the violation were written while
these ends were mended, the others before any change for them.

Of a problem with a solution the third entry is its least value, where it is known from the
literature or by hand, or else the least that any of the solvers found; of one without, the status.
"""

from __future__ import annotations

_CENTRE = "-cos((x - 0.1)*y)^2 - x*sin(3*x + y)"
_RADIUS = "2*cos(a) - 0.5*cos(2*a) - 0.25*cos(3*a) - 0.125*cos(4*a)"
WELDED_BEAM = """var h in [0.1, 2], l in [0.1, 10], t in [0.1, 10], b in [0.1, 2]
let direct = 6000/(sqrt(2)*h*l)
let R = sqrt(l^2/4 + ((h + t)/2)^2)
let torsion = 6000*(14 + l/2)*R/(2*(sqrt(2)*h*l*(l^2/12 + ((h + t)/2)^2)))
minimize 1.10471*h^2*l + 0.04811*t*b*(14 + l)
subject to sqrt(direct^2 + 2*direct*torsion*l/(2*R) + torsion^2) <= 13600,
     504000/(t^2*b) <= 30000, h <= b, 65856000/(30e6*b*t^3) <= 0.25,
     6000 <= 4.013*30e6*sqrt(t^2*b^6/36)/196*(1 - t/28*sqrt(30e6/(4*12e6)))"""
SPRING = """var d in [0.05, 2], D in [0.25, 1.3], N in [2, 15]
minimize (N + 2)*D*d^2
subject to 1 - D^3*N/(71785*d^4) <= 0, 1 - 140.45*d/(D^2*N) <= 0, (D + d)/1.5 - 1 <= 0,
     (4*D^2 - d*D)/(12566*(D*d^3 - d^4)) + 1/(5108*d^2) - 1 <= 0"""
CATENARY = """dim n = 11
var y[n]
minimize sum(y)
subject to y[0] == 0, y[10] == 0, sum(sqrt(0.01 + (y[i+1] - y[i])^2) for i in range(10)) <= 1.3"""
POOLING = """var a >= 0, b >= 0, cx >= 0, cy >= 0, px >= 0, py >= 0, s in [1, 3]
minimize 6*a + 16*b + 10*(cx + cy) - 9*(px + cx) - 15*(py + cy)
subject to a + b == px + py, px + cx <= 100, py + cy <= 200, 3*a + b == s*(px + py),
     s*px + 2*cx <= 2.5*(px + cx), s*py + 2*cy <= 1.5*(py + cy)"""
FURTHER: dict[str, tuple[str, list[float], float | str]] = {
    "rosenbrock in a disc": (
        "var x, y minimize (1 - x)^2 + 100*(y - x^2)^2 subject to x^2 + y^2 <= 2",
        [-1.0, -1.0], 0.0),
    "mishra's bird": (
        "var x in [-10, 0], y in [-6.5, 0] minimize sin(y)*exp((1 - cos(x))^2) "
        "+ cos(x)*exp((1 - sin(y))^2) + (x - y)^2 subject to (x + 5)^2 + (y + 5)^2 <= 25",
        [-3.0, -1.6], -106.7645367),
    "townsend": (
        f"var x in [-2.25, 2.5], y in [-2.5, 1.75] let a = atan2(x, y) minimize {_CENTRE} "
        f"subject to x^2 + y^2 <= ({_RADIUS})^2 + (2*sin(a))^2", [2.0, 1.0], -2.0239884),
    "spring": (SPRING, [0.1, 0.5, 10.0], 0.0126652328),
    "welded beam": (WELDED_BEAM, [0.4, 6.0, 9.0, 0.5], 1.7248523),
    "products on a sphere": (
        "var x[3] minimize x[0]*x[1] + x[1]*x[2] + x[0]*x[2] subject to sumsq(x) == 1",
        [1.0, 0.2, 0.1], -0.5),
    "point and ellipse": (
        "var x, y minimize (x - 3)^2 + (y - 2)^2 subject to x^2/4 + y^2 == 1",
        [0.0, 1.0], 3.857489722),
    "box of most volume": (
        "var h in [0.1, 100], w in [0.1, 100], d in [0.1, 100] minimize 1/(h*w*d) subject to "
        "2*(h*w + h*d) <= 200, w*d <= 60, h/w >= 0.1, h/w <= 2, d/w >= 0.5, d/w <= 2",
        [5.0, 5.0, 5.0], 0.0025819889),
    "catenary": (CATENARY, [-0.1 * (i not in (0, 10)) for i in range(11)], -2.526701266),
    "hs78 in exp": (
        "var x[5] minimize exp(prod(x)) subject to sumsq(x) == 10, x[1]*x[2] == 5*x[3]*x[4], "
        "x[0]^3 + x[1]^3 == -1", [-2.0, 2.0, 2.0, -1.0, -1.0], 0.0539498478),
    "minimax": (
        "var x[2], t minimize t subject to x[0]^2 + x[1]^4 <= t, "
        "(2 - x[0])^2 + (2 - x[1])^2 <= t, 2*exp(x[1] - x[0]) <= t", [1.0, -0.1, 5.0], 1.9522245),
    "cantilever": (
        "var x[5] in [0.01, 100] minimize 0.0624*sum(x) subject to "
        "61/x[0]^3 + 37/x[1]^3 + 19/x[2]^3 + 7/x[3]^3 + 1/x[4]^3 <= 1", [5.0] * 5, 1.339956),
    "needle": ("var x, y minimize x + y subject to x^2 + y^2 <= 0", [1.0, 1.0], 0.0),
    "product from 0": (
        "var x[3] minimize sumsq(x) subject to prod(x) == 8", [0.0] * 3, 12.0),
    "outside a ball from 0": (
        "var x[4] minimize sum((x[i] - i)^2 for i in range(4)) subject to sumsq(x) >= 100",
        [0.0] * 4, 39.166852265),
    "cubic from 0": (
        "var x, y minimize (x - 1)^2 + y^2 subject to x^3 - 3*x*y^2 == 1", [0.0, 0.0], 0.0),
    "edge of a domain": (
        "var x, y minimize sqrt(x) + y^2 subject to x + y == 1, x >= 0", [0.5, 0.5], 0.926658218),
    "logarithms": (
        "var x[3] minimize -sum(log(x)) subject to sum(x) == 1", [0.2, 0.3, 0.5], 3.295836866),
    "degenerate vertex": (
        "var x, y minimize -x - y subject to x <= 1, y <= 1, x + y <= 2, 2*x + y <= 3",
        [0.0, 0.0], -2.0),
    "equations twice": (
        "var x, y minimize x^2 + y^2 subject to x + y == 1, 2*x + 2*y == 2", [0.0, 0.0], 0.5),
    "complementary": (
        "var x >= 0, y >= 0 minimize (x - 1)^2 + (y - 1)^2 subject to x*y <= 0",
        [0.5, 0.5], 1.0),
    "square that is 0": ("var x minimize x subject to x^2 == 0", [1.0], 0.0),
    "cusp": ("var x, y minimize x subject to y <= x^3, y >= 0", [1.0, 0.5], 0.0),
    "pooling": (POOLING, [0.0] * 6 + [1.0], -400.0),
    "sum beyond a box": (
        "var x in [0, 1], y in [0, 1] minimize x subject to x + y >= 3", [0.5, 0.5], "infeasible"),
    "disc and line": (
        "var x, y minimize x subject to x^2 + y^2 <= 1, x + y >= 2", [0.0, 0.0], "infeasible"),
    "sine": ("var x minimize x^2 subject to sin(x) == 1.5", [0.3], "infeasible"),
    "exponential": ("var x minimize x subject to exp(x) <= -0.5", [0.0], "infeasible"),
    "saddle on a line": ("var x, y minimize x*y subject to x + y == 1", [0.0, 0.0], "unbounded"),
    "cubic cliff": ("var x, y minimize x subject to y >= x^3", [0.0, 0.0], "unbounded"),
    "cone": (
        "var x, y, z minimize -z subject to x^2 + y^2 <= z^2, z >= 0",
        [0.0, 0.0, 1.0], "unbounded"),
    "hyperbola": (
        "var x, y minimize x subject to x*y >= 1, x >= 0, y >= 0", [1.0, 1.0], "no_minimum"),
    "along a parabola": (
        "var x, y minimize 1/x subject to y == x^2", [1.0, 1.0], "no_minimum"),
}  # fmt: skip
