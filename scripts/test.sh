#!/bin/sh
# Set up, then run the tests, on every core. Arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."
EXTRAS='[dev]'
. scripts/setup.sh

exec .venv/bin/python -m pytest -n auto --maxprocesses 8 --dist loadfile --max-worker-restart 0 "$@"
