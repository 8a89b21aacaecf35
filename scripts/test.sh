#!/bin/sh
# Set up, then run the tests, on every core. Arguments go to pytest.
set -eu
cd "$(dirname "$0")/.."
EXTRAS='[dev]'
. scripts/setup.sh

TOOK=.venv/tests-took
if [ $# = 0 ] && [ -f "$TOOK" ]; then
    echo "all tests, which took $(cat "$TOOK") last time; skips are summed up at the end" >&2
elif [ $# = 0 ]; then
    echo "all tests, 5 to 15 minutes on two cores that are free; skips are summed up at the end" >&2
fi
begun=$(date +%s)
.venv/bin/python -m pytest -n auto --maxprocesses 8 --dist loadfile --max-worker-restart 0 "$@"
took=$(($(date +%s) - begun))
[ $# != 0 ] || echo "$((took / 60)) min $((took % 60)) s" >"$TOOK"
