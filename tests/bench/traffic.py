# SPDX-License-Identifier: Apache-2.0
"""Requests of random lengths, one after another, in Tenon and its peers: median, percentile.

  traffic.py MODEL --axis NAME:1 [--axis NAME:1]... [--longest 512] [--requests 200]
             [--precision fp32|bf16] [--threads N] [--rounds 3] [--only tenon,openvino]

MODEL has inputs of integers whose given axis is open. One process for each engine and round, which
loads the model with that axis open, as a server does; the same lengths in the same order for all.
Times include what an engine does for a length that it has not met. `first` is the time from the
call of load to the first answer.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

import figures
import numpy as np
import peers

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def tenon_server(path: str, precision: str, threads: int):
    import tenon

    plan = tenon.load(path).compile(backend="onednn", precision=precision, threads=threads)
    return lambda inputs: plan(**inputs)


def openvino_server(path: str, precision: str, threads: int):
    import openvino

    properties = peers.openvino_properties(precision, threads)
    core = openvino.Core()
    request = core.compile_model(core.read_model(path), "CPU", properties).create_infer_request()
    return request.infer


def onnxruntime_server(path: str, precision: str, threads: int):
    if precision != "fp32":
        raise ValueError("onnxruntime: precision: expected fp32 (none other on x86)")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    return lambda inputs: session.run(None, inputs)


SERVERS = {"tenon": tenon_server, "openvino": openvino_server, "onnxruntime": onnxruntime_server}


def requests(args) -> list[dict[str, np.ndarray]]:
    """Token ids by length; a value of 1 serves as id, mask and type alike."""
    lengths = np.random.default_rng(args.seed).integers(1, args.longest + 1, args.requests)
    axes = dict(text.split(":") for text in args.axis)
    declared = peers.declared(args.model)
    out = []
    for length in lengths:
        one = {}
        for name, (dtype, dims) in declared.items():
            shape = [1 if extent is None else extent for extent in dims]
            shape[int(axes[name])] = int(length)
            one[name] = np.ones(shape, dtype)
        out.append(one)
    return out


def serve(args) -> int:
    """In a process of its own: prints the milliseconds of each request."""
    given = requests(args)
    __import__(args.one)
    begin = time.perf_counter()
    server = SERVERS[args.one](args.model, args.precision, args.threads)
    times, first = [], None
    for inputs in given:
        start = time.perf_counter()
        server(inputs)
        end = time.perf_counter()
        first = first or 1e3 * (end - begin)
        times.append(1e3 * (end - start))
    print(json.dumps({"first": first, "times": times}))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--axis", action="append", required=True, metavar="NAME:1")
    parser.add_argument("--longest", type=int, default=512)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="tenon,openvino,onnxruntime")
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        sys.path.insert(0, str(pathlib.Path(args.build) / "python"))
        return serve(args)
    engines = args.only.split(",")
    rounds = {engine: [] for engine in engines}
    for number in range(args.rounds):
        for engine in engines:
            command = [sys.executable, __file__, *sys.argv[1:], "--one", engine]
            done = subprocess.run(
                [*command, "--seed", str(number)], capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                print(f"{engine}: {done.stderr.strip().splitlines()[-1]}")
                continue
            rounds[engine].append(json.loads(done.stdout.splitlines()[-1]))
    print(f"{args.model}, {args.precision}, {args.requests} lengths to {args.longest}")
    print(f"{'':12} {'first':>8} {'median':>8} {'p99':>8} {'total':>8}  ms")
    for engine, all_ in rounds.items():
        if not all_:
            continue
        times = [each for one in all_ for each in one["times"]]
        total = statistics.median(sum(one["times"]) for one in all_)
        first = statistics.median(one["first"] for one in all_)
        p99 = figures.percentile(times, 0.99)
        print(f"{engine:12} {first:8.1f} {statistics.median(times):8.2f} {p99:8.2f} {total:8.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
