"""The Python module that runs the kernels through CuPy: readable, self-contained, as executed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slomodel.codegen.cuda.host import entry_lines
from slomodel.codegen.cuda.kernel import Kernel
from slomodel.codegen.cuda.matrices import MATRICES, MATRICES_SOURCE
from slomodel.codegen.cuda.prelude import prelude
from slomodel.codegen.cuda.source import DeviceUnit
from slomodel.codegen.layout import Layout, plain
from slomodel.codegen.python.functions import plan_preparation, preparation_lines
from slomodel.codegen.python.module import (
    PUBLIC,
    completed,
    constant_lines,
    docstring,
    kind_text,
    named,
    self_check,
)
from slomodel.codegen.python.views import HELPERS, PARTS

_HOST = '''
@cache
def _module():
    return cp.RawModule(code=CUDA, options=("-std=c++17",))


def _checked(name, *arrays):
    """The kernel `name`, for arrays like these, which are checked: it takes any address."""
    blocks, threads, expected = KERNELS[name]
    if len(arrays) != len(expected):
        raise TypeError(f"{name} takes {len(expected)} arrays, not {len(arrays)}")
    for array, (kind, size) in zip(arrays, expected):
        if not isinstance(array, cp.ndarray) or array.dtype != kind:
            raise TypeError(f"{name} takes arrays of CuPy of type {kind}, not {array!r}")
        if array.size != size or not array.flags.c_contiguous:
            raise ValueError(f"{name} takes {size} numbers in C order, not {array.shape}")
    kernel = _module().get_function(name)
    return lambda *arrays: kernel(blocks, (threads,), arrays)


def _bound(name, *arrays):
    """The kernel `name` over these arrays."""
    kernel = _checked(name, *arrays)
    return lambda: kernel(*arrays)


def _graph(*kernels):
    """These kernels as one graph, which starts in one call; in turn where that is refused."""
    def in_turn():
        for kernel in kernels:
            kernel()

    stream = cp.cuda.Stream(non_blocking=True)
    try:
        with stream:
            stream.begin_capture()
            in_turn()
            graph = stream.end_capture()
    except (cp.cuda.runtime.CUDARuntimeError, cp.cuda.driver.CUDADriverError):
        return in_turn

    def run():
        graph.launch()

    run.kernels = kernels  # their arrays live as long as the graph
    return run


def _view(array, start, shape, steps):
    """A view with these steps, in elements, from an element of the array on."""
    strides = [step * array.itemsize for step in steps]
    return cp.lib.stride_tricks.as_strided(array.reshape(-1)[start:], shape, strides)


def _fill(array, vector):
    """Copy a vector of NumPy or CuPy into an array of the device."""
    if isinstance(vector, cp.ndarray):
        cp.copyto(array, vector)
    else:
        array.set(np.ascontiguousarray(vector, real))


def _give(out, array):
    """Copy an array of the device into a vector of NumPy or CuPy."""
    if isinstance(out, cp.ndarray):
        cp.copyto(out, array)
    else:
        np.copyto(out, array.get())


def _give_both(out, array):
    """Copy the gradient into a vector of NumPy or CuPy; the value, which follows it."""
    if isinstance(out, cp.ndarray):
        cp.copyto(out, array[:n])
        return array[n].item()
    both = array.get()
    np.copyto(out, both[:n])
    return both[n].item()


def _fits(vector):
    """True for a vector of CuPy that kernels can work in."""
    fits = isinstance(vector, cp.ndarray) and vector.dtype == real and vector.shape == (n,)
    return fits and vector.flags.c_contiguous


def _taken(vector, own):
    """The vector itself where kernels can read it, else a copy in an array of their own."""
    if not _fits(vector):
        _fill(own, vector)
    return vector if _fits(vector) else own


def _room(out, own, *read):
    """Where kernels put their result: the vector itself where they can, else their own."""
    apart = _fits(out) and not any(cp.may_share_memory(out, vector) for vector in read)
    return out if apart else own


def _bits(point):
    """The bits of a point of NumPy; None, which is not a point, for one that lies on the device."""
    return None if isinstance(point, cp.ndarray) else point.tobytes()


def _vector(x):
    """x as an array of shape (n,), of NumPy or CuPy."""
    vector = x if isinstance(x, cp.ndarray) else np.asarray(x, float)
    if vector.shape != (n,):
        raise ValueError(f"x has shape {vector.shape}, expected {(n,)}")
    return vector
'''

_ARRAYS = '''
def _arrays(data):
    """The data as arrays of the device in C order, checked; defaults where it has none."""
@@    arrays = {}
    for name, shape in shapes.items():
        if name not in data and name not in defaults:
            raise ValueError(f"data needs {name} of shape {shape}")
        given = data[name] if name in data else np.full(shape, defaults[name])
        arrays[name] = cp.array(given, ::, order="C", copy=False)
        if arrays[name].shape != shape:
            raise ValueError(f"{name} has shape {arrays[name].shape}, expected {shape}")
%%    return arrays
'''


def module_text(
    name: str, units: Sequence[DeviceUnit], layout: Layout, numbers: Mapping[str, int]
) -> str:
    """A module with `make_NAME(data)` and, for single calls, `NAME(x, data)` for each entry."""
    kernels = [kernel for unit in units for kernel in unit.kernels]
    bodies = ["\n".join(entry_lines(one)) for one in units]
    preparation = plan_preparation(layout, numbers)
    if preparation is not None:
        bodies.insert(0, "\n".join(preparation_lines(preparation, layout)))
    listed = any(PARTS in body for body in bodies)
    used = [source for name, source in HELPERS.items() if any(name in body for body in bodies)]
    bodies[:0] = [source.strip("\n") for source in used]
    imported = ["from functools import cache"]
    imported += ["from itertools import combinations_with_replacement"] if listed else []
    factored = any(MATRICES in body for body in bodies)
    imported = ["import warnings", *imported] if factored else imported
    libraries = ["import cupy as cp", *(["import cupyx"] if factored else []), "import numpy as np"]
    libraries += ["from cupyx.scipy import linalg"] if factored else []
    head = [docstring(name, layout, "cupy"), "", *imported, "", *libraries, ""]
    head += constant_lines(layout, numbers)
    text = cuda_text(name, kernels, layout, numbers)
    parts = ["\n".join([*head, "", f'CUDA = r"""{text}"""', "", *_table(kernels, layout)])]
    checks = "".join(f"{line}\n" for line in named(layout))
    arrays = _ARRAYS.strip("\n").replace("@@", checks).replace("%%", _completed(layout))
    arrays = arrays.replace("::", kind_text(layout))
    parts += [_HOST.strip("\n"), arrays]
    parts += [MATRICES_SOURCE.strip("\n")] if factored else []
    parts += bodies
    parts += [_public(one.entry.name) for one in units]
    parts += self_check([one.entry.name for one in units], layout)
    return "\n\n\n".join(parts) + "\n"


def cuda_text(
    name: str, kernels: Sequence[Kernel], layout: Layout, numbers: Mapping[str, int]
) -> str:
    """The CUDA C of all kernels; users' names cannot end its comment or the Python string."""
    sizes = ", ".join(f"{plain(dim)} = {size}" for dim, size in numbers.items()) or "none"
    remark = f"Kernels of the model `{plain(name)}` in {layout.precision}. Sizes: {sizes}."
    head = f"/* {remark.replace('*/', '* /')} */\n"
    text = "\n\n".join(kernel.text for kernel in kernels)
    return f"{head}{prelude(text, layout.precision == 'float32')}\n{text}\n"


