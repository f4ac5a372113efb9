"""Algorithm 1 with its subroutines: from an objective and a point to a Solution."""

from slomodel.solve.constants.proved import Proof
from slomodel.solve.directions.table import DIRECTIONS
from slomodel.solve.entry import solve
from slomodel.solve.methods.table import METHODS
from slomodel.solve.objective import Objective
from slomodel.solve.plain_functions import Functions
from slomodel.solve.run.history import EpochRecord, History
from slomodel.solve.run.monitor import Callback, Progress, State
from slomodel.solve.run.solution import Solution, load_solution
from slomodel.solve.scipy_method import scipy_method
from slomodel.solve.status import Sense, Status

__all__ = [
    "DIRECTIONS",
    "METHODS",
    "Callback",
    "EpochRecord",
    "Functions",
    "History",
    "Objective",
    "Progress",
    "Proof",
    "Sense",
    "Solution",
    "State",
    "Status",
    "load_solution",
    "scipy_method",
    "solve",
]
