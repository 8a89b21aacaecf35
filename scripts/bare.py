"""Checks an environment in which the package is installed without any extra.

Prints its packages and megabytes, the time of the import and of a first split, and what each
function and command that needs more says. ``python -I scripts/bare.py ENVIRONMENT/bin/tensorsplit``
"""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

TOOLS = {"pip", "setuptools", "wheel"}  # of the environment itself
NEEDED = {"numpy", "tensorsplit"}

TIMES = """
from time import perf_counter
begin = perf_counter()
import tensorsplit as ts
imported = perf_counter()
import numpy as np
x = np.arange(28).reshape(7, 4)
ready = perf_counter()
parts = ts.split(x, axis=0, num_outputs=3)
done = perf_counter()
assert [part.shape for part in parts] == [(3, 4), (3, 4), (1, 4)], parts
for what, seconds in [
    ("import tensorsplit", imported - begin),
    ("import numpy", ready - imported),
    ("first split", done - ready),
]:
    print(f"{what}: {1000 * seconds:.1f} ms")
"""

REFUSED = {
    "ts.check('m.onnx')": "models",
    "ts.convert('m.onnx', opset=18)": "models",
    "ts.infer_shapes('m.onnx')": "models",
    "ts.lower('m.onnx', target='openvino')": "models",
    "ts.run('m.onnx', {})": "models",
    "ts.session('m.onnx')": "models",
    "ts.verify('a.onnx', 'b.onnx')": "models",
    "ts.infer('onnx.Split-18', ('N',), num_outputs=2)": "models",
    "ts.openvino.extensions()": "openvino",
    "ts.torch.Split([1, 2])": "torch",
    "ts.files.split('a.zarr', 'out', [1, 1])": "files",
    "ts.files.split('a.npy', 'out', rules={})": "files",
}
"""Calls that need more than NumPy, and the extra that each has to name."""


def main(command: str) -> None:
    """Check and print everything; the process ends at the first thing that is wrong."""
    installed = {each.name: each for each in metadata.distributions() if each.name not in TOOLS}
    if set(installed) != NEEDED:
        sys.exit(f"installed are {sorted(installed)}, not {sorted(NEEDED)}")
    for name, found in sorted(installed.items()):
        print(f"{name} {found.version}: {_megabytes(found):.1f} MB")
    print(f"packages: {len(installed)}, {sum(map(_megabytes, installed.values())):.1f} MB in all")
    print(_output(sys.executable, "-I", "-c", TIMES), end="")
    for call, extra in REFUSED.items():
        program = f"import tensorsplit as ts\ntry: {call}\nexcept ts.SplitError as e: print(e)"
        _check(call, _output(sys.executable, "-I", "-c", program), extra)
    done = subprocess.run([command, "check", "m.onnx"], capture_output=True, text=True, check=False)
    if done.returncode != 2:
        sys.exit(f"the exit status is not 2: {done}")
    _check("tensorsplit check m.onnx", done.stderr, "cli")


def _check(what: str, line: str, extra: str) -> None:
    """Check that a line names the extra that something needs, and print it."""
    if not re.fullmatch(rf".*\[TS(711|602)\] .*pip install .*\[{extra}\].*\n", line):
        sys.exit(f"{what} does not name the extra {extra} in one line: {line!r}")
    print(f"{what}: {line}", end="")


def _output(*command: str) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def _megabytes(found: metadata.Distribution) -> float:
    paths = [Path(str(found.locate_file(each))) for each in found.files or ()]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


if __name__ == "__main__":
    main(sys.argv[1])