def _table(kernels: Sequence[Kernel], layout: Layout) -> list[str]:
    """How each kernel is launched: blocks, threads, and the types and lengths of its arrays."""
    kinds = {"real": layout.precision, "double": "float64", "long long": "int64"}
    rows = []
    for kernel in kernels:
        arrays = "".join(f'("{kinds[a.kind]}", {a.size}), ' for a in kernel.arrays)
        rows.append(
            f'    "{kernel.name}": ({kernel.blocks}, {kernel.threads}, ({arrays.rstrip()})),'
        )
    return [
        "# Blocks, threads, and the types and lengths of the arrays.",
        "KERNELS = {",
        *rows,
        "}",
    ]


def _completed(layout: Layout) -> str:
    """The lines that add the prepared data, which NumPy computes."""
    lines = [
        line.replace("(name, data[name])", "(name, cp.asarray(data[name]))")
        for line in completed(layout)
    ]
    result = "prepare({name: array.get() for name, array in arrays.items()})"
    update = f"        arrays.update((name, cp.asarray(one)) for name, one in {result}.items())"
    lines = [update if line.endswith("(prepare(arrays))") else line for line in lines]
    return "".join(f"{line}\n" for line in lines)


def _public(name: str) -> str:
    return (
        PUBLIC[name]
        .strip("\n")
        .replace("np.empty(n, real)", "cp.get_array_module(x).empty(n, real)")
    )
