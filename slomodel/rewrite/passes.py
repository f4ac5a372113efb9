"""How a graph is rewritten: one list of passes, in the order in which they run.

For each pass `PASSES` states its law, that is, in which sense the new graph equals the old one, and
the reason for its place in the order. Proofs are in the files of the passes. Two transformations
are not passes. The constructors of nodes apply the exact identities of the functions' records
(`x * 1` is `x`), so that every graph is canonical at any time. And a target lowers a graph to the
simple forms that it can run (`codegen/lower.py`); this comes last, since no structure is recognised
in lowered graphs. What C and CUDA rearrange in lowered graphs is `ARRANGEMENTS` in
`codegen/loops/planning.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from slomodel.errors import Diagnostic, DomainError
from slomodel.functions import eq
from slomodel.ir.expr import Const, Expr, Input, is_map
from slomodel.ir.walk import dependents, postorder
from slomodel.rewrite.compression.compression import compression
from slomodel.rewrite.contraction_order import contraction_order
from slomodel.rewrite.differences import differences
from slomodel.rewrite.empty_sums import with_empty_sums
from slomodel.rewrite.exponentials.limited_exponents import with_limited_exponents
from slomodel.rewrite.exponentials.scaled_roots import with_scaled_roots
from slomodel.rewrite.facts import Facts
from slomodel.rewrite.memory.checkpoints import checkpointed
from slomodel.rewrite.memory.segmented_sums import with_segmented_sums
from slomodel.rewrite.read_elements import with_elements_read
from slomodel.rewrite.replacement import carried, choices_added, with_false
from slomodel.rewrite.rolling import Rolled
from slomodel.rewrite.running_sums import with_running_sums
from slomodel.rewrite.scaled_recurrences import with_scaled_recurrences
from slomodel.rewrite.series.continued import continued
from slomodel.rewrite.small_determinants import small_determinants
from slomodel.rewrite.stable_forms.rules import rewritten, with_shared_scales
from slomodel.rewrite.symmetry.symmetry import Joint, symmetry
from slomodel.rewrite.work import is_varying_input, prepared, work, work_of_call

When = Literal["model", "derivatives", "data"]
"""When a pass runs: once per model, before sizes are known; likewise, for values and derivatives
alone, since bounds are those of the graph without; or once per set of sizes and data."""

Run = Callable[[Expr, Facts], tuple[Expr, tuple[str, ...]]]
_Note = TypeVar("_Note")


@dataclass(frozen=True, slots=True)
class Pass:
    """A rewriting of the objective: when it runs, its law, and the reason for its place.

    `run` maps a graph to a graph and a note on each change. It is None if the pass returns more
    than a graph and is run by a function of this module. A result of `run` is used only if it
    means less work, or if not `saves_work`.
    """

    name: str
    when: When
    law: str
    reason: str
    run: Run | None = None
    saves_work: bool = True


def without_decided_conditions(root: Expr, facts: Facts) -> tuple[Expr, tuple[str, ...]]:
    """The graph without conditions `data == 0` that hold for no element, and a note on them.

    Stable forms query it for each weight of an exponential (`exponentials/growth.py`).
    """
    order = postorder(root)
    conditions = [node for node in order if is_map(node, eq) and node.operands[1] is Const(0.0)]
    if not conditions:
        return root, ()
    varying = dependents(order, is_varying_input)
    never = {node for node in conditions if node not in varying and facts.nonzero(node.operands[0])}
    return (with_false(root, never), ("no weight is 0",)) if never else (root, ())


SYMMETRY = "symmetry"
CHECKPOINTS = "checkpoints"
SEGMENTS = "segmented sums"

PASSES: tuple[Pass, ...] = (
    Pass(
        "rolling",
        "model",
        "the same terms in another order of addition: a difference of roundings times the sum of "
        "their magnitudes",
        "first, as it compares terms as they were written, and all that follows is then as long "
        "as the model and not as its text",
    ),
    Pass(
        "read elements",
        "model",
        "the same values",
        "before the rules that see exponentials below sums and logarithms",
    ),
    Pass(
        "running sums",
        "model",
        "the same terms in another order of addition; sums of exponentials as those of running "
        "log-sum-exps",
        "before stable forms, which scale the exponentials of each pair of indices",
    ),
    Pass(
        "scaled recurrences",
        "model",
        "the same values to a rounding for each step that scales; finite where states overflow or "
        "underflow and their logarithms do not",
        "after running sums, whose log-sum-exps need no scale, and before stable forms, which "
        "scale sums of what has scales",
    ),
    Pass(
        "stable forms",
        "model",
        "no value is worse for any operands, and where both are accurate they agree to a few "
        "roundings",
        "before any derivative, so that derivatives are those of the stable forms, and before work "
        "is counted, as softplus(x) is other work than log(1 + exp(x))",
    ),
    Pass(
        "series",
        "derivatives",
        "close to a point where terms or poles cancel, the value to full accuracy, and at it the "
        "limit; the same elsewhere",
        "after the stable forms, which remove most cancellations without a choice",
    ),
    Pass(
        "scaled roots",
        "derivatives",
        "the same values; finite where a sum of exponentials overflows and its root does not",
        "after the stable forms, whose logarithms scale what is below these roots themselves, and "
        "after the series",
    ),
    Pass(
        "limited exponents",
        "derivatives",
        "the same values up to the limit of the exponents; beyond, they differ by at most 1e-150 "
        "from their limit at infinity",
        "after the series, which are not over exponents that overflow, and before any derivative",
    ),
    Pass(
        "orthogonal compression",
        "data",
        "a sum of squares over wide data is the one over the R of its QR factorisation, to the "
        "rounding of an orthogonal transform",
        "the first that needs sizes and data: the order of a product depends on the sizes it "
        "leaves",
        compression,
    ),
    Pass(
        "differences of indices",
        "data",
        "the same values: the difference of two indices is exact",
        "before the order of products, which depends on what is a view",
        differences,
    ),
    Pass(
        "decided conditions",
        "data",
        "the same values: a condition that is false for all data is false",
        "before derivatives, which are then those of the branch that is taken",
        without_decided_conditions,
    ),
    Pass(
        "empty sums",
        "data",
        "the same values; derivatives 0 instead of NaN where a log-sum-exp has no terms",
        "after decided conditions, as it asks which weights of data are 0",
        with_empty_sums,
        saves_work=False,
    ),
    Pass(
        "small determinants",
        "data",
        "the same polynomial: roundings times the sum of the magnitudes of its products",
        "before derivatives, which exist at singular matrices too",
        small_determinants,
        saves_work=False,
    ),
    Pass(
        "contraction order",
        "data",
        "the same product, pair by pair in another order: roundings times the product of the "
        "magnitudes",
        "before derivatives, as the reverse sweep through pairs shares the partial products",
        contraction_order,
    ),
    Pass(
        SYMMETRY,
        "data",
        "a sum over a symmetric array counts each distinct element once, with a whole weight",
        "after those that recognise sums, as it folds the objective and its gradient together, and "
        "folded sums are none that they recognise",
    ),
    Pass(
        CHECKPOINTS,
        "data",
        "the same states, of which few are stored; sums over steps are added by segments: "
        "roundings times the sum of their magnitudes",
        "after those that save work, as it saves memory: what they save is saved in each segment",
    ),
    Pass(
        SEGMENTS,
        "data",
        "the same terms, added by segments: roundings times the sum of their magnitudes",
        "last, as it saves memory, and the sums over the steps of a recurrence are in its loop",
    ),
)
"""All passes, in order."""


@dataclass(frozen=True, slots=True)
class Formulated:
    """An objective after the passes that run once per model."""

    rolled: Rolled
    became: Mapping[Expr, Expr]
    plain: Mapping[Expr, Expr]
    """The same for bounds, without running sums, shared scales and choices that the rules add;
    empty where there are none of these.
    """

    @property
    def objective(self) -> Expr:
        return self.became[self.rolled.root]

    @property
    def remarks(self) -> tuple[str, ...]:
        """The changes by rolling, one sentence each."""
        return tuple(self.rolled.remarks)

    @property
    def gathered(self) -> frozenset[Expr]:
        """The nodes that replace sums that were written out."""
        return frozenset(self.became.get(node, node) for node in self.rolled.origins)

    @property
    def joins(self) -> frozenset[Expr]:
        """Choices between formulas for one function that the stable forms add: no kinks."""
        return choices_added(self.rolled.root, self.became)

    def notes(self, notes: Mapping[Expr, _Note]) -> dict[Expr, _Note]:
        """Notes on nodes of the original graph, carried over to the nodes that replace them."""
        own = self.rolled.notes(notes)
        return {**carried(own, self.plain), **carried(own, self.became)}

    @property
    def plain_forms(self) -> dict[Expr, Expr]:
        """The objective without choices that the rules add, by the objective with them."""
        return {self.objective: self.plain[self.rolled.root]} if self.plain else {}


def formulated(rolled: Rolled) -> Formulated:
    """A rolled objective with its unstable forms replaced by stable ones."""
    read = with_elements_read(rolled.root)
    running = with_running_sums(read[rolled.root])
    scaled = with_scaled_recurrences(running[read[rolled.root]])
    stable, shares = with_shared_scales(scaled[running[read[rolled.root]]])
    written = _after(_after(read, running), scaled)
    result = Formulated(rolled, _after(written, stable), {})
    as_written = written[rolled.root] is read[rolled.root] and not shares
    if as_written and not result.joins:
        return result
    return replace(result, plain=_after(read, rewritten(read[rolled.root], choices=False)))


def _after(one: Mapping[Expr, Expr], other: Mapping[Expr, Expr]) -> dict[Expr, Expr]:
    """What nodes become by one replacement after another, as far as they are still there."""
    return {node: other[new] for node, new in one.items() if new in other}


def for_derivatives(objective: Expr) -> Expr:
    """A formulated objective after the passes for values and derivatives."""
    return with_limited_exponents(with_scaled_roots(continued(objective)))


@dataclass(frozen=True, slots=True)
class Change:
    """The changes by a pass, and the operations of a value with gradient before and after it."""

    name: str
    notes: tuple[str, ...]
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Optimized:
    """An objective after the passes, and the facts under which it equals the original one.

    `joint` is the objective with its gradient, if both were rewritten together. `prepared` maps its
    new data inputs to the graphs that compute them. `structure` is the objective before it was
    divided into segments, in which squares and polynomials are recognised; None if it was not.
    """

    objective: Expr
    changes: tuple[Change, ...]
    facts: Facts
    joint: Joint | None = None
    prepared: Mapping[Input, Expr] = field(default_factory=dict)
    structure: Expr | None = None


def chosen(rewrites: bool | Collection[str]) -> tuple[str, ...]:
    """The names of the passes that a caller selects. Raises DomainError for an unknown name."""
    names = tuple(one.name for one in PASSES if one.when == "data")
    if isinstance(rewrites, bool):
        return names if rewrites else ()
    remedy = f"give True, False or some of {', '.join(names)}"
    if isinstance(rewrites, str) or not isinstance(rewrites, Collection):
        kind = type(rewrites).__name__
        message = f"rewrites= takes True, False or names of passes, not an object of {kind}"
        raise DomainError(Diagnostic("E602", message, help=remedy))
    unknown = [name for name in rewrites if name not in names]
    if unknown:
        message = f"no pass is called {unknown[0]!r}"
        raise DomainError(Diagnostic("E602", message, help=remedy))
    return tuple(name for name in names if name in rewrites)


def optimized(
    objective: Expr,
    facts: Facts,
    names: Collection[str],
    variables: Sequence[Input] = (),
    taken: Collection[str] = (),
) -> Optimized:
    """The objective after the passes of these names. All sizes have to be known.

    `variables` are those of the gradient, in order. Names of new data differ from those `taken`.
    """
    changes: list[Change] = []
    before: float | None = None
    for one in PASSES:
        if one.run is None or one.name not in names:
            continue
        result, notes = one.run(objective, facts)
        if result is objective:
            continue
        if not one.saves_work:
            objective, before = result, None
            continue
        before = work_of_call(objective, facts.sizes) if before is None else before
        after = work_of_call(result, facts.sizes)
        if after < before:
            changes.append(Change(one.name, notes, before, after))
            objective, before = result, after
    joint = symmetry(objective, variables, facts) if SYMMETRY in names else None
    if joint is not None:
        before = work_of_call(objective, facts.sizes, facts.known)
        after = work((joint.objective, *joint.gradient), joint.sizes)
        if after < before:
            changes.append(Change(SYMMETRY, joint.notes, before, after))
        else:
            joint = None
    structure = objective
    for name, run in ((CHECKPOINTS, checkpointed), (SEGMENTS, with_segmented_sums)):
        if joint is not None or name not in names:
            continue
        result, notes = run(objective, facts)
        if result is not objective:
            before = work_of_call(objective, facts.sizes)
            changes.append(Change(name, notes, before, work_of_call(result, facts.sizes)))
            objective = result
    slopes = joint.gradient if joint is not None else ()
    whole = () if objective is structure else (structure,)
    roots = (joint.objective if joint else objective, *whole, *slopes)
    (value, *rest), parts = prepared(roots, taken)
    written = rest.pop(0) if whole else None
    joint = None if joint is None else replace(joint, objective=value, gradient=tuple(rest))
    return Optimized(objective if joint else value, tuple(changes), facts, joint, parts, written)
