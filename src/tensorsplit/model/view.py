"""The facts about a model's values that an engine knows when it imports the model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class View:
    """The facts that an engine knows at import if it infers shapes then.

    It knows the numbers in the declared shapes of inputs, takes their defaults for constants (D20),
    and knows what follows from both: no names of dimensions, and no declared types of nodes'
    outputs. In the body of a loop it knows only what the body itself declares of its inputs.

    Attributes:
        note: How that was measured.
        opaque: The operators through which it does not follow the elements of small tensors, such
            as lengths, but where all inputs are constants of the model.
        whole: The operators through which it follows them only where it knows each one.
    """

    note: str
    opaque: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
