"""Models: reading them, checking their split nodes, and running them."""
