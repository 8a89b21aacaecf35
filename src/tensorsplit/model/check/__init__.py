"""The errors and oddities of a model's splits, and what an engine won't run."""
