# SPDX-License-Identifier: Apache-2.0
"""The largest batch whose training step fits into so much memory, by how values are kept.

  largest_batch.py [resnet50 bert unet] [--memory 4] [--threads 2] [--run] [--most 4096]

One process for each network and way. fp32: float32, all values kept for the backward pass; bf16:
mixed precision; recompute: autodiff.recompute by sqrt(n); compress: autodiff.compress; all: bf16
with recompute and compress behind it. planned: results, packed weights, parameters, what the
optimizer keeps, and the batch, as the plan has them. The largest batch is found by doubling and
bisection. activations: the arena at the smallest batch of `--at`, beside that of fp32.
--run takes two steps with the batch that was found and prints the most memory of the
process less what it had behind a small network's step.
"""

import argparse
import functools
import json
import os
import resource
import subprocess
import sys

import networks
import numpy as np
from contestant import arena_bytes, held_mb

WAYS = {
    "fp32": ("fp32", {}),
    "bf16": ("bf16", {}),
    "recompute": ("fp32", {"autodiff.recompute": {}}),
    "bf16 recompute": ("bf16", {"autodiff.recompute": {}}),
    "bf16 compress": ("bf16", {"autodiff.compress": {}}),
    "all": ("bf16", {"autodiff.recompute": {}, "autodiff.compress": {}}),
}
MADE = {
    "resnet50": lambda count: networks.resnet((3, 4, 6, 3), True, count, 224, 1000),
    "resnet18": lambda count: networks.resnet((2, 2, 2, 2), False, count, 32, 10),
    "bert": lambda count: networks.bert(count=count),
    "minilm": lambda count: networks.minilm(count=count),
    "gpt2": lambda count: networks.gpt2(count=count),
    "unet": lambda count: networks.unet(count=count),
}


def step_of(network: str, way: str, count: int, threads: int):
    import tenon_ops

    precision, joint = WAYS[way]
    made = MADE[network](count)
    step = tenon_ops.make_step(made, "tenon", precision, threads, joint)
    batch, running = made.batch(np.random.default_rng(0)), made.weights.running
    made.weights.trained.clear()
    return step, batch, running, precision


def planned(network: str, way: str, threads: int, count: int) -> tuple[int, int]:
    """Bytes of the arena, and of all."""
    step, batch, running, precision = step_of(network, way, count, threads)
    model, _ = step.trained.trace(running, *batch)
    plan = model.compile(backend="onednn", precision=precision, threads=threads)
    plan.prepare(*(np.zeros(port.shape, port.dtype) for port in model.inputs))
    about = plan.describe()
    parts = about["partitions"]
    arena = arena_bytes(about)
    kept = sum(p.get("packed_bytes", 0) for p in parts)
    kept += sum(np.dtype(s.dtype).itemsize * int(np.prod(s.shape)) for s in model.states)
    return arena, arena + kept + sum(array.nbytes for array in batch)


def largest(fits, most: int) -> int:
    if not fits(1):
        return 0
    low = 1
    while low < most and fits(2 * low):
        low *= 2
    high = 2 * low
    while high - low > max(1, low // 64):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def one(args) -> dict:
    network, way = args.one
    found = functools.cache(functools.partial(planned, network, way, args.threads))
    count = largest(lambda n: found(n)[1] <= args.memory * 2**30, args.most)
    out = {"batch": count, "planned": found(count)[1] if count else 0, "arena": found(args.at)[0]}
    return out


def run(args) -> dict:
    import tenon_ops

    network, way = args.one
    small = networks.mlp((8, 8, 2), 4)  # loads the plugins, which are no part of a plan
    tenon_ops.make_step(small, "tenon", WAYS[way][0], args.threads)(
        *small.batch(np.random.default_rng(0))
    )
    before = held_mb()
    step, batch, _, _ = step_of(network, way, args.run_batch, args.threads)
    losses = [step(*batch) for _ in range(2)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"peak_mb": peak - before, "losses": losses}


def child(network: str, way: str, more: list[str]) -> dict:
    command = [sys.executable, *sys.argv, "--one", network, way, *more]
    # Arrays of this script that were freed would stay in malloc's heap, beside the plan's memory.
    env = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(2**20)}
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode != 0:
        return {"failed": (done.stderr.strip().splitlines() or ["no message"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", default=["resnet50", "bert", "unet"])
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--memory", type=float, default=4, help="GiB")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--most", type=int, default=4096, help="no batch above this is tried")
    parser.add_argument("--at", type=int, default=4, help="batch of the column activations")
    parser.add_argument("--run", action="store_true", help="two steps with the batch found")
    parser.add_argument("--one", nargs=2, help="this network and way, in this process")
    parser.add_argument("--run-batch", type=int, default=0)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(run(args) if args.run_batch else one(args)))
        return 0
    print("network   kept            batch  of fp32's  planned MB  activations  of fp32's", end="")
    print("  peak MB" if args.run else "")
    for network in args.networks:
        base = None
        for way in args.ways.split(","):
            made = child(network, way, [])
            if "failed" in made:
                print(f"{network:9} {way:15} failed: {made['failed']}", flush=True)
                continue
            base = base or made
            line = f"{network:9} {way:15} {made['batch']:5} {made['batch'] / base['batch']:9.2f}x"
            line += f" {made['planned'] / 2**20:11.0f} {made['arena'] / 2**20:12.1f}"
            line += f" {made['arena'] / base['arena']:9.2f}x"
            if args.run:
                ran = child(network, way, ["--run-batch", str(made["batch"])])
                if "failed" in ran:
                    line += f" {ran['failed']}"
                else:
                    line += (
                        f" {ran['peak_mb']:8.0f} ({ran['peak_mb'] * 2**20 / made['planned']:.3f})"
                    )
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
