"""SymPy expressions at many points, enclosed by balls of the library Arb.

`Rule` reads an expression once, as a list of steps for registers; a small C program runs the steps
at all points with the library that comes with the package python-flint. A point is tried at more
and more bits until 64 of its value are certain.
"""

from __future__ import annotations

import ctypes
import math
import os
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

Rows = NDArray[np.float64]
BITS = (128, 512, 2_400, 9_600)
"""Working precisions, in turn; log(1 + exp(-700)) takes 1,100 bits."""

_SOURCE = """\
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
typedef struct {{ int64_t words[6]; }} ball;  /* arb_struct on machines of 64 bits */
typedef struct {{ int64_t kind, target, a, b; double number, below; void *call, *not; }} step;
enum {{ UNARY, BINARY, CONSTANT, RATIONAL, POWER, EXACT, COPY, UNLESS, JUMP, INPUT }};
{declarations}
static int run(const step *steps, int64_t count, ball *r, const double *x, long bits) {{
    for (int64_t at = 0; at < count; at++) {{
        const step *s = steps + at;
        ball *z = r + s->target;
        switch (s->kind) {{
        case UNARY: ((void (*)(ball *, ball *, long))s->call)(z, r + s->a, bits); break;
        case BINARY:
            ((void (*)(ball *, ball *, ball *, long))s->call)(z, r + s->a, r + s->b, bits); break;
        case CONSTANT: ((void (*)(ball *, long))s->call)(z, bits); break;
        case RATIONAL:
            arb_set_d(z, s->number);
            arb_set_d(r, s->below);
            arb_div(z, z, r, bits);
            break;
        case POWER: arb_pow_ui(z, r + s->a, (unsigned long)s->b, bits); break;
        case EXACT: ((void (*)(ball *, ball *))s->call)(z, r + s->a); break;
        case COPY: arb_set(z, r + s->a); break;
        case UNLESS:
            if (((int (*)(ball *, ball *))s->call)(r + s->a, r + s->b)) break;
            if (!((int (*)(ball *, ball *))s->not)(r + s->a, r + s->b)) return 0;
            at = s->target - 1;
            break;
        case JUMP: at = s->target - 1; break;
        case INPUT: arb_set_d(z, x[s->a]); break;
        }}
    }}
    return 1;
}}
/* The values (m,) at the rows x (m, arity), NaN where there is none; 1 in `open` where more bits
   may give one. */
void values(const step *steps, int64_t count, int64_t registers, int64_t m, int64_t arity,
            const double *x, double *out, uint8_t *open, long bits) {{
    ball *r = calloc(registers + 2, sizeof *r), *size = r + registers, *least = size + 1;
    for (int64_t k = 0; k < registers + 2; k++) arb_init(r + k);
    arb_set_d(least, 1e-300);
    arb_mul(least, least, least, 64);
    for (int64_t k = 0; k < m; k++) {{
        if (!open[k]) continue;
        if (!run(steps, count, r, x + k * arity, bits)) continue;
        ball *v = r + 1;
        const int is_finite = arb_is_finite(v);
        if (is_finite) arb_abs(size, v);
        open[k] = is_finite ? !arb_is_zero(v) && !arb_lt(size, least)
            && arb_rel_accuracy_bits(v) < 64 : bits < 500;
        if (is_finite && !open[k]) out[k] = arf_get_d(v, 4);  /* to nearest */
    }}
    for (int64_t k = 0; k < registers + 2; k++) arb_clear(r + k);
    free(r);
}}
"""
_USED = {
    "void": ("arb_init", "arb_clear", "arb_set_d", "arb_set", "arb_abs", "arb_div", "arb_mul"),
    "int": ("arb_is_finite", "arb_is_zero", "arb_lt"),
    "long": ("arb_rel_accuracy_bits",),
    "double": ("arf_get_d",),
}
_PARAMETERS = {
    "arb_set_d": "ball *, double",
    "arb_set": "ball *, ball *",
    "arb_abs": "ball *, ball *",
    "arb_lt": "ball *, ball *",
    "arb_div": "ball *, ball *, ball *, long",
    "arb_mul": "ball *, ball *, ball *, long",
    "arf_get_d": "ball *, int",
}
_UNARY = {
    **{
        getattr(sp, name): f"arb_{name}"
        for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan")
    },
    **{getattr(sp, name): f"arb_{name}" for name in ("asinh", "acosh", "atanh", "exp", "log")},
    **{getattr(sp, name): f"arb_hypgeom_{name}" for name in ("erf", "erfc", "erfinv")},
    sp.loggamma: "arb_lgamma",
    sp.sinc: "arb_sinc",
    sp.floor: "arb_floor",
}
_BINARY = {
    sp.besseli: "arb_hypgeom_bessel_i",
    sp.atan2: "arb_atan2",
}
_CHAINS = {sp.Add: "arb_add", sp.Mul: "arb_mul", sp.Max: "arb_max", sp.Min: "arb_min"}
_EXACT = {sp.Abs: "arb_abs", sp.sign: "arb_sgn"}
_COMPARISONS = {
    sp.Eq: ("arb_eq", "arb_ne"),
    sp.Ne: ("arb_ne", "arb_eq"),
    sp.Lt: ("arb_lt", "arb_ge"),
    sp.Le: ("arb_le", "arb_gt"),
    sp.Gt: ("arb_gt", "arb_le"),
    sp.Ge: ("arb_ge", "arb_lt"),
}
"""Each with its negation."""
_UNARY_STEP, _BINARY_STEP, _CONSTANT, _RATIONAL, _POWER, _EXACT_STEP, _COPY, _UNLESS, _JUMP = range(
    9
)
_INPUT = 9


