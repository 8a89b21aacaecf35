#!/bin/sh
# Set up, then show two models that break what is widely used, the finding for one, and an equal
# model of the other that is safe. What it writes is in build/demo.
set -eu
cd "$(dirname "$0")/.."
EXTRAS='[cli,openvino]'
. scripts/setup.sh
export PATH="$PWD/.venv/bin:$PATH"

begun=
# Print how long the step before took, and begin one.
say() {
    [ -z "$begun" ] || printf -- '-- %d s\n' $(($(date +%s) - begun))
    begun=$(date +%s)
    printf '\n== %s\n' "$*"
}
run() {
    printf '$'
    for word; do
        case $word in
        *[\ \(]*) printf ' "%s"' "$word" ;;
        *) printf ' %s' "$word" ;;
        esac
    done
    printf '\n'
    "$@"
}

say "1. Split 6 numbers into [-1, 7] on OpenVINO: it returns 7, the last from outside the buffer:"
run python examples/split_on_openvino.py examples/lengths.onnx -1 7

say "2. What tensorsplit knows about it:"
run tensorsplit check examples/lengths.onnx --for openvino

say "3. An equal model, verified on random inputs:"
run tensorsplit lower examples/lengths.onnx --for openvino -o build/demo/safe.onnx --create-dirs --overwrite --verify

say "4. It splits right lengths as before, and OpenVINO refuses to run it with the others:"
run python examples/split_on_openvino.py build/demo/safe.onnx 2 4
run python examples/split_on_openvino.py build/demo/safe.onnx -1 7 || [ $? = 1 ]

say "5. Another model, with 2 parts and 3 outputs. onnx's shape inference ends the process:"
run python -c "import onnx; onnx.shape_inference.infer_shapes_path('examples/outputs.onnx')" || echo "exit status $?"
run tensorsplit check examples/outputs.onnx || [ $? = 1 ]

say "Next"
cat <<'NEXT'
. .venv/bin/activate                            # puts the command tensorsplit on your path
tensorsplit check YOUR_MODEL.onnx --for openvino
docs/quickstarts/README.md                      # five minutes for models, CI, engines and arrays
NEXT
