"""What is wrong with the splits of a model, what is odd, and what an engine won't run."""
