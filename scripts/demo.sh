#!/bin/sh
# Set up, then show a model that an engine gets wrong, what is wrong with it, and an equal one that
# the engine gets right. What it writes is in build/demo.
set -eu
cd "$(dirname "$0")/.."
EXTRAS='[cli]'
. scripts/setup.sh

say() { printf '\n== %s\n' "$*"; }
run() {
    printf '$ tensorsplit %s\n' "$*"
    .venv/bin/tensorsplit "$@"
}
inputs="--input rows=examples/append_rows.npy --input new=examples/append_new.npy"

say "1. A model that puts a row behind seven others. onnx's reference evaluator puts it in front:"
# shellcheck disable=SC2086 # several arguments
run run examples/append.onnx $inputs --compare onnx-reference || [ $? = 1 ]

say "2. The finding: it uses operators on sequences, which many engines lack or get wrong:"
run check examples/append.onnx --for portable || [ $? = 1 ]

say "3. An equal model without them, verified on random inputs:"
run lower examples/append.onnx --for portable -o build/demo/append.onnx --create-dirs --verify

say "4. Now the results are equal:"
# shellcheck disable=SC2086
run run build/demo/append.onnx $inputs --compare onnx-reference

say "5. How the rows were split, here and as a picture in build/demo/append.svg:"
run explain examples/append.onnx --svg build/demo/append.svg
