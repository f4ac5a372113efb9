"""The classes whose objects a checkpoint holds, with the names that they have in the file.

A class or an attribute may be renamed here; its name in the file stays, so that checkpoints of
earlier versions can be resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from slomodel.solve.constants.proved import Clocked, FirstProved, SignedErrors
from slomodel.solve.constants.source import Sampled, SampledConstants
from slomodel.solve.directions.alternating import Turns
from slomodel.solve.directions.conjugate_gradient import ConjugateGradient
from slomodel.solve.directions.direction import Gradient, SecantPair
from slomodel.solve.directions.gauss_newton import GaussNewton
from slomodel.solve.directions.lbfgs import LBFGS
from slomodel.solve.directions.mixed_newton import MixedNewton
from slomodel.solve.directions.newton import Newton
from slomodel.solve.directions.newton_cg import NewtonCG
from slomodel.solve.facts import ObjectiveFacts
from slomodel.solve.line_search.armijo import LineSearch
from slomodel.solve.line_search.exact import Ray
from slomodel.solve.line_search.initial_step import StepMemory
from slomodel.solve.methods.adgd import SecantLength
from slomodel.solve.methods.agp import AGPRun
from slomodel.solve.methods.gradient_steps import DescentRun, Wandering
from slomodel.solve.methods.ngd import FixedLength
from slomodel.solve.methods.norm_armijo import NormArmijo, NormArmijoRun, ProvedCurvature
from slomodel.solve.methods.std_armijo import StdArmijoRun
from slomodel.solve.methods.step_rules import FreeRun, Settled
from slomodel.solve.run.history import EpochLog, EpochRecord
from slomodel.solve.run.run_state import RunState
from slomodel.solve.run.saddle_escape import SaddleWatch
from slomodel.solve.sets.ball import EuclideanBall
from slomodel.solve.sets.box import Box
from slomodel.solve.stagnation.curvature import Ritz
from slomodel.solve.stagnation.resolution import Floor
from slomodel.solve.stagnation.unbounded import Drift, FarProbe
from slomodel.solve.subroutine import Constants, EpochRegion, Iterate, TheoremInequality
from slomodel.solve.verify.certificate import Certifier, Tally
from slomodel.solve.verify.inequalities import CurvatureDescent, Epochs

Parts = dict[str, object]
"""The codes of an object's attributes, by their names in the file."""


@dataclass(frozen=True, slots=True)
class SavedClass:
    """A class, its name in checkpoints, and the attributes that have another name there.

    `created`: an object may be constructed from the file alone, where the run that continues has
    none yet; of every other class the run has one, and the file sets its attributes. `upgrade`
    turns the saved attributes of earlier versions into those of now.
    """

    cls: type
    name: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    created: bool = False
    upgrade: Callable[[Parts], Parts] | None = None


def _region_with_set(parts: Parts) -> Parts:
    """An epoch's region, which was saved with its radius and margin before it had a set."""
    ball = parts.get("ball")
    if not isinstance(ball, list):
        return parts
    _, number, _, size = ball
    centre = parts["centre"]
    assert isinstance(centre, list)
    # The centre comes first, so that the ball can refer to the same array.
    held = {"centre": ["same", centre[1]], "radius": size["D"]}
    return {
        "centre": centre,
        **{name: part for name, part in parts.items() if name not in {"centre", "ball"}},
        "set": ["object", number, "EuclideanBall", held],
        "d": size["d"],
    }


_TABLE = (
    # The run and its record.
    SavedClass(RunState, "Run", {"options": "controls"}),
    SavedClass(EpochLog, "EpochLog"),
    SavedClass(EpochRecord, "EpochRecord", created=True),
    SavedClass(Iterate, "Iterate", created=True),
    SavedClass(EpochRegion, "Region", created=True, upgrade=_region_with_set),
    SavedClass(EuclideanBall, "EuclideanBall", created=True),
    SavedClass(Box, "Box", created=True),
    SavedClass(ObjectiveFacts, "Facts"),
    # Lipschitz constants.
    SavedClass(Constants, "Constants", created=True),
    SavedClass(Clocked, "Clocked", {"_source": "_prove"}),
    SavedClass(FirstProved, "FirstProved"),
    SavedClass(Sampled, "Sampled"),
    SavedClass(SampledConstants, "Samples"),
    SavedClass(SignedErrors, "SignedErrors"),
    # Methods.
    SavedClass(AGPRun, "AGPRun"),
    SavedClass(DescentRun, "DescentRun"),
    SavedClass(FreeRun, "FreeRun"),
    SavedClass(FixedLength, "FixedLength"),
    SavedClass(SecantLength, "ByCurvature"),
    SavedClass(NormArmijo, "NormArmijo"),
    SavedClass(NormArmijoRun, "NormArmijoRun"),
    SavedClass(StdArmijoRun, "StdArmijoRun"),
    # Directions and line searches.
    SavedClass(ConjugateGradient, "ConjugateGradient"),
    SavedClass(GaussNewton, "GaussNewton"),
    SavedClass(Gradient, "Gradient"),
    SavedClass(LBFGS, "LBFGS"),
    SavedClass(MixedNewton, "MixedNewton"),
    SavedClass(Newton, "Newton"),
    SavedClass(NewtonCG, "NewtonCG"),
    SavedClass(Turns, "Turns"),
    SavedClass(SecantPair, "Pair", created=True),
    SavedClass(LineSearch, "LineSearch"),
    SavedClass(StepMemory, "Memory"),
    SavedClass(Ray, "Ray"),
    # Stagnation, saddles and unbounded objectives.
    SavedClass(Floor, "Floor"),
    SavedClass(Settled, "Settled"),
    SavedClass(Wandering, "Wandering"),
    SavedClass(Drift, "Drift"),
    SavedClass(FarProbe, "FarProbe"),
    SavedClass(Ritz, "Ritz", created=True),
    SavedClass(SaddleWatch, "SaddleWatch"),
    # The certificate.
    SavedClass(Certifier, "Certifier", {"_inequalities": "_promises"}),
    SavedClass(TheoremInequality, "Promise", {"applies": "made"}),
    SavedClass(Tally, "Tally"),
    SavedClass(ProvedCurvature, "ProvedCurvature"),
    SavedClass(CurvatureDescent, "ByCurvature"),
    SavedClass(Epochs, "Epochs"),
)

SAVED = {entry.cls: entry for entry in _TABLE}
CREATED = {entry.name: entry for entry in _TABLE if entry.created}
