"""The compiled model: evaluate, differentiate, bind, solve, inspect."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import ArrayLike

from slomodel.codegen.kernels import Compiled
from slomodel.codegen.native.target import NATIVE
from slomodel.codegen.runtime import threads as limited
from slomodel.errors import Diagnostic, DomainError
from slomodel.front.data.bind import Binding, bind, dense_conditions
from slomodel.front.data.labels import checked
from slomodel.front.data.points import Point, Vector
from slomodel.front.explanation import warn
from slomodel.front.lints.data_values import infinite_terms, missing_labels
from slomodel.front.lints.kinks import kinks_of_data, smoothness
from slomodel.front.source import Recipe
from slomodel.functions import hypot, root
from slomodel.ir.dims import show_shape
from slomodel.ir.expr import Expr
from slomodel.ir.show import show
from slomodel.model.closed_sets import check_value
from slomodel.model.compiled_constraints import CompiledConstraints
from slomodel.model.epigraph import EpigraphForm, epigraph_form, with_smoothed_norms
from slomodel.model.epigraph_run import MOST_UNKNOWNS_OF_PROGRAM, STALLED, EpigraphRun
from slomodel.model.multistart import LocalRuns, Starts, from_starts, on_display, with_hops
from slomodel.model.objective import CompiledObjective, start_point
from slomodel.model.plans import Plans, backend_of, precision_of, target_of
from slomodel.model.replaced_variables import held
from slomodel.model.reporting import Reporting
from slomodel.model.scipy_arguments import scipy_arguments
from slomodel.model.unconstrained import UserCoordinates
from slomodel.problem import Problem
from slomodel.solve import Callback, Progress, Solution, solve
from slomodel.solve.compiled import library as compiled_loops
from slomodel.solve.constrained.entry import solve_constrained
from slomodel.solve.constrained.objective import PenaltySubproblem
from slomodel.solve.facts import Product
from slomodel.solve.methods.table import uses_proofs
from slomodel.solve.run.checkpoint import read_checkpoint
from slomodel.solve.run.parts import RunParts, solved
from slomodel.solve.run_options import OPTIONS, RunOptions

# Imported by the methods that need it: it takes a sixth of the time of all other imports.
if TYPE_CHECKING:
    from slomodel.bounds import PointCertificate
    from slomodel.model.proofs import Prover


class Model(Reporting):
    """A compiled objective over a flat vector x (n,): variables in declaration order, C order.

    Methods that take a point accept such a vector or a mapping of named arrays.
    """

    @classmethod
    def of(cls, recipe: Recipe, problem: Problem | None = None) -> Model:
        """The model of a recipe, whose source is parsed again unless its problem is given."""
        problem = problem or recipe.problem()
        if problem.selections:
            binding = bind(problem, recipe.data, recipe.dims, recipe.folder, recipe.labels)
            dense = dense_conditions(problem, binding)
            problem = recipe.problem(dense) if dense else problem
        return cls._planned(recipe, held(problem, recipe.fixed))

    @classmethod
    def _planned(cls, recipe: Recipe, problem: Problem) -> Model:
        """The model of a recipe with its problem, in which the fixed variables are held."""
        binding = bind(problem, recipe.data, recipe.dims, recipe.folder, recipe.labels)
        target, precision = backend_of(recipe.backend), precision_of(recipe.dtype)
        plans = Plans(problem, recipe.rewrites, precision)
        own = replace(recipe, unconstrained=False)
        model = cls(problem, binding, plans.compiled(binding, target), plans, own)
        return model.unconstrained if recipe.unconstrained else model

    def __reduce__(self) -> tuple[Callable[..., Model], tuple[object, ...]]:
        return Model.of, (self._recipe,)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{v.name} {show_shape(v.shape)}" for v in self._problem.variables)
        return f"<slomodel.Model {self.name}: {sizes}>"

    def bind(self, /, **data: object) -> Model:
        """The model with other data, all else equal; nothing is parsed or differentiated again.

        Kernels are shared if the sizes are unchanged, and planned again if they change. Labels stay
        what they are, and others are refused, unless `labels={"C": [...]}` gives new ones.
        """
        labels: Mapping[str, Any] = self._recipe.labels
        if "labels" in data and all(one.name != "labels" for one in self._problem.data):
            labels = {**labels, **checked(data.pop("labels"), self._problem)}
        recipe = replace(self._recipe, data={**self._recipe.data, **data}, labels=labels)
        binding = bind(self._problem, recipe.data, recipe.dims, recipe.folder, recipe.labels)
        compiled = self._plans.compiled(binding, self._compiled.target, self._compiled)
        warn(kinks_of_data(self._problem, binding), strict=False)
        known = (*self._binding.labels, *recipe.labels)
        warn(missing_labels(self._problem, binding, known), strict=False)
        warn(infinite_terms(self._problem, binding), strict=False)
        return Model(self._problem, binding, compiled, self._plans, recipe, self._change)

    def fix(self, /, **values: ArrayLike) -> Model:
        """The model with some variables held at values, as data: `bind` can change them later.

        `free` undoes it. Raises DomainError or ShapeError for an unknown name, a wrong shape, or a
        value outside the variable's set.
        """
        if self._recipe.unconstrained:
            message = "variables are held at values of the model, not of its unconstrained form"
            raise DomainError(Diagnostic("E604", message, help="write model.fix(…).unconstrained"))
        arrays = self._vectors.named(values)
        if len(arrays) == len(self.variables):
            message = "every variable would be held"
            raise DomainError(Diagnostic("E604", message, help="model.value(x) evaluates a point"))
        change = self._plans.change(self._binding)
        for name, array in arrays.items():
            check_value(self._problem, self._binding, name, array)
            if change is not None:
                change.check(name, array, self._binding)
        fixed = (*self._recipe.fixed, *arrays)
        recipe = replace(self._recipe, fixed=fixed, data={**self._recipe.data, **arrays})
        return Model._planned(recipe, held(self._problem, arrays))

    def free(self, /, *names: str) -> Model:
        """The model with variables that `fix` holds free again: those named, or all."""
        fixed = self._recipe.fixed
        for name in names:
            if name not in fixed:
                listed = ", ".join(f"`{one}`" for one in fixed) or "none"
                message = f"`{name}` is not held at a value"
                raise DomainError(Diagnostic("E309", message, help=f"there is {listed}"))
        freed = names or fixed
        kept = {name: array for name, array in self._recipe.data.items() if name not in freed}
        rest = tuple(name for name in fixed if name not in freed)
        return Model.of(replace(self._recipe, fixed=rest, data=kept))

    @cached_property
    def unconstrained(self) -> Model:
        """The model in variables u without open sets, f(x(u)); the model itself if it has none.

        It has the same names; a variable in a simplex has one element fewer along its axis, and
        triangular and correlation matrices are vectors of their free elements. There is no Jacobian
        term, so that the minima are those of the model. This is the function that `solve`
        minimises: the constants of the solver, and `gtol`, are in u. Closed sets remain.
        """
        change = self._plans.change(self._binding)
        if change is None:
            return self
        plans = self._plans.unconstrained(self._binding)
        binding = change.binding(self._binding)
        compiled = plans.latest(binding, self._compiled.target)
        recipe = replace(self._recipe, unconstrained=True)
        return Model(change.problem, binding, compiled, plans, recipe, change)

    def to_unconstrained(self, x: Point | Solution) -> Vector:
        """The point u (m,) of `unconstrained` for a point x (n,) inside all open sets.

        Raises DomainError for a point outside.
        """
        vector = self._point(x)
        coordinates = self._coordinates
        return vector.copy() if coordinates is None else coordinates.to_free(vector, "x")

    def from_unconstrained(self, u: Point) -> Vector:
        """The point x (n,) for a point u (m,) of `unconstrained`."""
        vector = self.unconstrained._vectors.vector(u, "u")
        coordinates = self._coordinates
        return vector.copy() if coordinates is None else coordinates.to_user(vector)

    def solve(
        self,
        method: str = "auto",
        x0: Point | Solution | None = None,
        *,
        gtol: float = 1e-6,
        scaled: bool = True,
        max_iter: int = 100_000,
        max_time: float | None = None,
        max_nfev: int | None = None,
        seed: int = 0,
        callback: Callback | None = None,
        progress: Progress | bool | None = None,
        verify: bool = False,
        threads: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: str | os.PathLike[str] | None = None,
        starts: int | None = None,
        hops: int | None = None,
        workers: int | None = None,
        client: object = None,
        **options: object,
    ) -> Solution:
        """Minimise or maximise, as the model states, from x0 or from `x0(seed)`.

        If the objective is not finite there, the first of `x0(seed + 1)`, … where it is serves.
        Variables in closed sets stay there: a start outside is moved to the nearest point, with a
        warning, and ‖∇f‖ is replaced by ‖x − P(x − ∇f)‖, P the projection on the sets. Ends when
        ‖∇f‖ < gtol·min(1, max(|f(x0)|, ‖∇f(x0)‖)), with `scaled=False` < gtol. The method `auto`
        ends when ‖∇f‖ ≤ gtol·max(|f(x0)|/‖x0‖, ‖∇f(x0)‖) and a Newton step would lower f by at most
        gtol²·min(|f|, f(x0) − f), or change no variable by more than gtol/10, relative; with
        closed sets, `verify` or `second_order` as the others. `x0` is a vector (n,), named arrays,
        where the variables left out start as the model states, or a Solution.
        `callback(state)` is called at the start and after every step with
        `state.k .x .fun .gradient_norm .step .epoch .time .nfev .njev .nhev`; True stops the run.
        `progress=True` shows a live line on a terminal; an object with `update(state)` and
        `close()` replaces it. `threads` is the number that kernels and the BLAS use, in the whole
        process while the run lasts. `checkpoint` is a file written every few seconds; `resume`
        continues it, bit for bit (with the same `threads`). `verify` checks the inequalities of the
        theorems on the run: see `solution.certificate.summary`. With `starts` there are that many
        runs, from `x0(seed)`, `x0(seed + 1)`, …, in `workers` processes or on a `client` of
        dask.distributed, with one thread each unless `threads` is given; the best is returned, with
        `runs` and `summary`. With `hops` there are that many further runs, each from a random point
        round the end of an earlier one (basin hopping); the best is returned, with the distinct
        minima as `runs`, and with `starts` each start has that many. `options`: the method's, and
        `second_order`. Only wrong input raises.
        """
        run_options: dict[str, Any] = {
            "gtol": gtol,
            "scaled": scaled,
            "max_iter": max_iter,
            "max_time": max_time,
            "max_nfev": max_nfev,
            "seed": seed,
            "verify": verify,
            **options,
        }
        alone = {"checkpoint": checkpoint, "resume": resume, "callback": callback}
        if not starts is workers is client is hops is None:
            checked, _ = RunOptions.of({**run_options, "sense": self._problem.sense})
            several = not starts is workers is client is None
            own = {k: v for k, v in run_options.items() if k not in ("seed", "max_time")}
            run = partial(self._run, method, **own)
            if several:
                run = partial(run, callback=callback, threads=threads or 1)
            how = Starts(starts, workers, client, checked, progress)
            if hops is None:
                return from_starts(run, self.x0, how, {"x0": x0, **alone}).with_model(self)
            walk = with_hops(LocalRuns(self, run, x0), hops, checked, alone)
            if several:
                walk = replace(walk, keeps_runs=False)
                return from_starts(walk, self.x0, how, {"x0": x0}).with_model(self)
            with limited(threads):
                return on_display(walk, progress).with_model(self)
        run = partial(self._run, method, threads=threads, resume=resume, model=self, **run_options)
        run = partial(run, callback=callback, progress=progress, checkpoint=checkpoint)
        return self._from_a_draw(run, seed) if x0 is resume is None else run(x0)

    def _run(
        self,
        method: str,
        x0: Point | Solution | None = None,
        callback: Callback | None = None,
        progress: Progress | bool | None = None,
        threads: int | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: str | os.PathLike[str] | None = None,
        model: Model | None = None,
        *,
        seed: int,
        **run_options: Any,
    ) -> Solution:
        """One run, whose solution refers to `model`: None where it may be sent to a process."""
        inner = self.unconstrained
        # The bounds take a second to load.
        proves = uses_proofs(method, run_options)
        saved = None if resume is None else read_checkpoint(resume)
        plain = method == "auto" and not proves and run_options.keys() <= OPTIONS.keys()
        if saved is not None:
            before, proves = saved.trajectory, True
            plain &= before.method == "auto" and not (before.options or before.run.verify)
        run_options |= {
            "method": method,
            "sense": self._problem.sense,
            "callback": callback,
            "progress": progress,
            "unpack": self.unpack,
            "user": None if self._coordinates is None else self._coordinates.to_user,
            "diagnose": self._diagnose_free,
            "within": inner._within,
            "in_sets": inner._in_closed_sets,
            "checkpoint": checkpoint,
            "resume": resume,
            "seed": seed,
        }
        with limited(threads):
            first = self._first(x0, seed, resume is None)
            parts, solution = RunParts(run_options), None
            at_once = bool(self._problem.constraints or inner._within is not None)
            form = inner._epigraph if plain and at_once else None
            if form and saved is not None:
                form = form if form.resumes(saved) else None
                first = saved.x0[: inner.n] if form else first
            if form and first is not None:
                solution = form.solution(first, run_options, parts)
            if solution is not None:
                solution = solution if model is None else solution.with_model(model)
            elif self._problem.constraints:
                constrained = inner._constraints(self._coordinates)
                solution = parts.run(partial(solved, solve_constrained, constrained, first), first)
                solution = solution if model is None else solution.with_model(model)
            else:
                if method == "auto" and self.backend == NATIVE.name:
                    compiled_loops.begin()
                products: tuple[Product, ...] = ("hvp",) if method == "auto" else ()
                objective = self._objectives(products)
                prove = inner._prover() if proves else None
                own: dict[str, Any] = {"prove": prove, "model": model}
                solution = parts.run(partial(solved, solve, objective, first, **own), first)
                if plain and not at_once and solution.status in STALLED and inner._epigraph:
                    solution = inner._epigraph.from_the_end_of(solution, run_options, parts)
            if plain and solution.status in STALLED and inner._with_smoothed_norms:
                solution = inner._with_smoothed_norms.from_the_end_of(solution, run_options, parts)
            solution = parts.whole(solution)
        coordinates = self._coordinates
        solution = solution if coordinates is None else coordinates.remarked(solution)
        return self._with_remark_on_scales(solution)

    @cached_property
    def _epigraph(self) -> EpigraphRun | None:
        """The epigraph form of a model without open sets, if it is small and smooth."""
        if not self._problem.constraints and self._smooth:
            return None
        form = epigraph_form(self._problem, self._binding, MOST_UNKNOWNS_OF_PROGRAM - self.n)
        return None if form is None else self._epigraph_run(self, form)

    @cached_property
    def _with_smoothed_norms(self) -> EpigraphRun | None:
        """The same of the model with smoothed norms; None if it has no norms."""
        smoothed = with_smoothed_norms(self._problem, self._binding)
        if smoothed is None:
            return None
        problem, norms = smoothed
        most = MOST_UNKNOWNS_OF_PROGRAM - self.n
        form = epigraph_form(problem, self._binding, most) or EpigraphForm(problem, ())
        return self._epigraph_run(self._over_the_same_data(problem), form, norms)

    def _epigraph_run(
        self, base: Model, form: EpigraphForm, norms: tuple[Expr, ...] = ()
    ) -> EpigraphRun | None:
        """Runs of a form; None if it has kinks or is large.

        Norms are smooth but at 0, where their gradient is taken as 0, a subgradient.
        """
        model = self._over_the_same_data(form.problem)
        lagrangian = model._plans.lagrangian.problem
        if smoothness(lagrangian, self._binding.arrays, apart_from=(root, hypot)) <= 0:
            return None
        own = (self, base, form, model._constraints(), model._in_closed_sets, norms)
        result = EpigraphRun(*own)
        return result if result.fits else None

    def _over_the_same_data(self, problem: Problem) -> Model:
        """The model of another problem over the same data."""
        plans = self._plans.of(problem)
        compiled = plans.latest(self._binding, self._compiled.target)
        return Model(problem, self._binding, compiled, plans, self._recipe)

    @cached_property
    def _objectives(self) -> Callable[[tuple[Product, ...]], CompiledObjective]:
        """The objective of runs that are likely to need some products; constructed once."""
        return cache(partial(self.unconstrained._objective, self._coordinates))

    def _prover(self) -> Prover:
        """Bounds of the constants for the solvers."""
        from slomodel.model.proofs import Prover

        return Prover(self._part_within, -1.0 if self._problem.sense == "maximize" else 1.0)

    def _objective(
        self, users: UserCoordinates | None = None, products: Sequence[Product] = ()
    ) -> CompiledObjective:
        """The objective of the solvers, of variables u if there are coordinates of the user.

        `products` are those that a run is likely to need.
        """
        if users is None and self._change is not None:
            users = UserCoordinates(self._change, self._binding)
        compiled, smooth = self._compiled, self._smooth
        self._binding.require_data()
        return CompiledObjective(
            *(self.n, self._kernel, compiled.derivatives, smooth, compiled.precision),
            None if users is None else users.logarithmic(),
            along_rays=self.ray_bounds,
            with_error=self._value_with_error,
            squares=lambda: self._squares,
            coloured=self._in_few_colours,
            operations=self._operations,
            begin=compiled.begin,
            products=products,
        )

    def _constraints(self, users: UserCoordinates | None = None) -> CompiledConstraints:
        """Objective and constraints for the solvers; `users` as for `_objective`."""
        from slomodel.model.proofs import Prover

        def part(binding: Binding, compiled: Compiled, plans: Plans) -> PenaltySubproblem:
            model = Model(plans.problem, binding, compiled, plans, self._recipe)
            return PenaltySubproblem(model._objective(users), Prover(model._part_within))

        self._binding.require_data()
        return CompiledConstraints(self._binding, self._plans, self._compiled.target, part)

    def start_of_solver(self, x0: Point | Solution | None, seed: int) -> Vector:
        """The start (m,) of a run, in the variables of `unconstrained`."""
        first = self._first(x0, seed, True)
        assert first is not None
        return first

    def _first(self, x0: Point | Solution | None, seed: int, drawn: bool) -> Vector | None:
        """The start of the solver, in unconstrained variables; if not given, it may be drawn."""
        if x0 is None and not drawn:
            return None
        own = partial(self.x0, seed)
        before = x0.model if isinstance(x0, Solution) else None
        related = isinstance(before, Model) and before._recipe.source == self._recipe.source
        first = own() if x0 is None else start_point(x0, self._vectors, own, related)
        if self._coordinates is None:
            return first
        if isinstance(x0, Solution) and x0.unconstrained is not None:
            u = x0.unconstrained
            if u.shape == (self.unconstrained.n,):
                return u
        return self._coordinates.to_free(first, "the start" if x0 is None else "x0")

    def source(self, target: str = "auto") -> str:
        """Source of a standalone module with `value(x, data)`, `gradient`, … (see its docstring).

        The target `graph` gives the expression graph of objective and gradient, one node per line.
        """
        if self._problem.constraints:
            message = "generated modules have an objective, and this model has constraints too"
            remedy = "leave out `subject to` for the source of the objective alone"
            raise DomainError(Diagnostic("E604", message, help=remedy))
        if target == "graph":
            return show(self._problem.objective, *self._plans.written.gradient) + "\n"
        self._binding.require_counts()
        compiled = self._compiled
        if target not in ("auto", compiled.target.name):
            compiled = self._plans.compiled(self._binding, target_of(target))
        return compiled.source()

    def certify(
        self,
        x: Point | Solution,
        *,
        effort: str = "default",
        modulo: Literal["", "invariances"] = "",
    ) -> PointCertificate:
        """Proved statements about x (n,) or a solution, valid in floating point too; `print` them.

        A critical point near x with an error bar for each element, whether it is a strict minimum
        or a saddle, radii within which it is the only one and the objective is convex, and how much
        lower the objective may be nearby. Where there is no proof, `reason` says why. Elements at
        bounds are held there. With open sets other than intervals all of it is about
        `unconstrained` and its variables. `effort` is that of `bounds`. With `modulo="invariances"`
        some elements are held where `invariances()` move x, so that minima are isolated: what is
        proved on that slice holds for the objective itself, up to those maps.
        """
        from slomodel.bounds.certificates.point_certificate import in_unconstrained
        from slomodel.model.free_unknowns import has_fixed_ends

        if modulo not in ("", "invariances"):
            message = f"modulo: expected 'invariances', found {modulo!r:.60}"
            raise DomainError(
                Diagnostic("E602", message, help="give 'invariances', or leave it out")
            )
        if self._coordinates is None or all(map(has_fixed_ends, self._problem.variables)):
            return self._certificate(self._point(x), effort, modulo)
        known = x.unconstrained if isinstance(x, Solution) else None
        u = self.to_unconstrained(self._point(x)) if known is None else known
        changed = [one.name for one in self._problem.variables if one.set and one.set.is_open]
        return in_unconstrained(self.unconstrained._certificate(u, effort, modulo), changed)

    def scipy(self) -> dict[str, object]:
        """`fun`, `jac` and `hessp` for `scipy.optimize.minimize(**model.scipy(), x0=…)`.

        For a model with sets or constraints there are `bounds` and `constraints` where needed; of
        the methods that take them trust-constr alone uses `hessp`. For a model to be maximised they
        are negated. SciPy warns that L-BFGS-B, BFGS and CG do not use `hessp`: give `fun`, `jac`,
        `bounds` alone to those. SciPy does not keep x in open sets: use
        `model.unconstrained.scipy()`.
        """
        sign = -1.0 if self._problem.sense == "maximize" else 1.0
        constraints = self._constraints() if self._problem.constraints else None
        own = (self.value, self.gradient, self.hvp, self._within, constraints)
        return scipy_arguments(*own, sign)
