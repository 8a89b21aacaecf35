"""The inputs of a model: those that are given, and random values that fit for the rest."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from tensorsplit.cli.files import FILE_TO_WRITE, Array, storable, write_archive, write_files
from tensorsplit.cli.input_files import (
    INPUT_SHAPE_OPTION,
    input_option,
    read_feeds,
    read_input_shapes,
)
from tensorsplit.cli.sentences import localized, tr
from tensorsplit.cli.words import Count
from tensorsplit.core.errors import (
    ELEMENT_TYPE,
    EXTERNAL_DATA,
    LIMIT,
    MALFORMED_MODEL,
    OUTPUT_COUNT,
    UNSUPPORTED_NODE,
    UNWRITABLE,
    SplitError,
    short_name,
)

if TYPE_CHECKING:
    from tensorsplit.model.reading import OnnxModel

_MOST_NAMED = 4
_WHATEVER_THE_INPUTS = (
    ELEMENT_TYPE,
    EXTERNAL_DATA,
    LIMIT,
    MALFORMED_MODEL,
    OUTPUT_COUNT,
    UNSUPPORTED_NODE,
)
"""Refusals for which no input is to blame."""


def input_options(text: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Return the options for a model's inputs, passed on as one, `choice`."""

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @input_option(text)
        @INPUT_SHAPE_OPTION
        @click.option(
            "--seed",
            type=Count(min=0),
            metavar="N",
            help="The seed of the random inputs: the same seed gives the same inputs. By default"
            " 0.",
        )
        @click.option(
            "--save-inputs",
            type=FILE_TO_WRITE,
            help="If the results differ, write the inputs to this .npz, which --input takes.",
        )
        @wraps(command)
        def with_inputs(
            *,
            written: Sequence[str],
            shapes: Sequence[str],
            seed: int | None,
            save_inputs: Path | None,
            **options: object,
        ) -> int:
            if save_inputs is not None and save_inputs.suffix != ".npz":
                raise click.UsageError(tr("--save-inputs writes an .npz; give it such a name"))
            choice = InputChoice(written, shapes, seed, save_inputs)
            return command(choice=choice, **options)

        return with_inputs

    return decorate


@dataclass(frozen=True)
class InputChoice:
    """The options for a model's inputs; see `input_options`."""

    written: Sequence[str]
    shapes: Sequence[str]
    seed: int | None
    save_to: Path | None

    @property
    def asks_for_random(self) -> bool:
        """Whether one of the options is about random inputs."""
        return self.seed is not None or bool(self.shapes)

    def given(self, source: OnnxModel) -> ModelInputs:
        """Return the inputs of ``--input``, and nothing else."""
        return ModelInputs(source, read_feeds(self.written, source.inputs), save_to=self.save_to)

    def completed(self, source: OnnxModel) -> ModelInputs:
        """Add random values for the inputs that ``--input`` leaves out and that have no default.

        Raises:
            SplitError: TS1xx to TS3xx, TS511 if no random inputs fit; TS701, TS703 for the options.
        """
        made, problem = self.completed_anyhow(source)
        if problem is not None:
            with made.explained():
                raise problem
        return made

    def completed_anyhow(self, source: OnnxModel) -> tuple[ModelInputs, SplitError | None]:
        """Do as `completed`, but return the refusal of a model that no random inputs fit."""
        from tensorsplit.model.fitting_inputs import complete_inputs

        made = self.given(source)
        shapes = read_input_shapes(self.shapes, source.inputs)
        completed = complete_inputs(source, made.feeds, shapes, self.seed or 0)
        made.feeds, made.random = completed.feeds, completed.random
        if made.random:
            made.seed = self.seed or 0
        return made, completed.problem


@dataclass
class ModelInputs:
    """The inputs of a model.

    Attributes:
        random: The shapes of the inputs that are random.
        seed: The seed of these; None if there are none.
    """

    source: OnnxModel
    feeds: dict[str, Any]
    random: Mapping[str, Sequence[int]] = field(default_factory=dict)
    seed: int | None = None
    save_to: Path | None = None

    def __str__(self) -> str:
        return tr("the inputs given") if self.seed is None else tr("random inputs")

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Say in a refusal how to give other inputs, where they are random; and save them."""
        try:
            yield
        except SplitError as error:
            lines = self._saved()
            if self.seed is not None and error.kind not in _WHATEVER_THE_INPUTS:
                lines.insert(0, self._advice())
            error.fix = tr("; ").join(filter(None, (localized(error.fix), *lines)))
            raise

    def _advice(self) -> str:
        """Return the options that give other inputs, as they would be written."""
        declared = {entry.name: entry.shape for entry in self.source.inputs}
        shapes = [
            f"--input-shape {short_name(name)}:{','.join(map(str, shape))}"
            for name, shape in self.random.items()
            if declared[name] != tuple(shape)
        ][:_MOST_NAMED]
        files = [f"--input {short_name(name)}=FILE" for name in list(self.random)[:_MOST_NAMED]]
        values = tr("give values with {options}", options=" ".join(files))
        if shapes:
            values = tr(
                "give shapes, as in {options}, or {give_values}",
                options=" ".join(shapes),
                give_values=values,
            )
        return tr("the inputs are random (--seed {seed}): {advice}", seed=self.seed, advice=values)

    def failing(self) -> list[str]:
        """Save the inputs on which results differ, if requested; return a note about them."""
        seeded = tr("the random inputs are those of --seed {seed}", seed=self.seed)
        lines = [] if self.seed is None else [seeded]
        return lines + self._saved()

    def _saved(self) -> list[str]:
        if self.save_to is None or not self.feeds:
            return []
        write_files({self.save_to: partial(write_archive, dict(members(self.feeds)))})
        return [tr("the inputs are in {path}", path=self.save_to)]


def members(feeds: Mapping[str, object]) -> Iterator[tuple[str, Array]]:
    """Yield inputs as members of an archive that `read_feeds` takes."""
    for name, value in feeds.items():
        if isinstance(value, (list, tuple)):
            yield from members({f"{name}[{place}]": item for place, item in enumerate(value)})
        elif value is not None:
            array = np.asarray(value)
            stored = storable(array)
            if stored is None and array.dtype.kind not in "OT":
                stored = array.view(f"V{array.dtype.itemsize}")
            if stored is None:
                problem = tr("an .npz file can't hold its strings")
                raise SplitError(UNWRITABLE, problem, tr("leave out --save-inputs"), parameter=name)
            yield name, stored
