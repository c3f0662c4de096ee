# SPDX-License-Identifier: Apache-2.0
"""One network in one engine in one process: times of its training step as one line of JSON.

  contestant.py mnist|resnet18|resnet50|mobilenet|minilm --engine tenon
                [or eager, channels_last, compile, ...] [--precision fp32|bf16] [--threads 2]
                [--seconds 5]

first_s: from the start of the process to the end of the first step. peak_mb: the most memory that
the process ever held, less what it held after its imports; the weights that the network was drawn
with are let go before the first step. losses: of the first steps, so that a
reader sees that all engines train the same network.
"""

import argparse
import json
import os
import resource
import sys
import time


def seconds_alive() -> float:
    fields = open("/proc/self/stat").read().rsplit(")", 1)[1].split()
    started = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return float(open("/proc/uptime").read().split()[0]) - started


def held_mb() -> float:
    pages = int(open("/proc/self/statm").read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(step, batch, seconds: float, least: int):
    times, losses = [], []
    end = time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        begin = time.perf_counter()
        losses.append(step(*batch))
        times.append(1e3 * (time.perf_counter() - begin))
    return times, losses


def arena_bytes(plan: dict) -> int:
    """Of a plan's description: between its partitions, and of the largest of these."""
    parts = plan.get("partitions", [])
    own = max((p.get("arena_bytes", p.get("workspace_bytes", 0)) for p in parts), default=0)
    return plan.get("arena_bytes", 0) + own


def check_precision(plan: dict, asked: str) -> None:
    """A CPU without bf16 keeps fp32, which is no figure of bf16."""
    for part in plan.get("partitions", []):
        made = part.get("precision", asked)
        if made != asked:
            sys.exit(f"expected a step in {asked}, got one in {made}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network")
    parser.add_argument("--engine", default="tenon")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--steps", type=int, default=3, help="at least so many are timed")
    parser.add_argument("--warmup", type=int, default=2, help="steps before, the first included")
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    if args.engine == "tenon":
        import tenon_ops as engine
    else:
        import torch_ops as engine
    import networks
    import numpy as np

    imported = held_mb()
    network = networks.NETWORKS[args.network]()
    batch = network.batch(np.random.default_rng(0))
    step = engine.make_step(network, args.engine, args.precision, args.threads)
    network.weights.trained.clear()  # no engine's memory: the step has them
    losses = [step(*batch)]
    first = seconds_alive()
    losses += [step(*batch) for _ in range(args.warmup - 1)]
    times, more = measure(step, batch, args.seconds, args.steps)
    losses += more
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    result = {
        "engine": args.engine,
        "median_ms": float(np.median(times)),
        "min_ms": min(times),
        "steps": len(times),
        "first_s": first,
        "peak_mb": peak - imported,
        "losses": losses[:4],
    }
    if args.engine == "tenon":
        about = step.trained.describe()
        check_precision(about, args.precision)
        result["fallbacks"] = [node["node"] for node in about.get("fallback_nodes", [])]
        result["arena_mb"] = arena_bytes(about) / 2**20
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
