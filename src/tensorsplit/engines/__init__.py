"""Engines: what runs a model, one adapter for each."""
