"""`check`: one model for each thing that it looks for."""
