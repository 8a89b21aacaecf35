"""Rules: which tensors of a checkpoint are split, sharded or renamed, by patterns of names."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

from tensorsplit.arrays.naming import strings_of
from tensorsplit.core.errors import (
    PART_NAMES,
    USAGE,
    SplitError,
    did_you_mean,
    short_name,
    show,
    show_int,
    show_path,
    wrong_type,
)
from tensorsplit.core.extras import needs
from tensorsplit.core.given import as_data, as_path, is_mapping
from tensorsplit.files.divisions import SplitOperands, carried, check_part_count, located
from tensorsplit.files.formats import RANK_FILE, Division, StoredTensor
from tensorsplit.files.model_rules import built_in, completed
from tensorsplit.files.sharding import ShardRule
from tensorsplit.files.tensor_names import fill
from tensorsplit.files.tensor_rules import FollowRule, SplitRule, TensorRule
from tensorsplit.storage.documents import read_file
from tensorsplit.storage.paths import fix_unread, why_unread

_MOST_BYTES = 16 << 20
_RULES = "give the path of a TOML file, what such a file holds, or a name of built-in rules"
_MOST_RANKS = 1 << 16  # each has files
_MOST_IN_KEY = 16
_PART = r"(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*+\.[ \t]*+"
_LONG_KEY = re.compile(rf"(?m)(?:^|[\[{{,])[ \t]*+(?:{_PART}){{{_MOST_IN_KEY}}}")
"""A key on which Python's reader of TOML would take time and memory by the square of its parts."""

_HELP = "tensorsplit rules lists the built-in ones; rules show NAME prints one to start from"


@dataclass(frozen=True, slots=True)
class PatternRule:
    """A rule, and the names of the tensors that it is for.

    Attributes:
        pattern: The names, in which each ``*`` stands for any letters.
        rule: What becomes of the tensors.
    """

    pattern: str
    rule: TensorRule

    def matched(self, name: str) -> list[str] | None:
        """Return the text that each ``*`` stands for, or the whole name; None for another name."""
        first, *pieces = self.pattern.split("*")
        if not pieces:
            return [name] if name == first else None
        begin, end = len(first), len(name) - len(pieces[-1])
        if begin > end or not (name.startswith(first) and name.endswith(pieces[-1])):
            return None
        found = []
        for piece in reversed(pieces[:-1]):  # from the end, as the first * stands for the most
            place = name.rfind(piece, begin, end)
            if place < 0:
                return None
            found.append(name[place + len(piece) : end])
            end = place
        return [name[begin:end], *reversed(found)]


@dataclass(frozen=True, slots=True)
class RuleSet:
    """The rules for the tensors of a checkpoint.

    Attributes:
        rules: The rules; a tensor that two of them match is refused.
        ranks: The number of ranks; None without tensor parallelism.
        file: The name of the file of a rank.
        common: The file for what is for all ranks.
        is_of_family: Whether they are for many models, of which each has some of the tensors.
        notes: What a caller should know of them.
    """

    rules: Sequence[PatternRule]
    ranks: int | None = None
    file: str = RANK_FILE
    common: str | None = None
    is_of_family: bool = False
    notes: Sequence[str] = ()

    @property
    def is_for_ranks(self) -> bool:
        """Whether a rule divides tensors among ranks."""
        return any(isinstance(each.rule, ShardRule) for each in self.rules)

    def for_ranks(self, ranks: int) -> RuleSet:
        """Return the rules for so many ranks, whatever they say themselves."""
        rules = [
            replace(each, rule=replace(each.rule, ranks=ranks))
            if isinstance(each.rule, ShardRule)
            else each
            for each in self.rules
        ]
        return replace(self, rules=rules, ranks=ranks)

    def check_ranks(self) -> None:
        """Refuse (TS703) rules for ranks without their number, and a number without such rules."""
        count = self.ranks or 0
        if self.is_for_ranks == (count > 0) and count <= _MOST_RANKS:
            return
        problem = "no rule divides tensors among ranks"
        fix = "leave out the number of ranks, or give rules with a table [[shard]]"
        if self.is_for_ranks:
            problem = "the number of ranks is missing"
            if self.ranks is not None:
                problem = f"the number of ranks is {show_int(self.ranks)}"
            fix = f"give a number from 1 to {_MOST_RANKS}, or write it into the rules, as ranks = 4"
        raise SplitError(USAGE, problem, fix, parameter="ranks")

    def divide(
        self, tensors: Mapping[str, StoredTensor], chosen: Collection[str] = ()
    ) -> tuple[list[Division], list[str]]:
        """Return the division of each tensor, and the patterns that match none.

        Where some are chosen, rules are for these alone.

        Raises:
            SplitError: TS308 for too many parts of all tensors together, TS703 for a tensor that
                two rules match, or what `divide` of the rule raises, with the name of the tensor.
        """
        unmatched = dict.fromkeys(each.pattern for each in self.rules)
        divisions: dict[str, Division | None] = {}  # in the order of the tensors
        followers = list[tuple[StoredTensor, FollowRule, list[str]]]()
        count = 0
        for tensor in tensors.values():
            if self.ranks is not None and tensor.unpadded is not None:
                problem = f"the tensor {short_name(tensor.name)} is padded, as one rank has it"
                fix = "divide the whole, or reshard the files of all ranks"
                raise SplitError(USAGE, problem, fix, parameter="ranks")
            is_chosen = not chosen or tensor.name in chosen
            found = self._rule_of(tensor.name) if is_chosen else None
            if found is None:
                divisions[tensor.name] = carried(tensor, tensor.name)
                continue
            each, matched = found
            unmatched.pop(each.pattern, None)
            if isinstance(each.rule, FollowRule):
                followers.append((tensor, each.rule, matched))
                divisions[tensor.name] = None
                continue
            with located(tensor.name):
                divisions[tensor.name] = made = each.rule.divide(tensor, matched)
            count += len(made.outputs)
            check_part_count(count)
        for tensor, rule, matched in followers:
            with located(tensor.name):
                leader = led(rule, matched, divisions)
                divisions[tensor.name] = rule.divide(tensor, matched, leader)
        return [each for each in divisions.values() if each is not None], list(unmatched)

    def _rule_of(self, name: str) -> tuple[PatternRule, list[str]] | None:
        """Return the rule that matches a tensor, and what each ``*`` stands for; TS703 for two."""
        found = [(each, m) for each in self.rules if (m := each.matched(name)) is not None]
        if len(found) > 1:
            raise SplitError(
                USAGE,
                f"{' and '.join(show(each.pattern) for each, _ in found[:2])} both match"
                f" the tensor {short_name(name)}",
                "let one rule match each tensor",
                parameter="rules",
            )
        return found[0] if found else None


