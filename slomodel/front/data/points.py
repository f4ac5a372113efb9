"""The flat vector x (n,) of a model: layout, packing, unpacking, and starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slomodel.codegen.runtime import is_on_device
from slomodel.errors import Diagnostic, DomainError, ShapeError
from slomodel.front.data.bind import Binding, did_you_mean
from slomodel.front.data.user_arrays import kind_in_words, user_array
from slomodel.ir.dims import concrete, literal, show_shape
from slomodel.problem import Problem, Variable

Vector = NDArray[np.float64]
Point = ArrayLike | Mapping[str, ArrayLike]

_MOST_BYTES = 10**9
FLOAT64 = np.dtype(np.float64)


class VectorLayout:
    """The layout of a vector x (n,): variables of given shapes, in order, each in C order.

    Raises ShapeError if they take more than 10⁹ bytes.
    """

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.shapes = dict(shapes)
        self.n = sum(_count(shape) for shape in shapes.values())
        self.shape = (self.n,)
        if 8 * self.n > _MOST_BYTES:
            message = f"the variables take {8.0 * self.n:.3g} bytes; the limit is 1e9"
            raise ShapeError(Diagnostic("E320", message, help="give smaller sizes"))

    def pack(self, values: Mapping[str, ArrayLike]) -> Vector:
        """The vector of named arrays. Raises ShapeError for a name or a shape that differs."""
        named = self.named(values)
        for name in self.shapes:
            if name not in named:
                raise self._misfit(f"no value for variable `{name}`")
        return np.concatenate([named[name].ravel() for name in self.shapes])

    def named(self, values: Mapping[str, ArrayLike]) -> dict[str, Vector]:
        """Arrays of some variables by name, checked like those of `pack`."""
        for name in values:
            if name not in self.shapes:
                message = f"the model has no variable `{name}`"
                remedy = did_you_mean(str(name), self.shapes) + self.describe()
                raise ShapeError(Diagnostic("E605", message, help=remedy))
        arrays = {}
        for name, shape in self.shapes.items():
            if name in values:
                array = reals(values[name], f"variable `{name}`")
                if array.shape != shape:
                    raise self._misfit(f"variable `{name}` has shape {shape}, not {array.shape}")
                arrays[name] = array
        return arrays

    def unpack(self, vector: Vector) -> dict[str, Vector]:
        """Copies of the named arrays in a vector."""
        result, at = {}, 0
        for name, shape in self.shapes.items():
            end = at + _count(shape)
            result[name] = vector[at:end].reshape(shape).copy()
            at = end
        return result

    def vector(self, x: Point, what: str = "x") -> Vector:
        """`x` as a float64 vector (n,), from a vector or named arrays; not always a copy.

        In error messages it is named `what`.
        """
        # Fast path for the usual argument: the general checks take microseconds.
        if type(x) is np.ndarray and x.dtype is FLOAT64 and x.shape == self.shape:
            return x
        if isinstance(x, Mapping):
            return self.pack(x)
        vector = reals(x, what)
        self._check_shape(what, vector)
        return vector

    def device_vector(self, x: Point, what: str = "x") -> Vector:
        """`x` as a vector (n,) for kernels on a device; a CuPy array is not copied."""
        if not is_on_device(x):
            return self.vector(x, what)
        vector: Vector = x  # type: ignore[assignment]
        self._check_shape(what, vector)
        if vector.dtype.kind not in "biuf":
            raise _no_reals(what, f"holds {kind_in_words(vector.dtype)} values")
        return vector

    def receiver(self, out: object) -> Vector:
        """`out`, after checking that a gradient (n,) can be written into it.

        Raises DomainError or ShapeError if it cannot.
        """
        if not isinstance(out, np.ndarray):
            raise _no_receiver(f"is a {type(out).__name__}, not a NumPy array")
        self._check_shape("out", out)
        if out.dtype.kind != "f":
            raise _no_receiver(f"holds {kind_in_words(out.dtype)} values, not floats")
        if not out.flags.writeable:
            raise _no_receiver("is read-only")
        return out

    def _check_shape(self, what: str, vector: Vector) -> None:
        if vector.shape != self.shape:
            raise self._misfit(f"{what} has shape {vector.shape}, not {self.shape}")

    def _misfit(self, message: str) -> ShapeError:
        remedy = f"give a vector of {self.n} numbers, or a dict of arrays; {self.describe()}"
        return ShapeError(Diagnostic("E605", message, help=remedy))

    def describe(self) -> str:
        """Names and shapes of the variables, for messages."""
        parts = [f"{name} {list(shape)}" for name, shape in self.shapes.items()]
        return f"the variables are {', '.join(parts)}"


def vector_layout(problem: Problem, sizes: Mapping[str, int]) -> VectorLayout:
    """The layout of the vector of a problem whose sizes are all known."""
    return VectorLayout({v.name: concrete(v.shape, sizes) for v in problem.variables})


def reals(value: ArrayLike, what: str) -> Vector:
    """`value` as a float64 array. Raises DomainError for complex numbers, text and objects."""
    with np.errstate(over="ignore"):
        return np.asarray(user_array(what, value), dtype=np.float64)


def _no_reals(what: str, found: str) -> DomainError:
    return DomainError(Diagnostic("E306", f"{what} {found}", help="give an array of real numbers"))


def _no_receiver(found: str) -> DomainError:
    remedy = "give a new array of float64, or omit out="
    return DomainError(Diagnostic("E602", f"out {found}", help=remedy))


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


Array = NDArray[np.float64]


# A separate stream, so that the start differs from numbers drawn by the user with the same seed.
_STREAM = 0x510


def start(problem: Problem, binding: Binding, seed: int) -> Array:
    """A start (n,): each variable as given by its `init`, drawn in the order of declaration.

    Raises DomainError for a seed that is not a nonnegative integer.
    """
    shapes = vector_layout(problem, binding.sizes).shapes
    parts = drawn(problem, binding, seed, shapes)
    return np.concatenate([part.ravel() for part in parts.values()])


def drawn(
    problem: Problem, binding: Binding, seed: int, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Array]:
    """The starts of the variables by name, as arrays of the given shapes."""
    given: object = seed
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or seed < 0:
        message = f"a seed is a whole number from 0 on, not {seed!r}"
        raise DomainError(Diagnostic("E602", message, help="give a seed such as 0 or 1"))
    rng = np.random.default_rng([_STREAM, int(seed)])
    return {
        variable.name: _drawn(variable, shapes[variable.name], binding, rng)
        for variable in problem.variables
    }


def _drawn(
    variable: Variable, shape: tuple[int, ...], binding: Binding, rng: np.random.Generator
) -> Array:
    init = variable.init
    if init.kind in ("uniform", "normal") and variable.set and variable.set.kind == "ordered":
        # Sorted, independent draws are distributed as those that happen to increase.
        unordered = _drawn(replace(variable, set=None), shape, binding, rng)
        return np.sort(unordered, axis=variable.set.axis)
    if init.kind == "uniform":
        low, high = init.parameters
        return np.asarray(rng.uniform(low, high, shape))
    if init.kind in ("normal", "inside"):
        mean, deviation = init.parameters or (0.0, 1.0)
        return np.asarray(rng.normal(mean, deviation, shape))
    if init.kind == "eye":
        return np.eye(shape[0], shape[1])
    if init.kind == "data":
        if init.array not in binding.arrays:
            message = f"the start is data `{init.array}`, which has no values yet"
            remedy = f"give data={{{init.array!r}: …}}, or x0="
            raise ShapeError(Diagnostic("E706", message, help=remedy))
        return binding.arrays[init.array].copy()
    if init.kind == "list":
        if init.lengths != shape:
            own, wanted = (show_shape(tuple(map(literal, s))) for s in (init.lengths, shape))
            message = f"the start of `init` is {own}, the variable {wanted}"
            remedy = "the shapes must be equal"
            raise ShapeError(Diagnostic("E218", message, variable.span, help=remedy))
        return np.reshape(init.parameters, shape)
    value = {"zeros": 0.0, "ones": 1.0}.get(init.kind)
    return np.full(shape, init.parameters[0] if value is None else value)
