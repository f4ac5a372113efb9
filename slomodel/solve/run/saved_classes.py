"""The classes whose objects a checkpoint holds, with their names in the file.

A class or an attribute may be renamed in the code; its name in the file is fixed, so that
checkpoints of earlier versions can be resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from slomodel.solve.compiled.steps import Pace
from slomodel.solve.constants.proved import Clocked, FirstProved, SignedErrors
from slomodel.solve.constants.source import Sampled, SampledConstants
from slomodel.solve.directions.alternating import Turns
from slomodel.solve.directions.conjugate_gradient import ConjugateGradient
from slomodel.solve.directions.direction import Gradient, SecantPair
from slomodel.solve.directions.gauss_newton import GaussNewton
from slomodel.solve.directions.lbfgs import LBFGS
from slomodel.solve.directions.levenberg_marquardt import LevenbergMarquardt
from slomodel.solve.directions.mixed_newton import MixedNewton
from slomodel.solve.directions.newton import Newton
from slomodel.solve.directions.newton_cg import NewtonCG
from slomodel.solve.directions.quasi_newton import QuasiNewton
from slomodel.solve.directions.sparse_newton import SparseNewton
from slomodel.solve.facts import ObjectiveFacts
from slomodel.solve.line_search.arc import ArcSearch
from slomodel.solve.line_search.armijo import LineSearch
from slomodel.solve.line_search.certified import CertifiedSearch, ProvedStep
from slomodel.solve.line_search.exact import Ray
from slomodel.solve.line_search.initial_step import StepMemory
from slomodel.solve.line_search.interpolating import InterpolatingSearch
from slomodel.solve.line_search.proved_values import ProvedValues
from slomodel.solve.methods.adgd import SecantLength
from slomodel.solve.methods.agp import AGPRun
from slomodel.solve.methods.auto import PredictedDecrease
from slomodel.solve.methods.gradient_steps import DescentRun
from slomodel.solve.methods.ngd import FixedLength
from slomodel.solve.methods.norm_armijo import NormArmijo, NormArmijoRun
from slomodel.solve.methods.projected_search import ProjectedSearch, ProjectedSearchRun
from slomodel.solve.methods.std_armijo import StdArmijoRun
from slomodel.solve.methods.step_rules import FreeRun
from slomodel.solve.quadratics.alternating import AlternatingModels
from slomodel.solve.quadratics.dense import Damped, DenseHessian
from slomodel.solve.quadratics.hessian import HessianProducts
from slomodel.solve.quadratics.limited_memory import STEP, LimitedMemory, RowProducts
from slomodel.solve.quadratics.sparse import SparseFaces
from slomodel.solve.run.history import EpochLog, EpochRecord
from slomodel.solve.run.run_state import RunState
from slomodel.solve.run.saddle_escape import SaddleWatch
from slomodel.solve.sets.ball import EuclideanBall
from slomodel.solve.sets.balls import RowBalls
from slomodel.solve.sets.box import Box
from slomodel.solve.sets.positive_semidefinite import PositiveSemidefinite
from slomodel.solve.sets.product import ProductSet, SetPart
from slomodel.solve.sets.reordered import ReorderedSet
from slomodel.solve.sets.simplex import Simplex
from slomodel.solve.sets.sphere import Sphere
from slomodel.solve.sets.within_ball import WithinBall
from slomodel.solve.stagnation.curvature import Ritz
from slomodel.solve.stagnation.pole import PoleWatch
from slomodel.solve.stagnation.resolution import Resolution
from slomodel.solve.stagnation.stagnation import ChangeGain, RangeGain, SearchGain, Stagnation
from slomodel.solve.stagnation.unbounded import Drift, FarProbe
from slomodel.solve.subroutine import Constants, EpochRegion, Iterate, TheoremInequality
from slomodel.solve.verify.certificate import Certifier, Tally
from slomodel.solve.verify.inequalities import CurvatureDescent, Epochs, ProvedCurvature

Parts = dict[str, object]
"""The codes of an object's attributes, by their names in the file."""


