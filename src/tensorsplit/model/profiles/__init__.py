"""What engines were measured not to run, or to run wrongly: a file for each engine and version.

A file records who measured what, when and how; its entries name features of nodes and models by the
vocabulary of `tensorsplit.model.features`. What an engine can't do is data here and code nowhere.
Besides those of this package there are the profiles that ``tensorsplit profile`` has made of what
is installed, in the user's cache.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, get_args

import msgspec
from packaging.version import InvalidVersion, Version

from tensorsplit.core.errors import UNKNOWN_ENGINE, USAGE, SplitError, did_you_mean, show, words_of
from tensorsplit.core.given import as_path, as_string
from tensorsplit.model.view import View
from tensorsplit.storage.documents import read_json

TargetName: TypeAlias = Literal[
    "iree",
    "jaxonnxruntime",
    "mnn",
    "onnx-reference",
    "onnx2torch",
    "onnxruntime",
    "onnxruntime-web",
    "opencv",
    "openvino",
    "portable",
    "tinygrad",
    "tract",
    "tvm",
]
"""The targets that this package has profiles of."""

Target: TypeAlias = TargetName | os.PathLike[str]
"""What a model can be made for: a target that is known, or the path of a profile."""

_SUFFIX = ".json"
_NAME = re.compile(r"(.+?)-(\d.*)")
_MOST_BYTES = 1 << 22

Verdict: TypeAlias = Literal["refused", "wrong", "crash", "unsupported"]
VERDICTS: tuple[str, ...] = get_args(Verdict)
"""The engine refuses, gives wrong results, or its process dies; or a target leaves the feature
out."""

CONVERT = "(tensorsplit convert MODEL --opset 13 -o MODEL)"

ELSEWHERE = "run it in another engine, if data without elements matter"

LEFT = {
    "version": f"convert it to opset 13 {CONVERT}",
    "unchecked_lengths": f"convert it to opset 13 {CONVERT}",
    "uneven_branches": f"convert it to opset 13 {CONVERT}",
    "if_in_scan": "move the If out of the Scan",
    "unused": "use a part of it, or leave it out",
    "empty_in_loop": ELSEWHERE,
    "calculated_from_nothing": ELSEWHERE,
    "empty_planes": ELSEWHERE,
    "copied_zero": ELSEWHERE,
    "sum_of_nothing": ELSEWHERE,
    "slices_of_nothing": ELSEWHERE,
    "batch_may_be_0": "feed no batch of 0",
    "steps_may_be_0": "feed at least one step",
    "state_may_stay": "feed at least one step",
    "lengths_of_constants": "lower the model, or give the lengths as a constant",
    "real_or_complex": "declare the last dimension of its data",
    "expanded_from_nothing": ELSEWHERE,
    "expanded_to_nothing": ELSEWHERE,
    "unranked_in_scan": "declare the shapes of what the body gives",
    "unknown_rank": "give its axes or shape as a constant, or declare how long that list is;"
    " the branches of an If have to give one rank",
    "strings_repeated": ELSEWHERE,
    "unranked_input": "declare its rank, or leave the input out",
    "scalar_or_list": "give a list in both branches, for example by an Unsqueeze of the scalar",
    "peepholes": "use another engine",
    "unfilled_mask": f"convert it to opset 13 {CONVERT}",
    "unseen_operand": "declare the shape of the operand, or give it as a constant",
    "empty_part": "leave the part out",
    "long_slice": "use Split in its place, or run it in another engine",
    "lost_in_rows": "declare the dimension, or run it in another engine, if such data matter",
    "no_coordinates": "leave the node out",
    "ties": "use another engine, if the order of equal elements matters",
    "moved_axis": "feed no batch of 0, or write a Transpose and a MatMul",
    "odd_zero_point": "quantise by an even zero point, or use another engine, if halves matter",
    "from_one_side": "use another engine",
    "sampled_volume": "use another engine",
    "fed_bounds": "feed no bound of 2^31 or more",
    "choice": "use another value, or another engine",
    "late_window": "pad the data, or leave ceil_mode out, if no window starts beyond them",
    "floored_floats": "write x - y * Floor(x / y), or use another engine",
    "ignored_class": "use a SoftmaxCrossEntropyLoss, or another engine",
    "symmetric_blocks": "give it a zero point of zeros",
    "open_columns": "declare the last dimension of the second factor",
    "aligned_to_end": "give the mask as attn_mask, or use another engine",
    "small_rows": "cast the rows to int8, and back outside of the body",
    "zero_points_of_weights": "give one zero point for all channels, or use another engine",
    "unpooled_shape": "leave the shape out and pad the result, or use another engine",
    "short_mask": "give a mask for all keys, or use another engine",
    "open_groups": "declare how many heads the queries and the keys have",
    "compared_extreme": "compare with the lowest and the largest float as well",
    "window": "give the window as a mask, or use another engine",
    "fed_frames": "give the step and the length of frames as constants",
    "real_frames": "give complex numbers, whose second parts are 0, or use another engine",
    "squeezed_constant": "give the axes as a constant",
    "columns_of_volumes": "use another engine",
    "scales_of_rows": "write it as a DequantizeLinear, a MatMul and a QuantizeLinear",
    "scales_of_columns": "write it as a DequantizeLinear, a MatMul and a QuantizeLinear",
    "open_planes": "declare the first two dimensions, or use ReduceL1 or ReduceL2",
}
"""Features that a node keeps, whatever it is rewritten to, and what to do about each."""

Extent: TypeAlias = Literal["all", "some", "uses", "edge", "illegal", "values"]
EXTENTS: tuple[str, ...] = get_args(Extent)
"""How much is affected: everything, which alone is an error; ordinary inputs among others; only
some uses of the operator, such as what reads its result; only inputs that are rare or wrong, such
as a dimension of 0; only inputs that the standard refuses, which lowering leaves to the engine;
only elements of some values, whatever operator moves them."""


KernelLine: TypeAlias = Annotated[
    str, msgspec.Meta(pattern=r"^\d{1,9}-\d{0,9}( @\d{1,9}-\d{0,9})?( .*)?$")
]


@dataclass(frozen=True, slots=True)
class Limitation:
    """One thing that an engine was measured not to do right, or that a target leaves out.

    Attributes:
        feature: A feature of a node or a model.
        verdict: One of `VERDICTS`.
        extent: One of `EXTENTS`.
        note: What the engine does, or how things are in the target.
        operators: The types, or versions such as ``onnx.Split-1``, it was seen with; empty for any.
        values: The values of the feature that it was seen with; empty for any.
        requires: What the target requires instead, such as ``explicit lengths``; empty of engines.
        also: Features that have to be there as well.
        unless: Features with any of which it does not hold.
    """

    feature: str
    verdict: Verdict
    extent: Extent
    note: str
    operators: tuple[str, ...] = ()
    values: tuple[str | int | bool, ...] = ()
    requires: str = ""
    also: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()

    def holds(self, features: Mapping[str, object]) -> bool:
        """Return whether it is about something with these features."""
        held = features.get(self.feature, False)
        if held is False:  # as most are
            return False
        values = held if isinstance(held, tuple) else (held,)
        operator = {features.get("operator"), features.get("version")}
        return (
            all(name in features for name in self.also)
            and not any(name in features for name in self.unless)
            and (not self.operators or not operator.isdisjoint(self.operators))
            and (not self.values or not set(values).isdisjoint(self.values))
        )


@dataclass(frozen=True, slots=True)
class Profile:
    """The measured limitations of one version of an engine.

    Attributes:
        engine: The engine's name, or that of a target that can't be run.
        version: The version that was measured; empty for a target.
        measured: Who measured, when and how.
        view: What the engine knows of a model at import; None if it looks at shapes when it runs.
        sorts: Which nodes of a main graph it runs whatever their order: ``all``, ``own`` for those
            that read nothing later in their bodies, or none if it is empty.
        reads_unrun: The features that it refuses in code that never runs, too; ``all`` for each
            that it refuses.
        runs_unused: Whether it loads and runs nodes that no output depends on, too.
        kernels: The kernels of operators: by type of the node, for which versions and element types
            it has one, or for which it has none; see `tensorsplit.model.check.engine_kernels`.
        package: The distribution whose version it is of; empty for the engine's name.
        remarks: What a user has to know of how it was chosen, such as that another version is
            installed.
    """

    engine: str
    version: str
    measured: Mapping[str, str]
    entries: tuple[Limitation, ...]
    view: View | None = None
    sorts: Literal["", "own", "all"] = ""
    reads_unrun: tuple[str, ...] = ()
    runs_unused: bool = False
    kernels: Mapping[str, tuple[KernelLine, ...]] = field(default_factory=dict)
    package: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Such as ``onnxruntime 1.31.1``."""
        return f"{self.engine} {self.version}".strip()

    def problem_with_irs(self) -> str | None:
        """Return why the engine takes no OpenVINO IR; None if it does."""
        if self.engine == "openvino":
            return None
        return f"{self.name}: the model is an OpenVINO IR, which only OpenVINO reads"

    def sentence(self, entry: Limitation) -> str:
        """Return an entry as a sentence, such as ``portable requires explicit lengths``."""
        if entry.requires:
            return f"{self.name} requires {entry.requires}"
        return f"{self.name}: {entry.note}"

    def refuses_unrun(self, entry: Limitation) -> bool:
        """Return whether the engine refuses a model for an entry though the code never runs."""
        is_read = "all" in self.reads_unrun or entry.feature in self.reads_unrun
        return is_read and entry.verdict == "refused"

    def refuses_unused(self, entry: Limitation) -> bool:
        """Return whether the engine fails for an entry though no output depends on the node."""
        return self.runs_unused and entry.verdict in ("refused", "crash")

    def about(self, features: Mapping[str, object]) -> Iterator[Limitation]:
        """Return the entries that hold for something with these features."""
        entries = self.entries if features else ()  # most nodes have none
        return (entry for entry in entries if entry.holds(features))


