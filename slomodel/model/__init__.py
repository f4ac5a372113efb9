"""The public object: compile a model, then evaluate, differentiate, bind and solve it.

compilation, model, plans       `compile`, `Model`, and its derivatives as planned
evaluation, residuals           values and derivatives; `hessian_sparsity`, `dependence`
unconstrained, closed_sets      sets of variables; `open_sets` has their changes of variables
replaced_variables              variables that are held; `free_unknowns` off their bounds
objective, scipy_arguments      the model as solvers see it: `compiled_constraints`, `lagrangian`
epigraph, epigraph_run          kinks as variables with bounds, and runs on that form
multistart, sweep, cluster      many runs; `blocks` of samples that need not fit in memory
proving, proofs, rays           bounds; `enclosed_value`, `extended_slope` for certified steps
fitting, inference, profile     predictions and standard errors: `quantities`, `interval_scales`
reporting, waiting              what a model says of itself; the line during a long call
"""

from slomodel.model.compilation import compile
from slomodel.model.model import Model

__all__ = ["Model", "compile"]
