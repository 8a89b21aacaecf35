"""What lowering changed and why, and what it could not change."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Change:
    """One node that was replaced.

    Attributes:
        node: Its path, such as ``graph/loop_1.body/split_0``.
        operator: What it was.
        became: What stands there now.
        reason: Why the target needs it.
    """

    node: str
    operator: str
    became: str
    reason: str


@dataclass
class Report:
    """Everything that lowering did.

    Attributes:
        target: The profile that was lowered for, such as ``onnxruntime 1.31.1``.
        changes: In the order of the model.
        notes: What the target may still refuse or do wrongly for some inputs, each once.
    """

    target: str
    changes: list[Change] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Add a note that is not there yet."""
        if text not in self.notes:
            self.notes.append(text)