class UnreadableDefinition(Exception):
    """A definition has a part without a rule here."""


class _Step(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("kind", "target", "a", "b")),
        ("number", ctypes.c_double),
        ("below", ctypes.c_double),
        ("call", ctypes.c_void_p),
        ("negation", ctypes.c_void_p),
    )


@cache
def _arb() -> Any:
    """The library of python-flint; its import loads those that it depends on."""
    flint = import_module("flint")
    (found,) = (Path(flint.__file__).parent.parent / "python_flint.libs").glob("libflint*.so*")
    return ctypes.CDLL(str(found))


def _call(name: str) -> int:
    address = ctypes.cast(getattr(_arb(), name), ctypes.c_void_p).value
    assert address is not None
    return address


@cache
def _program() -> Any:
    """The compiled C program, with the library's functions as pointers."""
    names = [(kind, name) for kind, some in _USED.items() for name in some]
    names.append(("void", "arb_pow_ui"))
    parameters = {**_PARAMETERS, "arb_pow_ui": "ball *, ball *, unsigned long, long"}
    lines = [f"{kind} (*{name})({parameters.get(name, 'ball *')});" for kind, name in names]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "balls.c", Path(folder) / "balls.so"
        source.write_text(_SOURCE.format(declarations="\n".join(lines)), encoding="utf-8")
        compiler = os.environ.get("CC", "cc")
        subprocess.run(
            [compiler, "-O2", "-shared", "-fPIC", str(source), "-o", str(target)], check=True
        )
        program = ctypes.CDLL(str(target))
    for _, name in names:
        ctypes.c_void_p.in_dll(program, name).value = _call(name)
    return program


