"""Products of sets over consecutive elements of x, as of several variables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slomodel.solve.norms import Vector, norm
from slomodel.solve.sets.convex_set import Face, Mask, Polyhedron, Set


@dataclass(frozen=True, slots=True)
class SetPart:
    """The set of the elements `start` to `stop` of x."""

    start: int
    stop: int
    set: Set

    @property
    def of(self) -> slice:
        return slice(self.start, self.stop)


@dataclass(frozen=True, slots=True)
class ProductSet:
    """{x : the elements of every part are in its set}; the parts cover x (n,) in order."""

    parts: tuple[SetPart, ...]

    @property
    def convex(self) -> bool:
        return all(part.set.convex for part in self.parts)

    @property
    def polyhedral(self) -> bool:
        return all(part.set.polyhedral for part in self.parts)

    @property
    def is_box(self) -> bool:
        return all(part.set.is_box for part in self.parts)

    def contains(self, x: Vector, slack: float = 0.0) -> bool:
        if slack == 0.0:
            return all(part.set.contains(x[part.of]) for part in self.parts)
        nearest = np.empty_like(x)
        self.project(x, nearest)
        return norm(x - nearest) <= slack

    def project(self, x: Vector, out: Vector) -> bool:
        moved = False
        for part in self.parts:
            moved |= part.set.project(x[part.of], out[part.of])
        return moved

    def tangent(self, x: Vector, v: Vector, out: Vector) -> None:
        for part in self.parts:
            part.set.tangent(x[part.of], v[part.of], out[part.of])

    def projected_gradient(self, x: Vector, g: Vector, out: Vector) -> None:
        for part in self.parts:
            part.set.projected_gradient(x[part.of], g[part.of], out[part.of])

    def face(self, x: Vector, r: Vector) -> ProductFace:
        return ProductFace(
            self.parts, tuple(part.set.face(x[part.of], r[part.of]) for part in self.parts)
        )

    def at_bounds(self, x: Vector) -> Mask:
        return np.concatenate([part.set.at_bounds(x[part.of]) for part in self.parts])

    def limits(self) -> tuple[Vector, Vector]:
        low, high = zip(*(part.set.limits() for part in self.parts), strict=True)
        return np.concatenate(low), np.concatenate(high)

    def polyhedron(self) -> Polyhedron | None:
        found = [part.set.polyhedron() for part in self.parts]
        known = [one for one in found if one is not None]
        if len(known) < len(found):
            return None
        rows, n = sum(len(one.E) for one in known), self.parts[-1].stop
        E, first = np.zeros((rows, n)), 0
        for part, one in zip(self.parts, known, strict=True):
            E[first : first + len(one.E), part.of] = one.E
            first += len(one.E)
        low, high = [one.low for one in known], [one.high for one in known]
        return Polyhedron(np.concatenate(low), np.concatenate(high), E)

    def interior_point(self) -> Vector:
        return np.concatenate([part.set.interior_point() for part in self.parts])


@dataclass(frozen=True, slots=True)
class ProductFace:
    """The product of one face of every part."""

    parts: tuple[SetPart, ...]
    faces: tuple[Face, ...]

    coordinates = None

    @property
    def whole(self) -> bool:
        return all(face.whole for face in self.faces)

    @property
    def shift(self) -> Vector | None:
        shifts = [face.shift for face in self.faces]
        if all(shift is None for shift in shifts):
            return None
        return np.concatenate(
            [
                np.zeros(one.stop - one.start) if shift is None else shift
                for one, shift in zip(self.parts, shifts, strict=True)
            ]
        )

    def project(self, v: Vector) -> Vector:
        pairs = zip(self.parts, self.faces, strict=True)
        return np.concatenate([face.project(v[..., one.of]) for one, face in pairs], axis=-1)
