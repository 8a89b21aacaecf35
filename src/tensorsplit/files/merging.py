"""Which stored tensors are parts of a whole: rules, read the other way round.

The names and shapes of the parts give a whole; its rule divides that as it would to split it, and
what is stored has to be what comes of it. So no length, name or rank is decided a second time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import Any

from tensorsplit.core.errors import NOT_PARTS, USAGE, SplitError, short_name, show, show_int
from tensorsplit.files.divisions import carried, located
from tensorsplit.files.formats import Division, NewTensor, Recast, StoredTensor
from tensorsplit.files.rule_files import PatternRule, RuleSet, led
from tensorsplit.files.sharding import ShardRule
from tensorsplit.files.tensor_names import check_names, fill
from tensorsplit.files.tensor_rules import FollowRule, RenameRule, SplitRule, TensorRule

_NUMBERED = re.compile(r"(.*)\.([0-9]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Gathered:
    """A whole that is stored in parts.

    Attributes:
        division: The whole, as its rule divides it.
        before: The same as it is stored, with an output for each stored tensor.
        stored: The stored tensors.
        rule: The number of its rule; None for a tensor that no rule names.
    """

    division: Division
    before: Division
    stored: tuple[StoredTensor, ...]
    rule: int | None

    def merged(self) -> Recast:
        """Return the change of the parts into the whole."""
        whole = self.division.tensor
        return Recast(self.before, self.stored, carried(whole, whole.name))

    def divided_again(self, rules: RuleSet, leaders: Mapping[str, Division]) -> Division:
        """Return the whole as the same rules divide it for other ranks.

        Those that it may follow are in `leaders`, divided for these ranks.

        Raises:
            SplitError: TS303 where these can't divide the whole.
        """
        whole = self.division.tensor
        found = None if self.rule is None else rules.rules[self.rule]
        rule = None if found is None else found.rule
        matched = None if found is None else found.matched(whole.name)
        with located(whole.name):
            if isinstance(rule, FollowRule):
                leader = led(rule, matched or [], leaders)
                return rule.divide(whole, matched or [], leader)
            if isinstance(rule, ShardRule):
                return rule.divide(whole, matched or [])
        return self.division


def resharded(gathered: Sequence[Gathered], rules: RuleSet) -> list[Recast]:
    """Return the changes of parts into those that the same rules make for other ranks."""
    after: dict[str, Division] = {}
    for each in sorted(gathered, key=lambda each: _follows(rules, each.rule)):
        after[each.division.tensor.name] = each.divided_again(rules, after)
    return [Recast(each.before, each.stored, after[each.division.tensor.name]) for each in gathered]


def divided_otherwise(
    gathered: Sequence[Gathered], rules: RuleSet
) -> tuple[list[Recast], list[str]]:
    """Return the changes of parts into those that other rules make of the wholes.

    Also returns the patterns that match none of these.

    Raises:
        SplitError: TS703 for a whole that is joined on one axis and divided on another one, TS706
            for two of one name, and what `RuleSet.divide` raises.
    """
    check_names([each.merged() for each in gathered])
    wholes = {each.division.tensor.name: each.division.tensor for each in gathered}
    divisions, unmatched = rules.divide(wholes)
    changes = []
    for each, division in zip(gathered, divisions, strict=True):
        axes = {plan.axis for plan in (each.before.plan, division.plan) if plan is not None}
        if len(axes) > 1:
            problem = (
                f"the tensor {short_name(division.tensor.name)} is joined on one of the axes"
                f" {show(sorted(axes))}, and divided on the other one"
            )
            fix = "do it in two steps: merge, then split the result"
            raise SplitError(USAGE, problem, fix, parameter="rules")
        changes.append(Recast(each.before, each.stored, division))
    return changes, unmatched


def _follows(rules: RuleSet, number: int | None) -> bool:
    return number is not None and isinstance(rules.rules[number].rule, FollowRule)


def gather(
    rules: RuleSet, tensors: Iterable[StoredTensor], default: str
) -> tuple[list[Gathered], list[str]]:
    """Return the wholes that stored tensors are parts of, and the patterns that match none.

    Args:
        rules: The rules by which they were split; without lengths, these are as they are found.
        tensors: The parts, and what no rule names.
        default: The name of a whole where the names of its parts don't tell it.

    Raises:
        SplitError: TS713 for parts that are missing, or not what the rule makes of the whole; TS703
            for names that say nothing of the whole, or that two rules give.
    """
    wholes: dict[tuple[int | None, str], list[StoredTensor]] = {}
    unmatched = dict.fromkeys(each.pattern for each in rules.rules)
    for tensor in tensors:
        found = [
            (number, whole)
            for number, rule in enumerate(rules.rules)
            for whole in _wholes(rule, tensor, default)
        ]
        if len(found) > 1:
            raise SplitError(
                USAGE,
                f"the tensor {short_name(tensor.name)} could be a part of two, by the rules for"
                f" {' and '.join(show(rules.rules[each].pattern) for each, _ in found[:2])}",
                "let one rule give each name",
                parameter="rules",
            )
        key: tuple[int | None, str] = found[0] if found else (None, tensor.name)
        if key[0] is not None:
            unmatched.pop(rules.rules[key[0]].pattern, None)
        wholes.setdefault(key, []).append(tensor)
    found_as: dict[tuple[int | None, str], Gathered] = {}
    leaders: dict[str, Division] = {}
    for number, whole in sorted(wholes, key=lambda key: _follows(rules, key[0])):
        each = _gathered(rules, number, whole, wholes[number, whole], leaders)
        found_as[number, whole] = each
        leaders[whole] = each.division
    return [found_as[key] for key in wholes], list(unmatched)


def _wholes(rule: PatternRule, tensor: StoredTensor, default: str) -> Iterator[str]:
    """Yield the names of the tensors of which a rule makes one of that name."""
    for new in _new_names(rule.rule, rule.pattern, tensor.name):
        stars = PatternRule(new, RenameRule("")).matched(tensor.name)
        if stars is None:
            continue
        whole = rule.pattern
        if "*" in whole:
            if "*" in new:
                whole = fill(whole, stars)
            elif whole == "*":
                whole = default
            else:
                raise SplitError(
                    USAGE,
                    f"the name {show(new)} does not say what the * of {show(whole)} stands for",
                    "use each * of the pattern in the names",
                    parameter="rules",
                )
        matched = rule.matched(whole)
        if matched is not None and fill(new, matched) == tensor.name:
            yield whole


def _new_names(rule: TensorRule, pattern: str, name: str) -> Sequence[str]:
    """Return the names that a rule gives to parts, of which one may be as given."""
    if isinstance(rule, FollowRule):
        return rule.names or [pattern]
    if not isinstance(rule, SplitRule):
        return [pattern if rule.name == "*" else rule.name]
    if rule.names is not None:
        return rule.names
    numbered = _NUMBERED.fullmatch(name)
    return [] if numbered is None else [f"{pattern}.{numbered[2]}"]


def _gathered(
    rules: RuleSet,
    number: int | None,
    name: str,
    parts: Sequence[StoredTensor],
    leaders: Mapping[str, Division],
) -> Gathered:
    """Return a whole, divided as it is stored (TS713)."""
    rule = None if number is None else rules.rules[number]
    if other := next((p for p in parts if p.element_type != parts[0].element_type), None):
        raise _refusal(
            name,
            f"{short_name(parts[0].name)} is of {parts[0].element_type}, and"
            f" {short_name(other.name)} of {other.element_type}",
        )
    _check_padding(name, rule, parts, leaders)
    if rule is None or isinstance(rule.rule, RenameRule):
        whole = _whole_like(parts[0], name=name)
        division = carried(whole, parts[0].name)
    else:
        with located(name):
            division = _divided(rule.rule, name, rule.matched(name) or [], parts, leaders)
    outputs, stored = zip(*_paired(name, division, parts), strict=True)
    return Gathered(division, replace(division, outputs=outputs), stored, number)


def _paired(
    name: str, division: Division, parts: Sequence[StoredTensor]
) -> Iterator[tuple[NewTensor, StoredTensor]]:
    """Yield each part that a rule makes with what is stored of it, in each rank that has a copy."""
    held = defaultdict[tuple[str, int | None], list[StoredTensor]](list)
    is_sharded = division.outputs[0].rank is not None
    for part in parts:
        held[part.name, part.rank if is_sharded else None].append(part)
    for output in division.outputs:
        copies = held.pop((output.name, output.rank), [])
        if not copies:
            raise _refusal(name, f"there is no {_of_rank(output.name, output.rank)}")
        for copy in copies:
            if copy.shape != output.shape:
                raise _refusal(
                    name,
                    f"{short_name(copy.name)} is of shape {show(copy.shape)}, and the rule makes"
                    f" {show(output.shape)} of it",
                )
            if copy.layout and copy.layout != output.layout:
                raise _refusal(name, "it was divided among ranks otherwise than the rules say")
            yield replace(output, rank=copy.rank), copy
    if held:
        raise _refusal(name, f"the rule makes no {_of_rank(*next(iter(held)))}")


def _of_rank(name: str, rank: int | None) -> str:
    return short_name(name) if rank is None else f"{short_name(name)} of rank {rank}"


def _check_padding(
    name: str,
    rule: PatternRule | None,
    parts: Sequence[StoredTensor],
    leaders: Mapping[str, Division],
) -> None:
    """Refuse (TS713) parts of what was padded and is not by its rule, and the other way round.

    What is not divided among ranks may be of what one of them has, and is as padded as that.
    """
    lengths, pads = {each.unpadded for each in parts}, False
    if rule is not None and isinstance(rule.rule, ShardRule):
        pads = rule.rule.pads
    if rule is not None and isinstance(rule.rule, FollowRule):
        with located(name):
            pads = led(rule.rule, rule.matched(name) or [], leaders).is_padded
    is_ranked = parts[0].rank is not None
    if len(lengths) > 1 or (pads and None in lengths):
        raise _refusal(name, "its files do not say alike how long it was before it was padded")
    if is_ranked and not pads and lengths != {None}:
        raise _refusal(name, "it was padded, and no rule says pad_to")


def _divided(
    rule: SplitRule | ShardRule | FollowRule,
    name: str,
    matched: Sequence[str],
    parts: Sequence[StoredTensor],
    leaders: Mapping[str, Division],
) -> Division:
    """Return the parts that a rule makes of the whole of these parts."""
    if isinstance(rule, FollowRule):
        leader = led(rule, matched, leaders)
        if rule.carries(leader):
            whole = _whole_like(parts[0], name=name)
        else:
            whole = _joined(name, parts, rule.axis_of(leader), lambda _: rule.length(leader))
        return rule.divide(whole, matched, leader)
    if isinstance(rule, ShardRule):
        by_rank = {each.rank: each for each in parts}
        if lost := [rank for rank in range(rule.ranks) if rank not in by_rank]:
            raise _refusal(name, f"there is no {short_name(parts[0].name)} of rank {lost[0]}")
        in_order = [by_rank[rank] for rank in range(rule.ranks)]
        unpadded = in_order[0].unpadded
        whole = _joined(
            name,
            in_order,
            rule.axis,
            rule.whole_length if unpadded is None else lambda _: unpadded,
        )
        return rule.divide(whole, matched)
    named = {each.name: each for each in parts}
    if rule.names is None:
        order = sorted(named, key=lambda each: int(each.rpartition(".")[2]))
    else:
        order = [new for new in (fill(each, matched) for each in rule.names) if new in named]
    axis = index(rule.operands.axis or 0)
    whole = _joined(name, [named[each] for each in order], axis)
    lengths = [named[each].shape[axis] for each in order]
    return rule.for_parts(lengths).divide(whole, matched if rule.names is not None else [name])


def _joined(
    name: str,
    parts: Sequence[StoredTensor],
    axis: int,
    whole_length: Callable[[Sequence[int]], int] = sum,
) -> StoredTensor:
    """Return the tensor that parts give, side by side by default (TS713)."""
    shape = parts[0].shape
    if not -len(shape) <= axis < len(shape):
        found = show_int(axis)
        problem = f"{short_name(parts[0].name)} of shape {show(shape)} has no axis {found}"
        raise _refusal(name, problem)
    axis %= len(shape)
    for each in parts:
        if (*each.shape[:axis], *each.shape[axis + 1 :]) != (*shape[:axis], *shape[axis + 1 :]):
            raise _refusal(
                name,
                f"{short_name(parts[0].name)} is of shape {show(shape)}, and"
                f" {short_name(each.name)} of {show(each.shape)}: they differ on other axes than"
                f" {axis}",
            )
    lengths = [each.shape[axis] for each in parts]
    length, nbytes = whole_length(lengths), sum(each.nbytes for each in parts)
    return _whole_like(
        parts[0],
        name=name,
        shape=(*shape[:axis], length, *shape[axis + 1 :]),
        nbytes=nbytes * length // (sum(lengths) or 1),
    )


def _whole_like(part: StoredTensor, **changes: Any) -> StoredTensor:
    """Return a whole of the type of its part, with the notes that are not about ranks of it."""
    if part.rank is None:
        return replace(part, **changes)
    return replace(part, rank=None, unpadded=None, layout="", **changes)


def _refusal(name: str, problem: str) -> SplitError:
    return SplitError(
        NOT_PARTS,
        f"tensor {short_name(name)}: {problem}",
        "give all parts, and the rules by which they were split",
        parameter="source",
    )
