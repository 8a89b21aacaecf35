"""Conformance: what every engine really does with a split, measured case by case.

`cases` states what the standards ask, with expectations that nothing of the rest of the package
computes; `subjects` holds one adapter for each engine and tool; `runner` puts the two together, in
processes that may die; `report` shows what came of it.
"""

SECONDS_OF_A_CASE = 10.0
"""How long an engine or tool may take for one case before it counts as hanging."""