@dataclass(frozen=True, slots=True)
class SavedClass:
    """A class, its name in checkpoints, and its attributes that are named differently there.

    `created`: objects may be constructed from the file alone, since the resumed run may not have
    one yet; for every other class the run has an object, whose attributes are set. `upgrade`
    converts the saved attributes of earlier versions to the present ones.
    """

    cls: type
    name: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    created: bool = False
    upgrade: Callable[[Parts], Parts] | None = None


def _region_with_set(parts: Parts) -> Parts:
    """Upgrade an epoch's region that was saved with radius and margin, before it had a set."""
    ball = parts.get("ball")
    if not isinstance(ball, list):
        return parts
    _, number, _, size = ball
    centre = parts["centre"]
    assert isinstance(centre, list)
    # The centre precedes the ball, which refers to the same array.
    held = {"centre": ["same", centre[1]], "radius": size["D"]}
    return {
        "centre": centre,
        **{name: part for name, part in parts.items() if name not in {"centre", "ball"}},
        "set": ["object", number, "EuclideanBall", held],
        "d": size["d"],
    }


def _run_with_stagnation(parts: Parts) -> Parts:
    """Upgrade a run that was saved when its signs of stagnation were separate objects."""
    floor = parts.get("_floor")
    if not isinstance(floor, list):
        return parts
    number, old = floor[1], floor[3]
    names = ("lowest", "eps", "steepest", "best", "_scale", "_best_gnorm", "_anchor", "_measured")
    resolution = ["object", number, "Resolution", {name: old[name] for name in names}]
    idle, gain = _saved_gain(parts, number, old)
    held = {
        "resolution": resolution,
        "probe": parts["_probe"],
        "_gain": gain,
        "_idle": idle,
        "_idle_steps": old["_idle_steps"],
    }
    # In the place of the resolution, to which the line search refers.
    renamed = {name: "_stagnation" if name == "_floor" else name for name in parts}
    upgraded = {renamed[name]: part for name, part in parts.items()}
    upgraded["_stagnation"] = ["object", f"{number} stagnation", "Stagnation", held]
    omitted = {"_probe", "_settled", "_wandering"}
    return {name: part for name, part in upgraded.items() if name not in omitted}


def _memory_without_products(parts: Parts) -> Parts:
    """Upgrade pairs that were saved when their products were always up to date, in Python."""
    return {"_multiplied": 0, "_of_step": STEP, **parts}


def _saved_gain(parts: Parts, number: int, floor: Parts) -> tuple[object, list[object]]:
    """The number of idle steps and the code of the gain for `_run_with_stagnation`."""
    for name, cls in (("_wandering", "RangeGain"), ("_settled", "ChangeGain")):
        known = parts.get(name)
        if isinstance(known, list):
            state = {key: part for key, part in known[3].items() if key != "_steps"}
            return known[3]["_steps"], ["object", known[1], cls, state]
    state = {"_first_f": floor["_first_f"], "_f": floor["_mark_f"], "_gnorm": floor["_mark"]}
    state["_resolution"] = ["same", number]
    return floor["_idle"], ["object", f"{number} gain", "SearchGain", state]