def must_go(entry: Limitation) -> bool:
    """Return whether lowering changes a node for an entry.

    It is not where an engine refuses rare inputs only, or takes illegal ones, nor for what large
    values do, nor where no other node would do.
    """
    return entry.feature not in LEFT and (
        entry.extent in ("all", "some", "uses")
        or (entry.extent == "edge" and entry.verdict in ("wrong", "crash"))
    )


def targets() -> tuple[str, ...]:
    """Return the engines and targets that there are profiles of."""
    return tuple(sorted({engine for engine, _ in (*_files(), *_made_here())}))


def load(engine: str | os.PathLike[str], version: str | None = None) -> Profile:
    """Return the profile of an engine.

    Args:
        engine: The engine's name, a name with a version, such as ``onnxruntime@1.31.1``, or the
            path of a profile (``.json``) that ``tensorsplit conformance --profiles`` has written.
        version: The version that is in use, if the name has none; the newest profile that is not
            newer than it is taken, else the oldest. None stands for the version that is
            installed, or for the newest if none is. Of no meaning for a path.

    Returns:
        The profile. If the package has one of the same version, that of this machine is taken. Its
        `remarks` say where it is of another version than the one in use.

    Raises:
        SplitError: TS601 if no profile of the engine exists; TS703 if the file holds none.
    """
    engine_or_path = as_path(engine)
    if engine_or_path is None:
        raise _unknown(engine)
    engine = engine_or_path
    if engine.endswith(_SUFFIX):
        return _from_file(Path(engine))
    name, at, requested = engine.partition("@")
    made, remarks = _read_here(name)
    versions = sorted({*made, *(number for known, number in _files() if known == name)}, key=_order)
    if not versions or (at and not (_is_version(requested) and all(versions))):
        raise _unknown(engine)
    newest = made.get(versions[-1]) or _read(name, versions[-1])
    in_use = requested or version or _installed(newest.package or name)
    usable = [number for number in versions if in_use is None or _order(number) <= _order(in_use)]
    taken = usable[-1] if usable else versions[0]
    if in_use is not None and taken and _order(in_use) != _order(taken):
        remarks.append(
            f"the profile of {name} was measured on {taken}, and not on {in_use}; tensorsplit"
            f" profile {name} measures the version that is installed"
        )
    return replace(made.get(taken) or _read(name, taken), remarks=tuple(remarks))


