#!/bin/sh
# Cross-compile the kernel for 64-bit Arm and run its tests on an emulated processor: they tell
# whether results are right, not how long they take. Left out are random examples and tests
# of processes, which take too long there, and non-temporal stores, which Arm's kernels don't have.
# All arguments go to pytest. On Debian or Ubuntu, as root or with sudo, it installs what it needs of theirs; Arm's
# Python, NumPy and pytest go below build/arm only. PYTHON is the interpreter whose pip is used;
# cmake comes from PATH.
set -eu
cd "$(dirname "$0")/.."
python=$(command -v "${PYTHON:-.venv/bin/python}")
build=$PWD/build/arm
root=$build/root

if ! command -v aarch64-linux-gnu-g++ || ! command -v qemu-aarch64-static; then
    sudo=
    [ "$(id -u)" = 0 ] || sudo=sudo
    $sudo apt-get update -qq
    $sudo apt-get install -qq -y --no-install-recommends g++-aarch64-linux-gnu qemu-user-static
fi >/dev/null

# Packages for Arm by lists of their own, which leave the system's package manager as it is.
rm -rf "$build"
mkdir -p "$root" "$build/apt/lists/partial" "$build/apt/archives/partial" "$build/packages"
version=3.11
arm_apt() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root \
        -o Acquire::Languages=none -o Dir::State::Lists="$build/apt/lists" \
        -o Dir::Cache="$build/apt" "$@"
}
arm_apt update
(cd "$build/packages" && arm_apt download libc6 libgcc-s1 libstdc++6 zlib1g libexpat1 libffi8 \
    libssl3 libbz2-1.0 liblzma5 libuuid1 "python$version-minimal" "libpython$version-minimal" \
    "libpython$version-stdlib" "libpython$version-dev")
for package in "$build"/packages/*.deb; do dpkg-deb -x "$package" "$root"; done
"$python" -m pip install --quiet --disable-pip-version-check -c .ci/measured.txt \
    --only-binary :all: --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 \
    --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 \
    --python-version "$version" --target "$root/site" \
    numpy ml_dtypes hypothesis pytest pytest-xdist sybil

cmake -S . -B "$build/objects" -DCMAKE_BUILD_TYPE=Release -DTENSORSPLIT_WERROR=ON \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_CXX_FLAGS="-idirafter $root/usr/include" \
    -DPython_EXECUTABLE="$("$python" -c "import sys; print(sys.executable)")" \
    -DPython_INCLUDE_DIR="$root/usr/include/python$version" \
    -DTENSORSPLIT_NUMPY="$root/site/numpy/_core/include" >"$build/log"
cmake --build "$build/objects" -j 2 >>"$build/log" || { cat "$build/log"; exit 1; }
cp -R src/tensorsplit "$root/site/"
rm -f "$root/site/tensorsplit/native/"*.so
cp "$build/objects/"_kernel*.so "$root/site/tensorsplit/native/_kernel.so"

# What Python starts is emulated as well: it knows this script as itself.
emulated=$root/usr/bin/python
cat >"$emulated" <<END
#!/bin/sh
exec qemu-aarch64-static -L "$root" -0 "$emulated" "$emulated$version" "\$@"
END
chmod +x "$emulated"
export PYTHONPATH="$root/site" PYTHONDONTWRITEBYTECODE=1
"$emulated" -c "from tensorsplit import native; assert native.in_use == 'neon', native"
exec "$emulated" -m pytest tests/native/test_arguments.py tests/native/test_buffers.py \
    tests/native/test_fuzz.py tests/native/test_mixtures.py -m "not hypothesis" \
    -k "not temporal and not measured" -p no:cacheprovider \
    -n auto --maxprocesses 8 --max-worker-restart 0 "$@"