def led(
    rule: FollowRule, matched: Sequence[str], divisions: Mapping[str, Division | None]
) -> Division:
    """Return how the tensor is divided that another one follows; TS703 if it is not there."""
    name = fill(rule.leader, matched)
    leader = divisions.get(name)
    if leader is None:
        why = "which follows another one" if name in divisions else "which is not there"
        problem = f"it follows {short_name(name)}, {why}"
        fix = "name the weight, with a * for each of the pattern"
        raise SplitError(USAGE, problem, fix, parameter="follow")
    return leader


def chosen_rules(
    rules: str | PathLike[str] | Mapping[str, object] | None,
    operands: SplitOperands,
    names: Sequence[str] | None,
    source: str | PathLike[str],
    ranks: int | None = None,
) -> RuleSet:
    """Return rules from a file, or one that splits every tensor alike; TS703 for both at once.

    Names that are not a sequence of strings are refused (TS706).
    A number of ranks stands in the place of what rules from a file say. What they leave to the
    configuration of a model is looked up beside the source (TS717, TS718).
    """
    if rules is None:
        if ranks is not None:
            problem = "ranks are given, and no rules"
            raise SplitError(USAGE, problem, "say what they divide", parameter="rules")
        if names is not None:
            names = strings_of(names, PART_NAMES, "give a list of strings", parameter="names")
        return RuleSet([PatternRule("*", SplitRule(operands, names))])
    given = [getattr(operands, each.name) for each in fields(operands) if each.init]
    if any(value is not None for value in (*given, names)):
        problem = "rules are given, and a split as well"
        raise SplitError(USAGE, problem, "put the split into a rule", parameter="rules")
    found = read_rules(rules, str(source))
    return found if ranks is None else found.for_ranks(ranks)


def read_rules(rules: str | PathLike[str] | Mapping[str, object], source: str) -> RuleSet:
    """Read built-in rules, from a TOML file, or from what such a file holds (TS703)."""
    with needs("files"):
        from msgspec import MsgspecError, convert

        from tensorsplit.files.rule_tables import RuleTables
    name = as_path(rules)
    where, notes = "rules", list[str]()
    try:
        if is_mapping(rules):
            held: Any = as_data(rules)
        elif name is None:
            raise SplitError(USAGE, wrong_type(rules), _RULES, parameter="rules")
        elif name in built_in():
            where = f"the rules {name}"
            if Path(name).exists():
                notes.append(f"{where} are the built-in ones; give ./{name} for the file")
            held = tomllib.loads(built_in()[name])
        else:
            where = show_path(name)
            text = read_file(Path(name), _MOST_BYTES).decode()
            if _LONG_KEY.search(text):
                raise ValueError(f"a key has more than {_MOST_IN_KEY} parts")
            held = tomllib.loads(text)
        tables = convert(completed(held, source), RuleTables)
    except SplitError:
        raise
    except (OSError, ValueError, RecursionError, MsgspecError) as error:
        missing = "there is no such file" if isinstance(error, FileNotFoundError) else ""
        near = did_you_mean(name or "", built_in()) if isinstance(error, OSError) else ""
        reason, fix = missing or why_unread(error, name or ""), fix_unread(error, near + _HELP)
        raise SplitError(USAGE, f"{where}: {reason}", fix, parameter="rules") from None
    counts = {count for table in tables.shard if (count := table.count()) is not None}
    if len(counts) > 1:
        found = ", ".join(map(str, sorted(counts)))
        raise SplitError(
            USAGE, f"{where}: ranks is {found}", "give all rules the same", parameter="rules"
        )
    made = [
        PatternRule(pattern, table.rule())
        for table in (*tables.split, *tables.shard, *tables.rename)
        for pattern in ([table.tensors] if isinstance(table.tensors, str) else table.tensors)
    ]
    ruleset = RuleSet(made, None, tables.file, tables.common, "config" in held, notes)
    return ruleset.for_ranks(counts.pop()) if counts else ruleset
