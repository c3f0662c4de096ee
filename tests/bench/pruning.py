# SPDX-License-Identifier: Apache-2.0
"""What pruning half of a model's channels gives: the measured speed-up beside the ratio of MACs.

  pruning.py [MODEL] [--shape image=1x3x224x224] [--ratio 0.5] [--threads 2] [--rounds 7] [--json]

Both models are compiled by onednn in one process and run in turns; times are medians over the
rounds, each the mean of as many runs as fill half a second. pass: seconds of pruner.structured
over the graph, the least of three.
"""

import argparse
import json
import pathlib
import statistics
import time

import numpy as np
import tenon
import versus
from figures import timed

MODEL = versus.ROOT / ".cache/models/resnet50.onnx"
SECONDS = 0.5


def pruned(model: tenon.Model, ratio: float) -> tuple[tenon.Model, float]:
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        smaller = model.apply("pruner.structured", ratio=ratio)
        seconds.append(time.perf_counter() - began)
    return smaller, min(seconds)


def measure(model: tenon.Model, smaller: tenon.Model, inputs: dict, args) -> dict:
    plans = [one.compile(backend="onednn", threads=args.threads) for one in (model, smaller)]
    rounds = [
        [1e3 * timed(plan.run, inputs, SECONDS) for plan in plans] for _ in range(args.rounds + 1)
    ][1:]
    before, after = (statistics.median(times) for times in zip(*rounds))
    return {"ms": {"before": before, "after": after}, "speed-up": before / after}


def main() -> None:
    parser = argparse.ArgumentParser(prog="pruning.py", description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", type=pathlib.Path, default=MODEL)
    parser.add_argument("--shape", default="image=1x3x224x224", help="of the input, by name")
    parser.add_argument("--ratio", type=float, default=0.5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    name, _, sizes = args.shape.partition("=")
    shape = [int(size) for size in sizes.split("x")]
    inputs = {name: np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    model = tenon.load(args.model).apply("fusion.default")
    smaller, seconds = pruned(model, args.ratio)
    found = {"cpu": versus.cpu(), "threads": args.threads, "model": args.model.stem}
    found |= {"shape": shape, "ratio": args.ratio, "pass_s": seconds}
    found |= {key: smaller.report[key] for key in ("parameters", "macs")}
    found |= measure(model, smaller, inputs, args)
    if args.json:
        print(json.dumps(found))
        return
    times, macs, parameters = found["ms"], found["macs"], found["parameters"]
    print(f"{found['cpu']['model']}: {' '.join(found['cpu']['flags'])}; {args.threads} threads")
    print(f"{found['model']} {sizes}: {args.ratio:g} of the channels, pass {seconds:.2f} s")
    print(f"  parameters {parameters['before']:.4g} -> {parameters['after']:.4g}")
    print(f"  MACs       {macs['before']:.4g} -> {macs['after']:.4g}: {1 / macs['ratio']:.2f}x")
    speed = found["speed-up"]
    print(f"  ms         {times['before']:.2f} -> {times['after']:.2f}: {speed:.2f}x")


if __name__ == "__main__":
    main()
