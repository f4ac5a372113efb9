"""Suggestions for misspelt options and methods, and for the names that other solvers use."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

_OF_OTHER_LIBRARIES = {
    "max_iter": ("maxiter", "maxit", "max_iters", "max_iterations", "iterations", "n_iter"),
    "max_nfev": ("maxfev", "maxfun", "max_evaluations", "max_fev", "max_nfe"),
    "max_time": ("timeout", "time_limit", "max_seconds"),
    "gtol": ("tol", "tolerance", "eps", "epsilon", "ftol", "xtol", "grad_tol", "pgtol"),
    "progress": ("verbose", "verbosity", "disp", "display", "iprint", "quiet"),
    "seed": ("random_state", "rng", "random_seed"),
    "threads": ("n_threads", "num_threads", "nthreads", "n_jobs"),
    "x0": ("start", "init", "initial", "initial_guess", "guess"),
    "starts": ("n_starts", "num_starts", "multistart", "restarts", "n_restarts"),
    "hops": ("n_hops", "niter", "basinhopping", "basin_hopping"),
    "workers": ("n_workers", "num_workers", "processes", "parallel"),
    "method": ("solver", "algorithm", "optimizer"),
}
_MEANT = {other: ours for ours, others in _OF_OTHER_LIBRARIES.items() for other in others}

_NEEDLESS = {
    **dict.fromkeys(
        ("jac", "grad", "gradient", "hess", "hessian", "hessp"),
        "the derivatives come with the objective: leave {} out",
    ),
    "bounds": "leave {} out, and declare sets in the model, as in `var x[n] in [0, 1]`",
    "constraints": "constraints are not handled: leave {} out, and declare the sets of variables",
    **dict.fromkeys(
        ("starts", "hops", "workers"),
        "{} is for models, Model.solve: of plain functions draw the starts, and solve from each",
    ),
    "options": "give the options by name, without {}: max_iter=100, …",
}

_LBFGS = "L-BFGS is a direction here: method norm-armijo (or auto) with direction lbfgs"
METHODS_OF_OTHER_LIBRARIES = {
    **dict.fromkeys(("lbfgs", "l-bfgs", "l-bfgs-b", "bfgs", "quasi-newton"), _LBFGS),
    **dict.fromkeys(
        ("gradient", "gradient-descent", "steepest-descent", "armijo"),
        "method norm-armijo with direction gradient is gradient descent with a line search",
    ),
    **dict.fromkeys(
        ("cg", "newton", "newton-cg", "gauss-newton"),
        "{0} is a direction here: method norm-armijo (or auto) with direction {0}",
    ),
}
"""Suggestions for names of methods in other packages."""


def option_hint(name: str, known: Collection[str]) -> str:
    """The remedy for the unknown option `name`, given the `known` ones."""
    plain = name.lower().replace("-", "_")
    if plain in _NEEDLESS:
        return _NEEDLESS[plain].format(name)
    if plain in _MEANT:
        return f"did you mean {_MEANT[plain]!r}?"
    return closest(name, known) or f"leave {name} out"


def method_hint(name: object) -> str:
    """The remedy for a method's name in another package; empty for an unknown name."""
    plain = str(name).lower().replace("_", "-")
    return METHODS_OF_OTHER_LIBRARIES.get(plain, "").format(plain)


def closest(name: object, names: Collection[str]) -> str:
    """`did you mean …?`, ignoring case and treating - as _; empty if no name is close."""
    plain = {_plain(one): one for one in names}
    exact = {one.replace("-", "_"): one for one in names}
    given = str(name).replace("-", "_")
    # D and d are two options: a name in exactly this case has priority.
    near = get_close_matches(given, exact, n=1)
    if near:
        return f"did you mean {exact[near[0]]!r}?"
    near = get_close_matches(_plain(given), plain, n=1)
    return f"did you mean {plain[near[0]]!r}?" if near else ""


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")