class Rule:
    """An expression of real symbols as steps on registers: 0 is scratch, 1 holds the value."""

    def __init__(self, expr: sp.Basic, own: Sequence[sp.Symbol]) -> None:
        self._own = list(own)
        self._steps: list[_Step] = []
        self._count = 2
        self._add(_COPY, 1, self._read(expr))

    def values(self, rows: Rows) -> Rows:
        """The values (m,), NaN where there are none."""
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        found, open_ = np.full(len(rows), np.nan), np.ones(len(rows), dtype=np.uint8)
        steps = (_Step * len(self._steps))(*self._steps)
        for bits in BITS:
            _program().values(
                steps,
                *map(ctypes.c_int64, (len(steps), self._count, *rows.shape)),
                *(ctypes.c_void_p(one.ctypes.data) for one in (rows, found, open_)),
                ctypes.c_long(bits),
            )
            if not open_.any():
                break
        return found

    def _add(
        self,
        kind: int,
        target: int = -1,
        a: int = 0,
        b: int = 0,
        *,
        number: float = 0.0,
        below: float = 1.0,
        call: str = "",
        negation: str = "",
    ) -> int:
        """Append a step; the register of its result, a new one unless `target` is given."""
        if target < 0:
            target = self._count
            self._count += 1
        calls = [_call(name) if name else None for name in (call, negation)]
        self._steps.append(_Step(kind, target, a, b, number, below, *calls))
        return target

    def _read(self, expr: sp.Basic) -> int:
        """The register that holds the expression's value."""
        if expr in self._own:
            return self._add(_INPUT, a=self._own.index(expr))
        if expr.is_Rational:
            above, below = int(expr.p), int(expr.q)
            if int(float(above)) != above or int(float(below)) != below:
                raise UnreadableDefinition(str(expr))
            return self._add(_RATIONAL, number=float(above), below=float(below))
        for constant, name in ((sp.pi, "arb_const_pi"), (sp.E, "arb_const_e")):
            if expr is constant:
                return self._add(_CONSTANT, call=name)
        if isinstance(expr, sp.Piecewise):
            return self._choice(expr)
        if isinstance(expr, sp.Pow):
            return self._power(expr)
        if isinstance(expr, sp.polygamma):
            return self._polygamma(*expr.args)
        parts = [self._read(part) for part in expr.args]
        kind = expr.func
        if kind in _UNARY:
            return self._add(_UNARY_STEP, a=parts[0], call=_UNARY[kind])
        if kind in _EXACT:
            return self._add(_EXACT_STEP, a=parts[0], call=_EXACT[kind])
        if kind in _BINARY:
            return self._add(_BINARY_STEP, a=parts[0], b=parts[1], call=_BINARY[kind])
        if kind in _CHAINS:
            result = parts[0]
            for one in parts[1:]:
                result = self._add(_BINARY_STEP, a=result, b=one, call=_CHAINS[kind])
            return result
        raise UnreadableDefinition(str(kind))

    def _power(self, expr: sp.Pow) -> int:
        base, exponent = expr.args
        if exponent.is_Integer:
            power = int(exponent)
            result = self._add(_POWER, a=self._read(base), b=abs(power))
            return result if power >= 0 else self._add(_UNARY_STEP, a=result, call="arb_inv")
        if exponent in (sp.Rational(1, 2), sp.Rational(-1, 2)):
            name = "arb_sqrt" if exponent > 0 else "arb_rsqrt"
            return self._add(_UNARY_STEP, a=self._read(base), call=name)
        a, b = self._read(base), self._read(exponent)
        return self._add(_BINARY_STEP, a=a, b=b, call="arb_pow")

    def _polygamma(self, order: sp.Basic, x: sp.Basic) -> int:
        n, a = int(order), self._read(x)
        if n == 0:
            return self._add(_UNARY_STEP, a=a, call="arb_digamma")
        s = self._add(_RATIONAL, number=n + 1.0)
        zeta = self._add(_BINARY_STEP, a=s, b=a, call="arb_hurwitz_zeta")
        factor = self._add(_RATIONAL, number=float((-1) ** (n + 1) * math.factorial(n)))
        return self._add(_BINARY_STEP, a=factor, b=zeta, call="arb_mul")

    def _choice(self, expr: sp.Piecewise) -> int:
        """The first branch whose condition holds; no value where that is not certain."""
        result, ends = self._add(_RATIONAL, below=0.0), []
        for value, condition in expr.args:
            skip = None
            if condition is not sp.true:
                if condition.func not in _COMPARISONS:
                    raise UnreadableDefinition(str(condition.func))
                a, b = (self._read(part) for part in condition.args)
                call, negation = _COMPARISONS[condition.func]
                self._add(_UNLESS, 0, a, b, call=call, negation=negation)
                skip = self._steps[-1]
            self._add(_COPY, result, self._read(value))
            self._add(_JUMP, 0)
            ends.append(self._steps[-1])
            if skip is not None:
                skip.target = len(self._steps)
        for one in ends:
            one.target = len(self._steps)
        return result
