#!/bin/sh
# Set up, then run the models of examples/ and draw the uneven split.
set -eu
cd "$(dirname "$0")/.."
EXTRAS=
. scripts/setup.sh

set -x
.venv/bin/tensorsplit run examples/attention.onnx --input x=examples/attention_x.npy
.venv/bin/tensorsplit run examples/uneven.onnx --input x=examples/uneven_x.npy --compare onnx-reference
.venv/bin/tensorsplit explain examples/uneven.onnx
