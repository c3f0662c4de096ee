# SPDX-License-Identifier: Apache-2.0
"""Text from a decoder whose cache of keys and values grows: tokens per second beside ONNX Runtime.

  decoding.py MODEL [--prompt 16] [--steps 200] [--past past]
              [--threads N] [--rounds 5] [--before BUILD]

MODEL (decoder_model.py writes one) has the inputs input_ids and attention_mask, an input for each
cache (those whose name begins with --past) and logits as its first output; the other outputs are
the caches of the next step, in the order of the inputs. Where caches grow, each step is of a length
that the engine has not met; where they have a fixed number of rows, the mask says how many are
filled. One process for each engine and round, in turn; --before is the build tree of another
Tenon. `again` is the median of steps that are repeated, with shapes that are known by then.
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

ROOT = pathlib.Path(__file__).resolve().parents[2]


def tenon_runner(path: str, threads: int):
    import tenon

    plan = tenon.load(path).compile(backend="onednn", threads=threads)
    return lambda inputs: [np.asarray(one) for one in plan.run(inputs)]


def onnxruntime_runner(path: str, threads: int):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    return lambda inputs: session.run(None, inputs)


RUNNERS = {
    "tenon": tenon_runner,
    "before": tenon_runner,
    "onnxruntime": onnxruntime_runner,
}


class Decoder:
    """Feeds each step what the one before has made."""

    def __init__(self, args, run):
        declared = peers.declared(args.model)
        caches = {name: dims for name, (_, dims) in declared.items() if name.startswith(args.past)}
        self.run = run
        self.room = declared["attention_mask"][1][1]
        self.caches = {
            name: np.zeros([1, *(dim or 0 for dim in dims[1:])], "f")
            for name, dims in caches.items()
        }
        self.length = 0

    def inputs(self, ids):
        filled = self.length + ids.shape[1]
        mask = (np.arange(self.room or filled) < filled).astype("i8")[None]
        return {"input_ids": ids, "attention_mask": mask, **self.caches}

    def step(self, ids):
        logits, *caches = self.run(self.inputs(ids))
        self.length += ids.shape[1]
        self.caches = dict(zip(self.caches, caches, strict=True))
        return logits[:, -1].argmax(-1)[:, None]


def decode(args) -> int:
    """In a process of its own: prints the milliseconds of each step."""
    decoder = Decoder(args, RUNNERS[args.one](args.model, args.threads))
    ids = decoder.step(np.random.default_rng(0).integers(0, 100, (1, args.prompt)))
    times, again = [], []
    for at in range(args.steps):
        inputs, before = decoder.inputs(ids), time.perf_counter()
        ids = decoder.step(ids)
        times.append(1e3 * (time.perf_counter() - before))
        if at % 10 == 0:
            before = time.perf_counter()
            decoder.run(inputs)
            again.append(1e3 * (time.perf_counter() - before))
    print(json.dumps({"times": times, "again": statistics.median(again)}))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--prompt", type=int, default=16)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--past", default="past")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    parser.add_argument("--before", help="the build tree of another Tenon")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        build = args.before if args.one == "before" else args.build
        sys.path.insert(0, str(pathlib.Path(build) / "python"))
        return decode(args)
    engines = ["tenon", *(["before"] if args.before else []), "onnxruntime"]
    rounds = {engine: [] for engine in engines}
    for _ in range(args.rounds):
        for engine in engines:
            command = [sys.executable, __file__, *sys.argv[1:], "--one", engine]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rounds[engine].append(json.loads(done.stdout.splitlines()[-1]))
    print(f"{args.model}: a prompt of {args.prompt}, {args.steps} steps, {args.threads} threads")
    print(f"{'':12} {'tokens/s':>9} {'step ms':>8} {'again ms':>9}  steps: its time over tenon's")
    ours = [one["times"] for one in rounds["tenon"]]
    for engine, all_ in rounds.items():
        rate = statistics.median(1e3 * args.steps / sum(one["times"]) for one in all_)
        step = statistics.median(each for one in all_ for each in one["times"])
        again = statistics.median(one["again"] for one in all_)
        ratio, low, high = figures.paired_ratio([one["times"] for one in all_], ours)
        over = "" if engine == "tenon" else f"{ratio:.2f} [{low:.2f}, {high:.2f}]"
        print(f"{engine:12} {rate:9.1f} {step:8.2f} {again:9.2f}  {over}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
