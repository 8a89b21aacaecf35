"""Types and shapes of every value of a model, by the rules that also split."""
