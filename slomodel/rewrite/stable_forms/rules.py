"""Stable forms in place of unstable ones: softplus, logsumexp, norms, rectifiers, …

A rule replaces a node by the same function of the same operands. Its value must not be less
accurate than that of the original for any operands; where both are accurate they agree to a few
rounding errors.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from slomodel.calculus.signs import is_nonnegative, is_positive
from slomodel.functions import (
    DIFFERENCES,
    add,
    atanh,
    cosh,
    div,
    erfc,
    exp,
    expm1,
    gt,
    land,
    log,
    log1p,
    log2,
    log10,
    lt,
    mul,
    neg,
    normcdf,
    pow,
    sigmoid,
    sinh,
    softplus,
    sqrt,
    sub,
    where,
)
from slomodel.ir import build
from slomodel.ir.expr import Const, Einsum, Expr, Map, is_map
from slomodel.ir.function import ScalarFunction
from slomodel.ir.walk import postorder, users
from slomodel.rewrite.elementwise.matching import (
    Part,
    exponent_of_power,
    factors,
    product_with,
    scaled,
    whole,
    with_better_products,
)
from slomodel.rewrite.elementwise.polynomials import polynomial
from slomodel.rewrite.exponentials.exponential_sums import (
    Logarithms,
    ShiftedQuotients,
    log_softmax,
    merged_exponentials,
    soft_quotient,
)
from slomodel.rewrite.exponentials.saturations import saturation
from slomodel.rewrite.exponentials.scaled_logs import ScaledLogarithms, factors_and_divisors
from slomodel.rewrite.exponentials.scaled_products import ScaledProducts
from slomodel.rewrite.replacement import composed, remade
from slomodel.rewrite.singularities.divided_sums import divided_difference, divided_inside
from slomodel.rewrite.singularities.entropies import Entropies
from slomodel.rewrite.singularities.parity import EvenFunctions
from slomodel.rewrite.singularities.removable import (
    cancelled,
    exponential_power,
    without_common_pole,
)
from slomodel.rewrite.singularities.roots import Roots
from slomodel.rewrite.stable_forms.addition_theorems import AdditionTheorems
from slomodel.rewrite.stable_forms.arithmetic import (
    merged_exponent,
    merged_factors,
    merged_signs,
    of_negative,
    without_cancelled_terms,
)
from slomodel.rewrite.stable_forms.complements import Complements
from slomodel.rewrite.stable_forms.conjugates import Conjugates
from slomodel.rewrite.stable_forms.gamma_sums import GammaSums
from slomodel.rewrite.stable_forms.linear_systems import log_of_determinant, solution_for_inverse
from slomodel.rewrite.stable_forms.merged_powers import (
    merged_product,
    power_of_power,
    root_of_exponential,
    without_data_factors,
)
from slomodel.rewrite.stable_forms.other_factors import without_other_factors
from slomodel.rewrite.stable_forms.powers_near_one import PowersNearOne
from slomodel.rewrite.stable_forms.table import elementwise, merged_constants, summed_entropy

_AT_MOST_AN_EXPONENTIAL = (sigmoid, softplus, normcdf, erfc, expm1, cosh, sinh)
_POSITIVE = (sigmoid, softplus, normcdf, erfc, cosh)
"""Functions whose logarithms are finite where they underflow themselves."""
_TAILS = (sigmoid, normcdf, erfc)
_SMALLEST = 1e-290
"""Quotients between this and its reciprocal are accurate, and so are their derivatives."""
Rule = Callable[[Map], Expr | None]


def stable(root: Expr) -> Expr:
    """The graph with stable forms in place of unstable ones."""
    return rewritten(root)[root]


def rewritten(root: Expr, choices: bool = True) -> Mapping[Expr, Expr]:
    """Maps each node under the root to its replacement.

    Without `choices`, forms that choose between formulas for one function are left out: bounds read
    one formula, as two of them, each guarded where the other is taken, look like a jump. Functions
    for differences f(a) - f(b) choose likewise.
    """
    return _replacements(root, choices)[0]


def with_shared_scales(root: Expr) -> tuple[Mapping[Expr, Expr], bool]:
    """The same, but sums of exponentials whose logarithms are scaled come from their scaled forms.

    And whether there are any.
    """
    done, scaled_logs = _replacements(root, choices=True)
    rescaled = scaled_logs.rescaled(done[root])
    if not rescaled:
        return done, False
    final = composed([done[root]], rescaled)
    return {node: final.get(new, new) for node, new in done.items()}, True


def _replacements(root: Expr, choices: bool) -> tuple[Mapping[Expr, Expr], ScaledLogarithms]:
    order = postorder(root)
    above = users(order)
    done: dict[Expr, Expr] = {}
    shared: set[Expr] = set()
    rules = _Rules(shared, choices)
    for node in order:
        operands = tuple(done[operand] for operand in node.operands)
        result = node if operands == node.operands else remade(node, operands)
        better, written = rules.better(result), result
        while better is not None:
            result, better = better, rules.better(better)
        assert result.shape == node.shape
        done[node] = result
        if result is not written and is_map(written, mul, div, pow) and isinstance(written, Map):
            is_choice = is_map(result, where) and not is_map(written, pow)
            known = rules.written if is_choice else rules.products
            known.setdefault(result, written)
        rules.known.add(result)
        if len(above[node]) > 1:
            shared.add(result)
    polynomial.cache_clear()  # It would keep the graph alive.
    return done, rules.scaled_logs


class _Rules:
    """The rules by the function of a node, with what they remember of one graph.

    `shared` are the nodes with several users, `known` those that are rewritten; `written` maps
    choices to the products that they replace, and `products` other forms of products and powers.
    """

    def __init__(self, shared: Collection[Expr], choices: bool) -> None:
        self.known: set[Expr] = set()
        self.written: dict[Expr, Map] = {}
        self.products: dict[Expr, Map] = {}
        self._choices = choices
        self._shared = shared
        scaled_logs = self.scaled_logs = ScaledLogarithms()
        self._products = ScaledProducts(scaled_logs, self.written)
        self._entropies = Entropies(scaled_logs.is_finite)
        self._quotients = ShiftedQuotients()
        self._even = EvenFunctions()
        logarithms = Logarithms(shared)
        roots = Roots(shared)
        gammas = GammaSums()
        complements = Complements()
        theorems = AdditionTheorems()
        conjugates = Conjugates()
        powers = PowersNearOne(self._best, self.products)
        sums = (
            merged_signs,
            without_cancelled_terms,
            complements.of_sum,
            elementwise,
            theorems.of_sum,
            without_common_pole,
            lambda node: divided_difference(node, self.better),
            gammas.of_sum,
            conjugates.of_sum,
            powers.less_one,
        )
        self._rules: dict[ScalarFunction, tuple[Rule, ...]] = {
            log: (
                log_of_determinant,
                conjugates.of_log,
                complements.of_log,
                theorems.of_log,
                self._quotients.of_log,
                log_softmax,
                logarithms.of_sum,
                elementwise,
                self._log_of_power,
                lambda node: self._log_of_factors(node, _TAILS),
                logarithms.of_scaled_sum,
                scaled_logs.of_mixture,
                scaled_logs.of_any,
                self._log_as_written,
                self._log_of_choice,
                lambda node: self._log_of_factors(node, (exp,)),
            ),
            log1p: (
                complements.of_log1p,
                elementwise,
                logarithms.of_one_more,
                powers.log_of_one_more,
                scaled_logs.of_mixture,
                scaled_logs.of_one_more,
            ),
            log2: (elementwise, logarithms.to_other_base),
            log10: (elementwise, logarithms.to_other_base),
            add: sums,
            sub: sums,
            exp: (merged_exponent, elementwise),
            atanh: (elementwise, self._of_negative_atanh, self._of_atanh),
            neg: (merged_signs, elementwise, cancelled),
            **self._of_powers(roots),
            **self._of_products(roots, conjugates, powers),
        }

    def _of_powers(self, roots: Roots) -> dict[ScalarFunction, tuple[Rule, ...]]:
        return {
            sqrt: (
                elementwise,
                root_of_exponential,
                power_of_power,
                self._without_data_factors,
                roots.square_root,
            ),
            pow: (
                elementwise,
                power_of_power,
                self._without_data_factors,
                exponential_power,
                roots.power,
                self._products.of_power,
            ),
        }

    def _of_products(
        self, roots: Roots, conjugates: Conjugates, powers: PowersNearOne
    ) -> dict[ScalarFunction, tuple[Rule, ...]]:
        scaled_logs, products = self.scaled_logs, self._products
        return {
            div: (
                merged_factors,
                products.over_power,
                conjugates.of_quotient,
                elementwise,
                self._of_sigmoids,
                saturation,
                cancelled,
                lambda node: divided_inside(node, cancelled),
                soft_quotient,
                self._quotients.of_quotient,
                self._merged_product,
                self._by_exponential,
                scaled_logs.of_quotient,
                self._without_other_factors,
                powers.over_one_more,
                products.of_any,
            ),
            mul: (
                merged_factors,
                elementwise,
                cancelled,
                merged_constants,
                self._merged_product,
                roots.of_product,
                self._entropies.of_product,
                self._without_other_factors,
                products.of_any,
            ),
        }

    def better(self, node: Expr) -> Expr | None:
        """The node by the first rule that applies; None without one."""
        if isinstance(node, Einsum):
            return (
                solution_for_inverse(node)
                or summed_entropy(node)
                or merged_exponentials(node)
                or self._quotients.of_sum(node)
                or self._entropies.of_sum(node)
                or with_better_products(node, self._even_product)
            )
        if not isinstance(node, Map):
            return None
        own = self._rules.get(node.function, (elementwise,))
        for rule in (*own, of_negative, self._even.of_any):
            result = rule(node)
            if result is not None and (self._choices or not self._adds_choice(result)):
                return build.broadcast(result, (), node.shape) if not result.rank else result
        return None

    def _best(self, node: Expr) -> Expr:
        """The node by all rules that apply, one after another."""
        result = self.better(node)
        while result is not None:
            node, result = result, self.better(result)
        return node

    def _even_product(self, node: Map) -> Expr | None:
        form = self._even.of_any(node)
        return None if form is None else self.better(form) or form

    def _merged_product(self, node: Map) -> Expr | None:
        return merged_product(node, self._shared)

    def _without_other_factors(self, node: Map) -> Expr | None:
        return without_other_factors(node, self.better)

    def _without_data_factors(self, node: Map) -> Expr | None:
        return without_data_factors(node, self.better)

    def _by_exponential(self, node: Map) -> Expr | None:
        """f(x)/exp(u) by the form of f(x) exp(-u), or the reciprocal of that of exp(u)/f(x)."""
        above, below = whole(node).parts()
        inner, core = below.inner(exp), scaled(above).core
        if inner is None or core is None or not is_map(core.node, *_AT_MOST_AN_EXPONENTIAL):
            return None
        product = mul(above.along(node.shape), exp(neg(inner.along(node.shape))))
        form = self.better(product)
        if form is not None or not is_map(core.node, erfc, normcdf):
            return form
        reciprocal = self.better(div(below.along(node.shape), above.along(node.shape)))
        return None if reciprocal is None else div(1.0, reciprocal)

    def _log_of_power(self, node: Map) -> Expr | None:
        """log(1/x) as -log(x), log(x^p) as p log(x), with that in stable form."""
        inside = self._products.written_power(node.operands[0])
        if not isinstance(inside, Map):
            return None
        base, *exponents = whole(inside).parts()
        p: Expr | float | None = exponent_of_power(inside)
        if is_map(inside, div) and base.node is Const(1.0):
            base, p = exponents[0], -1.0
        elif (
            is_map(inside, pow)
            and p is None
            and (is_positive(base.node) or is_map(base.node, *_POSITIVE))
        ):
            p = exponents[0].along(node.shape)
        if p is None or (isinstance(p, float) and p % 2.0 == 0.0):
            return None  # log(x^2) is that of |x|.
        result: Expr = log(base.along(node.shape))
        better = self.better(result)
        return mul(p, result if better is None else better)

    def _of_atanh(self, node: Map) -> Expr | None:
        """atanh(u) as (log(1 + u) - log(1 - u))/2 where 1 - u is a tail."""
        u = whole(node).parts()[0].along(node.shape)
        tail = self._best(sub(1.0, u))
        core = scaled(whole(tail)).core
        if core is None or not is_map(core.node, exp, *_TAILS):
            return None
        return mul(0.5, sub(self._best(log1p(u)), self._best(log(tail))))

    def _of_negative_atanh(self, node: Map) -> Expr | None:
        """atanh(-u) as -atanh(u) where that has a stable form, as u = tanh(x) has."""
        negative = of_negative(node)
        better = None if negative is None else self.better(negative.operands[0])
        return None if better is None else neg(better)

    def _log_as_written(self, node: Map) -> Expr | None:
        """The logarithm of a product in which others are in scaled form, of these as written."""
        inside = node.operands[0]
        if inside.shape != node.shape or not is_map(inside, mul, div):
            return None
        operands = tuple(self.products.get(one, one) for one in inside.operands)
        if operands == inside.operands:
            return None
        written = log(remade(inside, operands))
        return self.scaled_logs.of_any(written) if isinstance(written, Map) else None

    def _log_of_choice(self, node: Map) -> Expr | None:
        """The logarithm of the branch that is taken, where one of both has a stable form."""
        (inside,) = whole(node).parts()
        if not is_map(inside.node, where):
            return None
        condition, *branches = inside.parts()
        logs = [log(part.node) for part in branches]
        better = [self._best(one) for one in logs]
        if better == logs:
            return None
        pairs = zip(better, branches, strict=True)
        chosen = [Part(one, part.axes).along(node.shape) for one, part in pairs]
        return where(condition.along(node.shape), *chosen)

    def _log_of_factors(self, node: Map, kinds: Sequence[ScalarFunction]) -> Expr | None:
        """The logarithm of a product or quotient with factors of some kinds, by those of its
        factors where it leaves the range of doubles.
        """
        inside = node.operands[0]
        written = self.products.get(inside) or self.written.get(inside) or inside
        if inside.shape != node.shape or not is_map(written, mul, div):
            return None
        parts = factors_and_divisors(whole(written))
        unknown = [part.node for part, _ in parts if not is_nonnegative(part.node)]
        if not any(_is_of(part.node, kinds) for part, _ in parts) or len(unknown) > 1:
            return None
        total: Expr = Const(0.0)
        for part, is_divisor in parts:
            own = self._best(log(part.along(node.shape)))
            total = (sub if is_divisor else add)(total, own)
        if not any(is_divisor for _, is_divisor in parts) and not unknown:
            return total  # all of these logarithms but those of numbers are of one sign
        is_ordinary = land(gt(inside, _SMALLEST), lt(inside, 1.0 / _SMALLEST))
        return where(is_ordinary, log(where(is_ordinary, inside, 1.0)), total)

    def _of_sigmoids(self, node: Map) -> Expr | None:
        """sigmoid(x)/sigmoid(y) as (1 + exp(-y))/(1 + exp(-x)), scaled against overflow."""
        of_quotient = self.scaled_logs.of_quotient
        above, below = whole(node).parts()
        divisor = scaled(below)
        if divisor.core is None or not is_map(divisor.core.node, sigmoid):
            return None
        own, shape = factors(above), node.shape
        for k, part in enumerate(own):
            if is_map(part.node, sigmoid):
                y, x = (one.parts()[0].along(shape) for one in (divisor.core, part))
                if x is neg(y) or y is neg(x):
                    return div(product_with(own, k, exp(x), shape), divisor.coefficient)
                quotient = div(add(1.0, exp(neg(y))), add(1.0, exp(neg(x))))
                if isinstance(quotient, Map):
                    quotient = of_quotient(quotient) or quotient
                return div(product_with(own, k, quotient, shape), divisor.coefficient)
        return None

    def _adds_choice(self, node: Expr) -> bool:
        """Whether a choice is among the new nodes, those above the known ones."""
        stack, seen = [node], {node}
        while stack:
            one = stack.pop()
            if one in self.known:
                continue
            if is_map(one, where, *DIFFERENCES.values()):
                return True
            stack += [operand for operand in one.operands if operand not in seen]
            seen.update(one.operands)
        return False


def _is_of(node: Expr, kinds: Sequence[ScalarFunction]) -> bool:
    """Whether a factor is one of these functions or a power of one."""
    base = node.operands[0] if exponent_of_power(node) is not None else node
    return is_map(base, *kinds)
