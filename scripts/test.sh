#!/bin/sh
# Set up, then run the tests. Arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."
EXTRAS='[dev]'
. scripts/setup.sh

exec .venv/bin/python -m pytest "$@"
