"""What an engine knows of the values of a model when it imports it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class View:
    """What an engine knows at import that looks at shapes then; less than what is known here.

    It knows the numbers in the declared shapes of inputs, and what follows from them: no names, and
    nothing that is declared of what nodes give. Into the body of a loop it takes nothing but what
    the body itself declares of its inputs.

    Attributes:
        note: How that was measured.
        opaque: The operators through which it does not follow the elements of small tensors, such
            as lengths, but where all inputs are constants of the model.
        whole: The operators through which it follows them only where it knows each one.
    """

    note: str
    opaque: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