def _unknown(target: object) -> SplitError:
    named = as_string(target)
    if named is None or "," in named:
        problem, fix = f"it is {show(target)}", "give the name of one target"
        return SplitError(UNKNOWN_ENGINE, problem, fix, parameter="target")
    near, known = did_you_mean(named, targets()), ", ".join(targets())
    fix = near.rstrip() or (
        f"known targets are {known}; portable is for engines that have no profile, and @ and a"
        " version may follow an engine"
    )
    if near and "@" in named:
        fix = f"{near}@ and a version may follow an engine"
    problem = f"there is no profile for {show(target)}"
    return SplitError(UNKNOWN_ENGINE, problem, fix, parameter="target")


def cache_folder() -> Path:
    """Return the folder of profiles that were made on this machine, which need not exist.

    ImportError where platformdirs is not installed, which comes with the command that makes them.
    """
    from platformdirs import user_cache_path

    return Path(user_cache_path("tensorsplit", appauthor=False)) / "profiles"


def _made_here() -> Mapping[tuple[str, str], Path]:
    """Return the files in the user's cache, by engine and version."""
    found = dict[tuple[str, str], Path]()
    with suppress(ImportError, OSError):
        for path in sorted(cache_folder().iterdir()):
            engine, version = _engine_and_version(path.name)
            if path.suffix == _SUFFIX and _is_version(version):
                found[engine, version] = path
    return found


