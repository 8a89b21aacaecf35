#!/bin/sh
# Build the kernel with AddressSanitizer and UndefinedBehaviorSanitizer, or with ThreadSanitizer if
# the first argument is "threads", and run its tests, those of buffers and pools, and the fuzzing
# of arrays with four threads, all by Python's own calls. Other arguments go to pytest. PYTHON is the
# interpreter to use, with the package's requirements and pytest; cmake comes from PATH.
# FUZZ_CASES says how many cases each thread fuzzes.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
python=$(command -v "$python")

kind=memory
if [ "${1:-}" = threads ]; then
    kind=threads
    shift
fi
build=build/sanitize-$kind
case $kind in
memory)
    flag=TENSORSPLIT_SANITIZE library=libasan.so name='ASan, UBSan'
    flags="-fsanitize=address,undefined -fno-sanitize-recover=all"
    ;;
threads)
    flag=TENSORSPLIT_SANITIZE_THREADS library=libtsan.so name=TSan
    flags=-fsanitize=thread
    set -- -k "not fork" "$@" # after which it lets no new threads start
    ;;
esac

rm -rf "$build"
mkdir -p "$build"
cmake -S . -B "$build/objects" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DPython_EXECUTABLE="$python" \
    -D$flag=ON -DTENSORSPLIT_WERROR=ON >"$build.log"
cmake --build "$build/objects" -j 2 >>"$build.log" || { cat "$build.log"; exit 1; }
cp -R src/tensorsplit "$build/tensorsplit"
rm -f "$build/tensorsplit/native/"*.so
cmake --install "$build/objects" --prefix "$build" >>"$build.log"

# The interpreter is no instrumented program, so the library comes first; what it leaves to the end
# of the process is no leak of ours; and so does C++'s own, or a sanitizer could not let exceptions
# through. Halting is for errors, not for allocations that can't be had.
export LD_PRELOAD="$(${CXX:-c++} -print-file-name=$library):$(${CXX:-c++} -print-file-name=libstdc++.so)"
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1
export PYTHONPATH="$build" TENSORSPLIT_NATIVE=1 PYTHONMALLOC=malloc
export CXXFLAGS="$flags" # of the programs that the tests compile
"$python" -m pytest tests/native tests/arrays/test_cache.py tests/arrays/test_pool.py \
    tests/arrays/test_out.py -p no:cacheprovider "$@"
exec "$python" -m tests.fuzz arrays --threads 4 --cases "${FUZZ_CASES:-250}" --sanitized "$name"
