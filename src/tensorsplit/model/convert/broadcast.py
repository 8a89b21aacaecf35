"""Operators whose operands were broadcast by other rules in older versions."""

from __future__ import annotations

from tensorsplit.core.dimensions import Dim, Shape, is_known
from tensorsplit.model.convert.change import Change
from tensorsplit.model.convert.schemas import Step
from tensorsplit.model.convert.site import Site
from tensorsplit.model.convert.table import Adapters, both

_SYMMETRIC = ("Add", "Mul", "And", "Or", "Xor", "Equal")
_BINARY = (*_SYMMETRIC, "Sub", "Div", "Pow", "Greater", "Less")


def same_dims(one: Shape | None, other: Shape | None) -> bool:
    """Whether two shapes are surely the same."""
    if one is None or other is None or len(one) != len(other):
        return False
    return all(_same(left, right) for left, right in zip(one, other, strict=True))


def _same(left: Dim, right: Dim) -> bool:
    if left is None or right is None:
        return False
    return left == right if is_known(left) and is_known(right) else str(left) == str(right)


def _binary_up(site: Site, step: Step, change: Change) -> None:
    """Before opset 7 the second operand was laid along the first from an axis on."""
    broadcast, axis = site.take("broadcast", 0), site.take("axis")
    site.take("consumed_inputs")
    if not broadcast or axis is None:
        return
    left, right = (change.shape(site.input(index)) for index in (0, 1))
    if left is None or right is None:
        raise site.refusal(
            f"it broadcasts along the axis {axis}, and the ranks of its operands are not known",
            "declare their shapes",
        )
    trailing = len(left) - axis % max(len(left), 1) - len(right)
    if trailing > 0 and right:
        builder = change.builder(site, step.opset)
        axes = [len(right) + index for index in range(trailing)]
        reshaped = builder.op("Unsqueeze", [site.input(1)], {"axes": axes})
        change.before(site, builder)
        site.set_inputs([site.input(0), reshaped])


def _binary_down(site: Site, _step: Step, change: Change) -> None:
    left, right = (change.shape(site.input(index)) for index in (0, 1))
    if same_dims(left, right):
        return
    if _is_part(right, left):
        site.put("broadcast", 1)
    elif _is_part(left, right) and site.op_type in _SYMMETRIC:
        site.set_inputs([site.input(1), site.input(0)])
        site.put("broadcast", 1)
    else:
        raise site.refusal(
            f"its operands have the shapes {_show(left)} and {_show(right)}; before opset 7 they"
            " have to be the same, or the second one the end of the first",
            "declare the shapes of its operands, if they are so",
        )


def _is_part(part: Shape | None, whole: Shape | None) -> bool:
    """Whether a shape is surely the end of another one, or that of one element."""
    if part is None or whole is None or len(part) > len(whole):
        return False
    if all(dim == 1 for dim in part):
        return len(part) <= 1
    return same_dims(part, whole[len(whole) - len(part) :])


def _show(shape: Shape | None) -> str:
    if shape is None:
        return "unknown"
    return f"({', '.join('?' if dim is None else str(dim) for dim in shape)})"


def _variadic_down(site: Site, _step: Step, change: Change) -> None:
    shapes = [change.shape(value) for value in site.node.inputs]
    if not all(same_dims(shapes[0], shape) for shape in shapes[1:]):
        raise site.refusal(
            f"its operands have the shapes {', '.join(map(_show, shapes))}; before opset 8 they"
            " have to be the same",
            "declare the shapes of its operands, if they are so",
        )


def _prelu_up(site: Site, step: Step, change: Change) -> None:
    """Before opset 7 the slope was one number, or one for each channel."""
    slope, rank = change.shape(site.input(1)), change.rank(site.input(0))
    if slope is not None and all(dim == 1 for dim in slope):
        return
    if slope is None or rank is None or len(slope) != 1:
        raise site.refusal(
            "the shapes of its data and slope are not known", "declare them in the model"
        )
    if rank > 2:
        builder = change.builder(site, step.opset)
        axes = list(range(1, rank - 1))
        reshaped = builder.op("Unsqueeze", [site.input(1)], {"axes": axes})
        change.before(site, builder)
        site.set_inputs([site.input(0), reshaped])


def _prelu_down(site: Site, step: Step, change: Change) -> None:
    slope, data = change.shape(site.input(1)), change.shape(site.input(0))
    if slope is not None and all(dim == 1 for dim in slope):
        return
    channels = None if data is None or len(data) < 2 else data[1]
    whole = None if data is None or slope is None else (1,) * (len(data) - len(slope)) + slope
    if data is None or slope is None or whole is None or len(whole) != len(data):
        raise site.refusal("the shapes of its data and slope are not known", "declare them")
    if not (_same(whole[1], channels) and all(d == 1 for d in (*whole[:1], *whole[2:]))):
        raise site.refusal(
            f"its slope has the shape {_show(slope)}; before opset 7 it is one number, or one for"
            " each channel"
        )
    if len(slope) > 1:
        builder = change.builder(site, step.opset)
        position = len(slope) - len(data) + 1
        axes = [index for index in range(len(slope)) if index != position]
        squeezed = builder.op("Squeeze", [site.input(1)], {"axes": axes})
        change.before(site, builder)
        site.set_inputs([site.input(0), squeezed])


def _gemm_down(site: Site, _step: Step, _change: Change) -> None:
    site.put("broadcast", 1)


def _gemm_up(site: Site, _step: Step, _change: Change) -> None:
    site.take("broadcast")


ADAPTERS: Adapters = {
    **{(name, 7, True): _binary_up for name in _BINARY},
    **{(name, 7, False): _binary_down for name in _BINARY},
    **{(name, 8, False): _variadic_down for name in ("Sum", "Max", "Min", "Mean")},
    **both("PRelu", 7, _prelu_up, _prelu_down),
    **both("Gemm", 7, _gemm_up, _gemm_down),
}
