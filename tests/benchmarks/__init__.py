"""The scripts that make `docs/performance.md`."""
