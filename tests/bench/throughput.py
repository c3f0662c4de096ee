# SPDX-License-Identifier: Apache-2.0
"""Many requests at once on one loaded model: requests a second, beside the peers.

  throughput.py MODEL --shape NAME=1x3x224x224 [--shape ...] [--precision fp32|bf16]
                [--streams N] [--seconds 3] [--rounds 5] [--only tenon,openvino,onnxruntime]

Each engine has one process a round, in turn: `streams` callers (default: as many as CPUs) ask again
and again for `seconds`. Tenon and ONNX Runtime: a plan or session with the CPUs divided among the
callers. OpenVINO: compiled with PERFORMANCE_HINT=THROUGHPUT, which chooses its own number of
streams; its callers are an AsyncInferQueue of as many requests as it asks for. The ratio is of
requests a second, Tenon over the peer, over paired rounds with its 95 % interval.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

import figures
import peer_inputs
import peers

ROOT = pathlib.Path(__file__).resolve().parents[2]


def ask_from_threads(run, streams: int, seconds: float) -> dict:
    """run() of all threads until the time is over."""
    for _ in range(3):
        run()
    times: list[list[float]] = [[] for _ in range(streams)]
    begin = time.perf_counter()

    def caller(own: list[float]) -> None:
        while (start := time.perf_counter()) < begin + seconds:
            run()
            own.append(time.perf_counter() - start)

    threads = [threading.Thread(target=caller, args=(own,)) for own in times]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    all_ = [each for own in times for each in own]
    return {"rate": len(all_) / (time.perf_counter() - begin), "ms": 1e3 * statistics.median(all_)}


def tenon_rate(args, inputs) -> dict:
    sys.path.insert(0, str(pathlib.Path(args.build) / "python"))
    import tenon

    threads = max(1, args.cpus // args.streams)
    model = tenon.load(args.model)
    plan = model.compile(backend="onednn", precision=args.precision, threads=threads)
    return ask_from_threads(lambda: plan(**inputs), args.streams, args.seconds)


def onnxruntime_rate(args, inputs) -> dict:
    threads = max(1, args.cpus // args.streams)
    run = peers.onnxruntime_run(args.model, args.precision, threads, inputs)
    return ask_from_threads(run, args.streams, args.seconds)


def openvino_rate(args, inputs) -> dict:
    import openvino

    core = openvino.Core()
    model = core.read_model(args.model)
    model.reshape({name: list(array.shape) for name, array in inputs.items()})
    properties = peers.openvino_properties(args.precision, args.cpus)
    del properties["NUM_STREAMS"]  # what the hint is for
    properties["PERFORMANCE_HINT"] = "THROUGHPUT"
    queue = openvino.AsyncInferQueue(core.compile_model(model, "CPU", properties))
    started: dict[int, float] = {}
    times: list[float] = []
    queue.set_callback(lambda _, key: times.append(time.perf_counter() - started.pop(key)))
    for phase in (0.3, args.seconds):  # the first warms up
        times.clear()
        begin, key = time.perf_counter(), 0
        while time.perf_counter() < begin + phase:
            queue.get_idle_request_id()  # waits for one
            started[key] = time.perf_counter()
            queue.start_async(inputs, key)
            key += 1
        queue.wait_all()
        rate = key / (time.perf_counter() - begin)
    return {"rate": rate, "ms": 1e3 * statistics.median(times)}


ENGINES = {"tenon": tenon_rate, "openvino": openvino_rate, "onnxruntime": onnxruntime_rate}


def one_round(engine: str) -> dict | None:
    command = [sys.executable, __file__, *sys.argv[1:], "--one", engine]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1])
    print(f"{engine}: {done.stderr.strip().splitlines()[-1]}")
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=1x3x224x224")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--cpus", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--streams", type=int, default=0, help="default: as many as CPUs")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(ENGINES))
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.streams = args.streams or args.cpus
    if args.one:
        shapes = peer_inputs.shapes_of(args.shape)
        inputs = peer_inputs.make(peers.declared(args.model), shapes, {})
        print(json.dumps(ENGINES[args.one](args, inputs)))
        return 0
    rounds: dict[str, list[dict | None]] = {engine: [] for engine in args.only.split(",")}
    for _ in range(args.rounds):
        for engine, kept in rounds.items():
            kept.append(one_round(engine))
    print(f"{args.model}, {args.precision}, {args.streams} streams on {args.cpus} CPUs")
    print(f"{'':12} {'a second':>9} {'median ms':>10}  Tenon over it")
    ours = rounds.get("tenon", [])
    for engine, kept in rounds.items():
        done = [one for one in kept if one]
        if not done:
            continue
        rate = statistics.median(one["rate"] for one in done)
        ms = statistics.median(one["ms"] for one in done)
        pairs = [(a, b) for a, b in zip(kept, ours) if a and b and engine != "tenon"]
        beside = ""
        if pairs:
            theirs, own = ([[1 / one["rate"]] for one in side] for side in zip(*pairs))
            mean, low, high = figures.paired_ratio(theirs, own)
            beside = f"{mean:.2f} [{low:.2f}, {high:.2f}]"
        print(f"{engine:12} {rate:9.1f} {ms:10.2f}  {beside}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