def _read_here(engine: str) -> tuple[dict[str, Profile], list[str]]:
    """Return the profiles measured on this machine of an engine, by version, and remarks.

    A file that holds no profile is ignored, with a remark.
    """
    found, remarks = dict[str, Profile](), list[str]()
    for (name, version), path in _made_here().items():
        if name == engine:
            try:
                found[version] = _from_file(path)
            except SplitError as error:
                remarks.append(
                    f"{error.problem}; it is ignored, and tensorsplit profile {engine} replaces it"
                )
    return found, remarks


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


def _order(version: str) -> Version:
    """Return the key that versions are compared by; others, such as a target's, are the oldest.

    How a package was built, such as ``+cpu``, makes no difference.
    """
    return Version(Version(version if _is_version(version) else "0").public)


def _installed(engine: str) -> str | None:
    try:
        return metadata.version(engine)
    except metadata.PackageNotFoundError:
        return None


@cache
def _files() -> Mapping[tuple[str, str], Traversable]:
    """Return the files of the package, by engine and version."""
    entries = (entry for entry in files(__package__).iterdir() if entry.name.endswith(_SUFFIX))
    return {_engine_and_version(entry.name): entry for entry in entries}


def _engine_and_version(name: str) -> tuple[str, str]:
    """Return the engine, whose name may hold hyphens, and the version, from its digit on."""
    match = _NAME.fullmatch(name.removesuffix(_SUFFIX))
    return (match[1], match[2]) if match else (name.removesuffix(_SUFFIX), "")


@cache
def _read(engine: str, version: str) -> Profile:
    return _profile(engine, version, json.loads(_files()[engine, version].read_text("utf-8")))


def _from_file(path: Path) -> Profile:
    """Return the profile in a file of the user's."""
    what, fix = (
        "holds no profile",
        "give a file that tensorsplit conformance --profiles has written",
    )
    content = read_json(path, what=what, fix=fix, parameter="target", most=_MOST_BYTES)
    try:
        return _profile(*_engine_and_version(path.name), content)
    except (TypeError, msgspec.MsgspecError) as error:
        problem = f"{path} {what}: {type(error).__name__}: {words_of(error)}"
        raise SplitError(USAGE, problem, fix, parameter="target") from None


def _profile(engine: str, version: str, content: Any) -> Profile:
    """Return a profile of the content of its file, which does not decide what it is of."""
    decided = {"engine": engine, "version": version, "remarks": []}
    return msgspec.convert({**content, **decided}, Profile)
