#!/bin/sh
# Make an environment for each engine and tool that the published conformance run has in the versions
# below, in build/engines/NAME, and run the suite there: build/engines/NAME.json.gz.
#
#   sh scripts/engines.sh                  # all of them: many hours
#   sh scripts/engines.sh mnn onnx-tool    # some
#   sh scripts/engines.sh mnn -- --case '*stated*'    # with options of `tensorsplit conformance`
#
# `tensorsplit conformance --from docs/conformance.json.gz --from build/engines/mnn.json.gz` puts runs together.
# PYTHON is the interpreter that the environments are made with; litert needs tensorsplit in it. Not in the
# published run: litert, of which a case takes seconds.
set -eu
cd "$(dirname "$0")/.."

packages() {
    case $1 in
        iree) echo iree-base-compiler==3.13.0 iree-base-runtime==3.13.0 ;;
        jaxonnxruntime) echo jaxonnxruntime==0.3.0 jax==0.10.2 absl-py ;;
        litert) echo numpy==1.26.4 onnx==1.19.0 onnx2tf==1.29.20 ;;
        mnn) echo mnn==3.6.1 ;;
        ncnn) echo ncnn==1.0.20261020 ;;
        onnx-tool) echo onnx-tool==1.0.1 ;;
        onnxruntime-optimizer) echo onnxruntime==1.32.0 ;;
        onnxruntime-web) ;; # a package of npm
        onnxruntime-shape-inference) echo onnxruntime==1.32.0 sympy==1.14.0 ;;
        onnxoptimizer) echo onnxoptimizer==0.4.2 ;;
        onnxsim) echo onnxsim==0.8.1 ;;
        onnxslim) echo onnxslim==0.1.98 ;;
        opencv) echo opencv-python-headless==5.0.0.93 ;;
        tinygrad) echo tinygrad==0.14.0 ;;
        tract) echo tract==0.23.9 ;;
        tvm) echo apache-tvm==0.27.0.post1 ;;
        *) echo "scripts/engines.sh: it knows no $1" >&2; return 1 ;;
    esac
}

# Install what an engine needs besides its packages: name, folder.
more() {
    case $1 in
        ncnn) "$2/bin/pip" install --quiet --no-deps pnnx==20261020 ;; # of PyTorch it needs nothing here
        onnxruntime-web)
            npm install --silent --prefix "$2" onnxruntime-web@1.30.0
            export NODE_PATH="$PWD/$2/node_modules"
            ;;
    esac
}

names=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    names="$names $1"
    shift
done
[ $# -eq 0 ] || shift
: "${names:=iree jaxonnxruntime mnn ncnn onnx-tool onnxruntime-optimizer onnxruntime-shape-inference onnxruntime-web onnxoptimizer onnxsim onnxslim opencv tinygrad tract tvm}"

for name in $names; do
    wanted=$(packages "$name")
    folder=build/engines/$name
    "${PYTHON:-python3}" -m venv "$folder"
    if [ "$name" = litert ]; then # whose versions exclude ours: its adapter names this interpreter
        # shellcheck disable=SC2086
        "$folder/bin/pip" install --quiet --disable-pip-version-check $wanted
        "${PYTHON:-python3}" -m tensorsplit conformance --engine scripts/litert.py --jobs 1 --timeout 60 \
            --format json --output build/engines/litert.json.gz --overwrite "$@" || [ $? -eq 1 ]
        continue
    fi
    # shellcheck disable=SC2086 # several packages
    "$folder/bin/pip" install --quiet --disable-pip-version-check onnx==1.23.2 $wanted '.[models,cli,report]'
    more "$name" "$folder"
    "$folder/bin/tensorsplit" conformance --engine "$name" --jobs 1 \
        --format json --output "build/engines/$name.json.gz" --overwrite "$@" ||
        [ $? -eq 1 ] # deviations, which the run is for
done
