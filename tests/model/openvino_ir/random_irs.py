"""Random IRs around one split layer, made with OpenVINO, and what each gives on random data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

Array = Any


@dataclass
class Case:
    """What is fed, by position, and the parts that come of it; None where that is refused."""

    feeds: list[Array]
    parts: list[Array] | None


@dataclass
class RandomIr:
    """A split of `sizes` on an axis into `lengths`, and how the IR gives them.

    Attributes:
        form: ``constant``, ``fed``, ``equal`` parts, or ``calculated`` from the dimension: equal
            parts, and what they leave.
        declared: The dimensions of the input; None for one that is open.
        order: The axes of the input, as the split has them.
        use: What happens to the parts: nothing, ``joined``, ``squared`` or ``last`` only.
    """

    form: str
    sizes: list[int]
    declared: list[int | None]
    order: list[int]
    axis: int
    lengths: list[int]
    given: list[int]
    use: str
    element: str
    axis_is_fed: bool
    squared_first: bool
    cases: list[Case] = field(default_factory=list)

    @property
    def integers(self) -> Any:
        """NumPy's name of the element type of what gives lengths and axes."""
        return {"i32": np.int32, "i64": np.int64}[self.element]

    def save(self, path: Path) -> None:
        """Write the IR."""
        import openvino as ov
        from openvino import opset8 as ops

        shape = ov.PartialShape([-1 if dim is None else dim for dim in self.declared])
        x = ops.parameter(shape, ov.Type.f32, name="x")
        inputs, data = [x], x
        if self.order != sorted(self.order):
            data = ops.transpose(x, ops.constant(np.array(self.order)))
        kind = getattr(ov.Type, self.element)
        axis = ops.constant(np.array(self.axis, np.int64))
        if self.squared_first:
            data = ops.multiply(data, data)
        if self.axis_is_fed:
            inputs.append(axis := ops.parameter(ov.PartialShape([]), kind, name="axis"))
        if self.form == "equal":
            split = ops.split(data, axis, len(self.lengths))
        else:
            lengths = ops.constant(np.array(self.given, np.int64))
            if self.form == "fed":
                shape = ov.PartialShape([len(self.given)])
                lengths = ops.parameter(shape, kind, name="lengths")
                inputs.append(lengths)
            elif self.form == "calculated":
                shape = ops.shape_of(data, self.element)
                at = ops.constant(np.array([self.axis], np.int64))
                dim = ops.gather(shape, at, ops.constant(0))
                part = ops.divide(dim, ops.constant(np.array([len(self.lengths)], self.integers)))
                rest = ops.constant(np.array([-1], self.integers))
                lengths = ops.concat([part] * (len(self.lengths) - 1) + [rest], 0)
            split = ops.variadic_split(data, axis, lengths)
        ends = list(split.outputs())
        if self.use == "joined":
            ends = [ops.concat(ends, self.axis)]
        elif self.use == "squared":
            ends = [ops.multiply(end, end) for end in ends]
        elif self.use == "last":
            ends = ends[-1:]
        results = [ops.result(end) for end in ends]
        ov.save_model(ov.Model(results, inputs, "random"), path, compress_to_fp16=False)

    def add(self, random: Random, sizes: Sequence[int], given: Sequence[int]) -> None:
        """Add a case, if the data fits what is declared of the input."""
        if any(dim not in (None, size) for dim, size in zip(self.declared, sizes, strict=True)):
            return
        x = np.random.default_rng(random.randrange(1 << 30)).standard_normal(sizes)
        feeds: list[Array] = [x.astype(np.float32)]
        feeds += [np.array(self.axis, self.integers)] if self.axis_is_fed else []
        feeds += [np.array(given, self.integers)] if self.form == "fed" else []
        data = feeds[0].transpose(self.order)
        if self.squared_first:
            data = data * data
        lengths = stated(data.shape[self.axis], given, len(self.lengths), self.form)
        if lengths is None:
            self.cases.append(Case(feeds, None))
            return
        parts = np.split(data, np.cumsum(lengths)[:-1], self.axis)
        used = {"joined": [data], "squared": [part * part for part in parts], "last": parts[-1:]}
        self.cases.append(Case(feeds, used.get(self.use, parts)))


def stated(dim: int, given: Sequence[int], count: int, form: str) -> list[int] | None:
    """Return the lengths that the standard states; None for what it refuses."""
    if form == "equal":
        return None if dim % count else [dim // count] * count
    if form == "calculated":
        return [dim // count] * (count - 1) + [dim - dim // count * (count - 1)]
    others = sum(length for length in given if length != -1)
    lengths = [dim - others if length == -1 else length for length in given]
    is_right = len(given) == count and list(given).count(-1) <= 1 and min(lengths) >= 0
    return lengths if is_right and sum(lengths) == dim else None


_FORMS = ("constant", "fed", "fed", "equal", "calculated", "calculated")


def random_ir(seed: int) -> RandomIr:
    """Return an IR with cases, right ones and wrong ones in random order."""
    random = Random(seed)
    rank = random.randint(1, 4)
    sizes, order = [random.randint(1, 6) for _ in range(rank)], list(range(rank))
    if random.random() < 0.3:
        random.shuffle(order)
    axis, form = random.randrange(rank), random.choice(_FORMS)
    count = random.randint(1, 4)
    lengths = [random.randint(0, 3) for _ in range(count)]
    if form in ("equal", "calculated"):
        lengths = [random.randint(0, 2)] * count
    sizes[order[axis]] = sum(lengths)
    given = list(lengths)
    if form in ("constant", "fed") and random.random() < 0.5:
        given[random.randrange(count)] = -1
    made = RandomIr(
        form=form,
        sizes=sizes,
        declared=[None if random.random() < 0.6 else size for size in sizes],
        order=order,
        axis=axis if random.random() < 0.5 else axis - rank,
        lengths=lengths,
        given=given,
        use=random.choice(("", "", "joined", "squared", "last")),
        element=random.choice(("i32", "i64")),
        axis_is_fed=random.random() < 0.2,
        squared_first=random.random() < 0.5,
    )
    made.add(random, sizes, given)
    for _ in range(4):
        other = list(sizes)
        if form == "fed":
            changed = [length + random.choice((-2, -1, 0, 0, 1, 2)) for length in given]
            made.add(random, other, changed)
        other[order[axis]] = random.randint(0, 8)
        made.add(random, other, given)
    if form == "fed":
        for start in ((-1, sum(lengths) + 1), (sum(lengths) + 1, -1), (-1, -1), (0,) * (count + 1)):
            made.add(random, sizes, (*start, *[0] * (count - 2)))
    random.shuffle(made.cases)
    return made
