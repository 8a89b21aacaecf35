"""The errors of a model: whether its message, its graph and its nodes are well-formed."""
