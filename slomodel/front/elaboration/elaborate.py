"""Elaboration: resolve names, check shapes, and construct one graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from slomodel.errors import Diagnostic, ModelSyntaxError, SlomodelError, SourceText, Span
from slomodel.front.elaboration.data_checks import may_be_missing, nonempty_checks
from slomodel.front.elaboration.errors import StatementError, error
from slomodel.front.elaboration.functions.user_functions import declare_fn
from slomodel.front.elaboration.recurrences.recurrences import is_recurrence
from slomodel.front.elaboration.scope import Elaboration, Symbol, SymbolKind
from slomodel.front.elaboration.statements.constraints import bound_of, bounded, constraints_of
from slomodel.front.elaboration.statements.declarations import (
    completed,
    declare_data,
    declare_dim,
    declare_variable,
    table_declarations,
)
from slomodel.front.elaboration.statements.definitions import (
    check_condition,
    declare_let,
    declare_recurrence,
    objective_value,
)
from slomodel.front.lints.kinks import nonsmooth_warnings
from slomodel.front.text.syntax import (
    CheckStatement,
    ConstraintStatement,
    DataDecl,
    Declaration,
    DimDecl,
    Fn,
    Let,
    ModelTree,
    ObjectiveStatement,
    Statement,
    VarDecl,
    joined_groups,
)
from slomodel.ir import build
from slomodel.ir.expr import Expr, Input
from slomodel.ir.node import without_gc
from slomodel.ir.walk import inputs
from slomodel.problem import (
    Check,
    Constraint,
    DataDeclaration,
    DeclaredSet,
    DimDeclaration,
    Place,
    Problem,
    Variable,
)
from slomodel.rewrite import Rolled, formulated

_MOST_MESSAGES = 20
_UNUSED = "use it, or leave it out"


@dataclass(slots=True)
class _Gathered:
    """The parts of a problem, collected from its statements."""

    dims: list[DimDeclaration] = field(default_factory=list)
    data: list[DataDeclaration] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)
    declared: dict[str, VarDecl] = field(default_factory=dict)
    objective: Expr | None = None


@without_gc()
def elaborate(
    program: ModelTree, source: SourceText, dense: frozenset[Place] = frozenset()
) -> Problem:
    """The problem that a model states; `dense` are conditions that hold for many of the tuples.

    Raises ModelSyntaxError, ShapeError or MissingRule with all independent errors.
    """
    model = Elaboration(source, dense=dense)
    model.warnings.update(dict.fromkeys(program.warnings))
    for statement in reversed(program.order):
        if isinstance(statement, Declaration):
            model.later[statement.name.text] = statement.name.span
        if isinstance(statement, Fn):
            model.functions[statement.name.text] = statement
    gathered = _Gathered()
    faults: list[StatementError] = []
    for group in joined_groups(program.order):
        try:
            _statements(group, model, gathered)
        except StatementError as problem:
            faults.append(problem)
            for statement in group:
                _poison(statement, model)
        if sum(fault.diagnostic is not None for fault in faults) >= _MOST_MESSAGES:
            break
    faults += _missing_parts(program, model)
    reported = [f for f in faults if f.diagnostic is not None][:_MOST_MESSAGES]
    if reported:
        raise _error(reported)
    assert gathered.objective is not None
    return _problem(program, model, gathered, gathered.objective)


def _statements(group: Sequence[Statement], model: Elaboration, gathered: _Gathered) -> None:
    lets = [statement for statement in group if isinstance(statement, Let)]
    if lets and is_recurrence(lets):
        declare_recurrence(lets, model)
        return
    for statement in group:
        _statement(statement, model, gathered)


def _statement(statement: Statement, model: Elaboration, gathered: _Gathered) -> None:
    match statement:
        case DimDecl():
            own = declare_dim(statement, model)
            gathered.dims += [] if own is None else [own]
        case DataDecl():
            declared = declare_data(statement, model)
            gathered.data += (declared, *declared.positions)
        case VarDecl():
            gathered.variables.append(declare_variable(statement, model))
            gathered.declared[statement.name.text] = statement
        case Let():
            declare_let(statement, model)
        case Fn():
            declare_fn(statement, model)
        case CheckStatement():
            gathered.checks.append(check_condition(statement, model))
        case ObjectiveStatement():
            value = objective_value(statement, model)
            gathered.objective = gathered.objective or value
        case ConstraintStatement():
            _constrain(statement, model, gathered)


def _constrain(statement: ConstraintStatement, model: Elaboration, gathered: _Gathered) -> None:
    """Add a constraint; a bound on one whole variable becomes its set."""
    result = bound_of(statement, gathered.variables, model)
    if result is None:
        gathered.constraints += constraints_of(statement, model, gathered.constraints)
    else:
        place, box = result
        gathered.variables[place] = bounded(gathered.variables[place], box, gathered.declared)


_KINDS: dict[type[Declaration], SymbolKind] = {
    DimDecl: "dim",
    DataDecl: "data",
    VarDecl: "variable",
    Let: "definition",
    Fn: "function",
}


def _poison(statement: Statement, model: Elaboration) -> None:
    """Suppress messages about later uses of a name whose declaration failed."""
    if isinstance(statement, Declaration):
        name = statement.name
        broken = Symbol(name.text, _KINDS[type(statement)], name.span)
        model.symbols.setdefault(name.text, broken)
        model.later.pop(name.text, None)


def _missing_parts(program: ModelTree, model: Elaboration) -> list[StatementError]:
    """Check that a model has one objective and at least one variable."""
    result: list[StatementError] = []
    end = Span(model.source, len(model.source.text.rstrip()), len(model.source.text.rstrip()))
    if not program.objectives:
        message = "the model has no objective"
        result.append(error("E214", message, end, "add `minimize …` or `maximize …`"))
    for again in program.objectives[1:]:
        first = program.objectives[0].sense_span
        message = f"a model has one objective; the first is on line {first.line}"
        remedy = "add them with weights, or define parts with `let`"
        result.append(error("E214", message, again.sense_span, remedy))
    if not program.vars:
        where = program.objectives[0].span if program.objectives else end
        message = "the model has no variable"
        result.append(error("E215", message, where, "declare what is optimised: `var x[n]`"))
    return result


def _error(faults: list[StatementError]) -> SlomodelError:
    kinds = {problem.kind for problem in faults}
    kind = kinds.pop() if len(kinds) == 1 else ModelSyntaxError
    # Errors in an `init` that several names share are reported once.
    result = list(dict.fromkeys(f.diagnostic for f in faults if f.diagnostic is not None))
    result.sort(key=lambda d: d.span.start if d.span else 0)
    return kind(*result)


def _only_bounds(
    declared: list[DeclaredSet], ends_of_constraints: list[Expr], elsewhere: list[Input]
) -> set[Input]:
    """The data that are used as ends of boxes or of constraints and nowhere else."""
    boxes = [one for one in declared if one.kind in ("box", "open_box")]
    ends = inputs(*ends_of_constraints, *(number for box in boxes for number in box.numbers))
    others = inputs(*(number for one in declared if one not in boxes for number in one.numbers))
    return set(ends) - {*others, *elsewhere}


def _problem(
    program: ModelTree, model: Elaboration, gathered: _Gathered, objective: Expr
) -> Problem:
    conditions = [check.condition for check in gathered.checks]
    declared = [one.set for one in gathered.variables if one.set is not None]
    ends = [number for one in declared for number in one.numbers]
    constraints = [constraint.value for constraint in gathered.constraints]
    used = set(inputs(objective, *constraints, *conditions, *ends))
    starts = {variable.init.array for variable in gathered.variables}
    used.update(
        d.node
        for d in gathered.data
        if used.intersection(position.node for position in d.positions)
    )
    idle = {d.node for d in gathered.data if d.node not in used and d.name not in starts}
    elsewhere = set(inputs(*ends, *constraints))
    missing = idle | (may_be_missing(objective, gathered.checks, model.masked) - elsewhere)
    infinite = _only_bounds(declared, model.ends, inputs(objective, *model.bodies, *conditions))
    data = completed(
        replace(one, may_be_missing=one.node in missing, may_be_infinite=one.node in infinite)
        for one in gathered.data
    )
    for one in data:
        if one.node in idle and not one.owner:
            model.warn(_unused("data", one.name, one.span, bool(constraints)))
    for variable in gathered.variables:
        if variable.node not in used:
            model.warn(_unused("the variable", variable.name, variable.span, bool(constraints)))
    model.checks += nonempty_checks(objective, model.counts, model.spans)
    statement = program.objectives[0]
    rolled = Rolled(objective)
    result = formulated(rolled)
    spans = result.notes(model.spans)
    data = (*data, *table_declarations(rolled))
    place, checks = statement.expr.span, gathered.checks
    for remark in nonsmooth_warnings(
        result.objective, spans, place, data, checks, joins=result.joins
    ):
        model.warn(remark)
    for limit in gathered.constraints:
        total = build.sum_over(limit.value, tuple(range(limit.value.rank)))
        for remark in nonsmooth_warnings(total, spans, limit.span or place, data, checks):
            model.warn(remark)
    return Problem(
        result.objective,
        tuple(gathered.variables),
        data,
        tuple(gathered.dims),
        (*gathered.checks, *model.checks),
        tuple(model.bounds),
        tuple(model.lookups),
        tuple(model.tuple_counts),
        tuple(model.selections),
        name="model" if program.name is None else program.name.text,
        sense="maximize" if statement.sense == "maximize" else "minimize",
        objective_name="objective" if statement.name is None else statement.name.text,
        source=model.source,
        spans=spans,
        remarks=result.remarks,
        gathered=result.gathered,
        joins=result.joins,
        plain=result.plain_forms,
        definitions=_definitions(model),
        constraints=tuple(gathered.constraints),
        warnings=tuple(sorted(model.warnings, key=lambda w: w.span.start if w.span else 0)),
    )


def _definitions(model: Elaboration) -> dict[str, Expr]:
    """The graph of each definition by name."""
    return {
        name: symbol.value.expr
        for name, symbol in model.symbols.items()
        if symbol.kind == "definition" and symbol.value is not None and not symbol.value.labels
    }


def _unused(what: str, name: str, span: Span | None, constrained: bool) -> Diagnostic:
    place = "the objective and the constraints" if constrained else "the objective"
    message = f"{what} `{name}` does not occur in {place}"
    return Diagnostic("W202", message, span, help=_UNUSED, severity="warning")
