#!/bin/sh
# Set up, then run the tests, on every core, but for those that are marked `thorough`, which go through
# many cases of what others state by hand, and `engine`, which need an engine: CI runs them. All
# arguments go to pytest, which then runs these too: `sh scripts/test.sh tests` runs all.
set -eu
cd "$(dirname "$0")/.."
EXTRAS='[dev]'
. scripts/setup.sh

TOOK=.venv/tests-took
run() { .venv/bin/python -m pytest -n auto --maxprocesses 8 --dist loadfile --max-worker-restart 0 "$@"; }

if [ $# != 0 ]; then
    run "$@"
    exit
fi
usual="$(cat "$TOOK" 2>/dev/null || echo "4 to 5 minutes on two cores that are free")"
echo "the tests but for the thorough ones and those of engines, which CI runs: $usual; skips are summed up at the end" >&2
begun=$(date +%s)
run -m 'not thorough and not engine'
took=$(($(date +%s) - begun))
echo "$((took / 60)) min $((took % 60)) s last time" >"$TOOK"
