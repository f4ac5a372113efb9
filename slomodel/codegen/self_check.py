"""The end of a generated module: run as a program it checks its own derivatives."""

from __future__ import annotations

from collections.abc import Sequence

from slomodel.codegen.layout import Layout

_TEXT = '''
def self_check(data):
    """The relative errors of gradient and hvp against differences, at a point drawn at random."""
    rng = np.random.default_rng(0)
    x, v = rng.uniform(-1.0, 1.0, n), rng.choice([-1.0, 1.0], n) / max(n, 1) ** 0.5
    f, g = value_and_gradient(x, data)
    slope, curvature = float(g @ v), hvp(x, v, data)
    step = float(np.finfo(real).eps) ** 0.25

    def difference(function):
        # Central differences of two steps, extrapolated: the error falls with step**4.
        near, far = (
            (function(x + h * v, data) - function(x - h * v, data)) / (2 * h)
            for h in (step / 2, step)
        )
        return (4 * near - far) / 3

    print(f"value      {f:.16g}")
    errors = {
        "gradient": abs(difference(value) - slope) / (abs(slope) + abs(f) + 1e-30),
        "hvp": np.max(np.abs(difference(gradient) - curvature), initial=0.0)
        / (np.max(np.abs(curvature), initial=0.0) + np.max(np.abs(g), initial=0.0) + 1e-30),
    }
    for name, error in errors.items():
        print(f"{name:10} off by {error:.1e} of its size")
    return errors


def _drawn():
    """Data at random: positive numbers, so that roots and logarithms have values."""
    rng = np.random.default_rng(1)
    data = {}
    for name, shape in shapes.items():
        if name not in defaults:
            data[name] = rng.uniform(0.5, 1.5, shape)
@@    return data


if __name__ == "__main__":
    import sys

    data = dict(np.load(sys.argv[1])) if len(sys.argv) > 1 else _drawn()
    worst = max(self_check(data).values())
    allowed = float(np.finfo(real).eps) ** 0.5
    if not worst <= allowed:
        sys.exit(f"differs by {worst:.1e}, not {allowed:.1e}: a kink near the point, or a fault")
    print("ok")
'''

_ATTRIBUTES = {
    "symmetric": """
        if name in {names}:
            order = np.sort(np.indices(shape), axis=0)
            data[name] = data[name][tuple(order)]
""",
    "mask": """
        if name in {names}:
            data[name] = np.round(data[name] - 0.5)
""",
}


def self_check(entries: Sequence[str], layout: Layout) -> list[str]:
    """The functions that check a module with these entries; none for a part of a model."""
    if not {"value", "value_and_gradient", "hvp"} <= set(entries):
        return []
    kept = ""
    for attribute, text in _ATTRIBUTES.items():
        held = [node.name for node in layout.given if attribute in layout.attributes.get(node, ())]
        if held:
            kept += text.strip("\n").format(names=held) + "\n"
    return [_TEXT.strip("\n").replace("@@", kept)]
