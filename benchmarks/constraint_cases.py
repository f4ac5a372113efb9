"""Problems with constraints and known minima: of Hock & Schittkowski, a chain, a polygon."""

HS71 = """var x[4] in [1, 5]
minimize x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2]
subject to product: x[0] * x[1] * x[2] * x[3] >= 25, square: sumsq(x) == 40"""
CHAIN = """dim n = 20
var u[n - 1], v[n - 1]
let U[i in range(n + 1)] = where(i == 0, 0, where(i == n, 2, u[i-1]))
let V[i in range(n + 1)] = where(i == 0, 0, where(i == n, 0.5, v[i-1]))
minimize sum(V[i] + V[i+1] for i in n) / 2
subject to links: (U[i+1] - U[i])^2 + (V[i+1] - V[i])^2 == 0.0225 for i in n"""
POLYGON = """dim n = 6
var r[n - 1] in [0, 1], th[n - 1] in [0, pi]
maximize sum(r[i+1] * r[i] * sin(th[i+1] - th[i]) for i in range(n - 2)) / 2
subject to diameter: r[i]^2 + r[j]^2 - 2 * r[i] * r[j] * cos(th[i] - th[j]) <= 1
     for i in range(n - 1), j in range(i + 1, n - 1)
subject to order: th[i] <= th[i+1] for i in range(n - 2)"""
HS43 = """var x[4]
minimize sumsq(x) + x[2]^2 - 5 * x[0] - 5 * x[1] - 21 * x[2] + 7 * x[3]
subject to one: sumsq(x) + x[0] - x[1] + x[2] - x[3] <= 8
subject to two: x[0]^2 + 2 * x[1]^2 + x[2]^2 + 2 * x[3]^2 - x[0] - x[3] <= 10
subject to three: 2 * x[0]^2 + x[1]^2 + x[2]^2 + 2 * x[0] - x[1] - x[3] <= 5"""
# Three heat exchangers: the constraints differ in size by 10^6.
HS106 = """var a in [100, 1e4], b[2] in [1000, 1e4], t[5] in [10, 1000]
minimize a + b[0] + b[1]
subject to 0.0025 * (t[0] + t[2]) <= 1, 0.0025 * (t[1] + t[3] - t[0]) <= 1,
     0.01 * (t[4] - t[1]) <= 1,
     a * t[2] - 833.33252 * t[0] - 100 * a + 83333.333 >= 0,
     b[0] * t[3] - 1250 * t[1] - b[0] * t[0] + 1250 * t[0] >= 0,
     b[1] * t[4] - 1250000 - b[1] * t[1] + 2500 * t[1] >= 0"""
# Hock & Schittkowski 26, 43, 46, 48, 6, 71 and 106: text, start, f*, most evaluations.
KNOWN = {
    "hs6": ("var x[2] minimize (1 - x[0])^2 subject to 10 * (x[1] - x[0]^2) == 0",
            [-1.2, 1.0], 0.0, 44),
    "hs26": ("var x[3] minimize (x[0] - x[1])^2 + (x[1] - x[2])^4 "
             "subject to (1 + x[1]^2) * x[0] + x[2]^4 == 3", [-2.6, 2.0, 2.0], 0.0, 104),
    "hs46": ("var x[5] minimize (x[0] - x[1])^2 + (x[2] - 1)^2 + (x[3] - 1)^4 + (x[4] - 1)^6 "
             "subject to x[0]^2 * x[3] + sin(x[3] - x[4]) == 1, x[1] + x[2]^4 * x[3]^2 == 2",
             [0.5 * 2**0.5, 1.75, 0.5, 2.0, 2.0], 0.0, 56),
    "hs48": ("var x[5] minimize (x[0] - 1)^2 + (x[1] - x[2])^2 + (x[3] - x[4])^2 "
             "subject to sum(x) == 5, x[2] - 2 * (x[3] + x[4]) == -3",
             [3.0, 5.0, -3.0, 2.0, -2.0], 0.0, 28),
    "hs71": (HS71, [1.0, 5.0, 5.0, 1.0], 17.0140172891563, 20),
    "hs43": (HS43, [0.0] * 4, -44.0, 20),
    "hs106": (HS106, [5000, 5000, 5000, 200, 350, 150, 225, 425], 7049.24802052866, 80),
    "polygon6": (POLYGON, [0.5, 0.8, 0.9, 0.8, 0.5, 0.5, 1.0, 1.5, 2.0, 2.6], 0.6749814429301, 46),
}  # fmt: skip