_TABLE = (
    # The run and its record.
    SavedClass(RunState, "Run", {"options": "controls"}),
    SavedClass(EpochLog, "EpochLog"),
    SavedClass(EpochRecord, "EpochRecord", created=True),
    SavedClass(Iterate, "Iterate", created=True),
    SavedClass(EpochRegion, "Region", created=True, upgrade=_region_with_set),
    SavedClass(EuclideanBall, "EuclideanBall", created=True),
    SavedClass(Box, "Box", created=True),
    SavedClass(Simplex, "Simplex", created=True),
    SavedClass(SetPart, "SetPart", created=True),
    SavedClass(ProductSet, "ProductSet", created=True),
    SavedClass(Sphere, "Sphere", created=True),
    SavedClass(RowBalls, "RowBalls", created=True),
    SavedClass(ReorderedSet, "ReorderedSet", created=True),
    SavedClass(PositiveSemidefinite, "PositiveSemidefinite", created=True),
    SavedClass(WithinBall, "WithinBall", created=True),
    SavedClass(ObjectiveFacts, "Facts"),
    # Lipschitz constants.
    SavedClass(Constants, "Constants", created=True),
    SavedClass(Clocked, "Clocked", {"_source": "_prove"}),
    SavedClass(FirstProved, "FirstProved"),
    SavedClass(Sampled, "Sampled"),
    SavedClass(SampledConstants, "Samples"),
    SavedClass(SignedErrors, "SignedErrors"),
    # Methods.
    SavedClass(AGPRun, "AGPRun", upgrade=_run_with_stagnation),
    SavedClass(DescentRun, "DescentRun", upgrade=_run_with_stagnation),
    SavedClass(FreeRun, "FreeRun", upgrade=_run_with_stagnation),
    SavedClass(FixedLength, "FixedLength"),
    SavedClass(SecantLength, "ByCurvature"),
    SavedClass(NormArmijo, "NormArmijo"),
    SavedClass(NormArmijoRun, "NormArmijoRun", upgrade=_run_with_stagnation),
    SavedClass(ProjectedSearch, "ProjectedSearch"),
    SavedClass(ProjectedSearchRun, "ProjectedSearchRun"),
    SavedClass(StdArmijoRun, "StdArmijoRun", upgrade=_run_with_stagnation),
    # Directions and line searches.
    SavedClass(ConjugateGradient, "ConjugateGradient"),
    SavedClass(GaussNewton, "GaussNewton"),
    SavedClass(Gradient, "Gradient"),
    SavedClass(LBFGS, "LBFGS", created=True),
    SavedClass(InterpolatingSearch, "InterpolatingSearch"),
    SavedClass(LevenbergMarquardt, "LevenbergMarquardt"),
    SavedClass(Pace, "Pace"),
    SavedClass(PredictedDecrease, "PredictedDecrease"),
    SavedClass(QuasiNewton, "QuasiNewton"),
    SavedClass(MixedNewton, "MixedNewton"),
    SavedClass(Newton, "Newton"),
    SavedClass(NewtonCG, "NewtonCG"),
    SavedClass(SparseNewton, "SparseNewton"),
    SavedClass(Turns, "Turns"),
    SavedClass(SecantPair, "Pair", created=True),
    SavedClass(LineSearch, "LineSearch", {"_resolution": "_floor"}),
    SavedClass(ArcSearch, "ArcSearch"),
    SavedClass(StepMemory, "Memory"),
    SavedClass(CertifiedSearch, "CertifiedSearch"),
    SavedClass(ProvedStep, "ProvedStep", created=True),
    SavedClass(ProvedValues, "ProvedValues"),
    SavedClass(Ray, "Ray"),
    # Quadratic models.
    # A run may have replaced its first model by this one.
    SavedClass(LimitedMemory, "LimitedMemory", created=True, upgrade=_memory_without_products),
    SavedClass(RowProducts, "RowProducts", created=True),
    SavedClass(AlternatingModels, "AlternatingModels"),
    SavedClass(SparseFaces, "SparseFaces"),
    SavedClass(HessianProducts, "HessianProducts"),
    SavedClass(DenseHessian, "DenseHessian"),
    SavedClass(Damped, "Damped"),
    # Stagnation, saddles and unbounded objectives.
    SavedClass(Stagnation, "Stagnation"),
    SavedClass(Resolution, "Resolution"),
    SavedClass(SearchGain, "SearchGain"),
    SavedClass(RangeGain, "RangeGain"),
    SavedClass(ChangeGain, "ChangeGain"),
    SavedClass(Drift, "Drift", {"next": "_next"}),
    SavedClass(FarProbe, "FarProbe"),
    SavedClass(PoleWatch, "PoleWatch"),
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
