"""The adapter of onnxruntime-web: WebAssembly in Node.js, which finds the package by NODE_PATH.

A process of Node.js does all cases of a process of the suite, as starting WebAssembly takes long.
What makes WebAssembly trap ends it, and is seen as a crash.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from typing import IO, Any

import numpy as np

from tensorsplit.engines.adapters import Outputs
from tensorsplit.engines.messages import Unsupported

_PROGRAM = r"""
const ort = require('onnxruntime-web');
ort.env.wasm.numThreads = 1;
const options = {executionProviders: ['wasm'], logSeverityLevel: 4};
const array = {bool: Uint8Array, float16: Uint16Array, float32: Float32Array,
  float64: Float64Array, int8: Int8Array, int16: Int16Array, int32: Int32Array,
  int64: BigInt64Array, uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array,
  uint64: BigUint64Array};
function tensor([type, dims, data]) {
  if (type === 'string') return new ort.Tensor(type, data, dims);
  if (!array[type]) throw new Error(`unsupported data type: ${type}`);
  const bytes = Uint8Array.from(Buffer.from(data, 'base64'));
  return new ort.Tensor(type, new array[type](bytes.buffer), dims);
}
function plain({type, dims, data}) {
  if (type === 'string') return [type, dims, data];
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return [type, dims, bytes.toString('base64')];
}
async function answer({model, inputs, outputs}) {
  const session = await ort.InferenceSession.create(Buffer.from(model, 'base64'), options);
  try {
    const feeds = Object.entries(inputs).map(([name, value]) => [name, tensor(value)]);
    const found = await session.run(Object.fromEntries(feeds), outputs);
    return {found: outputs.map((name) => plain(found[name]))};
  } finally {
    await session.release();
  }
}
async function main() {
  for await (const line of require('node:readline').createInterface(process.stdin)) {
    const reply = await answer(JSON.parse(line)).catch((error) => {
      if (error instanceof WebAssembly.RuntimeError) {
        console.error(String(error));
        process.exit(1);
      }
      return {refusal: String(error.message ?? error)};
    });
    process.stdout.write(JSON.stringify(reply) + '\n');
  }
}
main();
"""


def run_onnxruntime_web(
    model: bytes, weights: bytes, inputs: Mapping[str, object], outputs: Sequence[str]
) -> Outputs:
    """Run in onnxruntime-web, on one thread."""
    del weights
    fed = {name: _to_node(value) for name, value in inputs.items()}
    call = {"model": base64.b64encode(model).decode(), "inputs": fed, "outputs": list(outputs)}
    process, calls, answers = _node()
    calls.write(f"{json.dumps(call)}\n".encode())
    calls.flush()
    line = answers.readline()
    if not line:
        status = process.wait()
        if status < 0:
            os.kill(os.getpid(), -status)
        os._exit(status)
    answer = json.loads(line)
    if "refusal" in answer:
        raise RuntimeError(answer["refusal"])
    return {name: _from_node(*value) for name, value in zip(outputs, answer["found"], strict=True)}


@cache
def _node() -> tuple[subprocess.Popen[bytes], IO[bytes], IO[bytes]]:
    """Start Node.js, once in this process; return it with the pipes of calls and answers."""
    process = subprocess.Popen(  # noqa: S603 - the engine
        ["node", "-e", _PROGRAM],  # noqa: S607 - the one that is installed
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    if process.stdin is None or process.stdout is None:  # they are pipes
        raise ValueError
    return process, process.stdin, process.stdout


def _to_node(value: object) -> list[Any]:
    """Return an array as element type, shape and data, which are texts or base64."""
    if not isinstance(value, np.ndarray):
        raise Unsupported("JavaScript takes neither sequences nor optionals")
    if value.dtype.kind in "OUST":
        return ["string", list(value.shape), [str(text) for text in value.reshape(-1)]]
    data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
    return [value.dtype.name, list(value.shape), data]


def _from_node(kind: str, shape: list[int], data: Any) -> Any:
    if kind == "string":
        return np.array(data, dtype=object).reshape(shape)
    return np.frombuffer(base64.b64decode(data), np.dtype(kind)).reshape(shape)
