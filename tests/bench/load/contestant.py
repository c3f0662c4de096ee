# SPDX-License-Identifier: Apache-2.0
"""One model in one engine in one process, which runs it for a while each time it gets a line.

contestant.py MODEL --engine tenon|onnxruntime|openvino [--precision fp32|bf16|int8]
              [--shape NAME=1x3x224x224]... [--input NAME=FILE.npy]... [--threads N]
              [--beside torch|numpy] [--from c --build build/release]

Prints "ready" once it has compiled and run a few times. Then each line "SECONDS" on its input is
answered by a line of JSON: the milliseconds of each run. --beside starts another library's own
threads in the process first, as a user's program has them. --from c lets the C program of a build
(contestant.c) do all of it, on inputs that are made here.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import peer_inputs  # noqa: E402
import peers  # noqa: E402


def tenon_run(path: str, precision: str, threads: int, inputs):
    import tenon

    plan = tenon.load(path).compile(backend="onednn", precision=precision, threads=threads)
    return lambda: plan(**inputs)


def start_threads(library: str) -> None:
    """A product that the library runs on several threads of its own."""
    if library == "torch":
        import torch

        torch.ones(600, 600) @ torch.ones(600, 600)
    else:
        np.ones((600, 600), "float32") @ np.ones((600, 600), "float32")


# DLPack's codes of element types, by NumPy's.
KINDS = {"i": 0, "u": 1, "f": 2, "b": 6}


def run_c(args, inputs) -> int:
    """The C program of the build answers in this one's place."""
    options = {"backend": "onednn", "precision": args.precision, "threads": args.threads}
    program = pathlib.Path(args.build) / "bin" / "bench_contestant"
    with tempfile.TemporaryDirectory(prefix="tenon_contestant_") as folder:
        given = []
        for array in inputs.values():
            file = pathlib.Path(folder) / f"{len(given)}.bin"
            array.tofile(file)
            kind = f"{KINDS[array.dtype.kind]}:{8 * array.dtype.itemsize}"
            given.append(f"{kind}:{'x'.join(map(str, array.shape))}:{file}")
        return subprocess.call([program, args.model, json.dumps(options), *given])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--engine", choices=("tenon", *peers.ENGINES), required=True)
    parser.add_argument("--precision", choices=("fp32", "bf16", "int8"), default="fp32")
    parser.add_argument("--shape", action="append", default=[])
    parser.add_argument("--input", action="append", default=[])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--least", type=int, default=3, help="runs in each slice")
    parser.add_argument("--beside", choices=("torch", "numpy"))
    parser.add_argument("--from", dest="language", choices=("python", "c"), default="python")
    parser.add_argument("--build", default="build/release", help="with --from c")
    args = parser.parse_args()
    if args.beside:
        start_threads(args.beside)
    shapes = peer_inputs.shapes_of(args.shape)
    given = peer_inputs.arrays_of(args.input)
    inputs = peer_inputs.make(peers.declared(args.model), shapes, given)
    if args.language == "c" and args.engine == "tenon":
        return run_c(args, inputs)
    make = {"tenon": tenon_run, **peers.ENGINES}[args.engine]
    run = make(args.model, args.precision, args.threads, inputs)
    peers.measure(run, 0, 0.2, 3)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(peers.measure(run, 0, float(line), args.least)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
