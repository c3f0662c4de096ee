# SPDX-License-Identifier: Apache-2.0
"""Models with implementations chosen by rules and by measured times (`choose=measured`).

.venv/bin/python tests/bench/onednn/measured.py MODEL.onnx[:NAME=AxB[,...]] ...
    [--precision fp32] [--threads 2] [--slices 15] [--choose-ms 500]

A row has the ms that compiling takes by rules, while it measures, and with what was kept; then the
median ms of runs by rules and by measured times, how many times as fast the latter are with the
95 % interval of the paired slices, and how many of the decisions differ from the rules'. With one
thread all are CPU times. Choices are kept in a folder of this run alone.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import tenon
from figures import paired_ratio

SLICE_SECONDS = 0.12
COMPILES = 3


def feeds_of(model: tenon.Model, shapes: dict[str, list[int]]) -> dict[str, np.ndarray]:
    """Small random numbers; integers are zeros."""
    random = np.random.default_rng(0)
    made = {}
    for port in model.inputs:
        shape = shapes.get(port.name) or [
            extent if isinstance(extent, int) and extent > 0 else 1 for extent in port.shape
        ]
        dtype = np.dtype(port.dtype)
        is_float = dtype.kind == "f"
        made[port.name] = (random.random(shape) if is_float else np.zeros(shape)).astype(dtype)
    return made


def clock_of(options: dict) -> Callable[[], float]:
    return time.process_time if options["threads"] == 1 else time.perf_counter


def compiled(path: str, feeds: dict, options: dict) -> tuple[float, tenon.Plan]:
    """With its first run, for which it is compiled; the time is that of compiling alone."""
    plan = tenon.load(path).compile(backend="onednn", **options)
    clock = clock_of(options)
    begin = clock()
    plan(**feeds)
    first = clock()
    plan(**feeds)
    return 1e3 * ((first - begin) - (clock() - first)), plan


def fastest(path: str, feeds: dict, options: dict) -> tuple[float, tenon.Plan]:
    """The least time of a few compiles: each is done once and meets whatever else runs."""
    tries = [compiled(path, feeds, options) for _ in range(COMPILES)]
    return min(ms for ms, _ in tries), tries[-1][1]


def changed(plan: tenon.Plan) -> tuple[int, int]:
    """Decisions that are not the rules', whose implementation a key names first; and all."""
    lines = [line for part in plan.describe()["partitions"] for line in part.get("choices", [])]
    fields = [line.split("#") for line in lines]
    ruled = [key.partition(" | ")[0].partition(" (")[0] for key, *_ in fields]
    return sum(one != chosen for one, (_, chosen, *_) in zip(ruled, fields)), len(lines)


def slices(
    plans: list[tenon.Plan], feeds: dict, count: int, clock: Callable[[], float]
) -> list[list[list[float]]]:
    """ms, by plan and slice; plans take turns."""
    times: list[list[list[float]]] = [[] for _ in plans]
    for i in range(count):
        order = range(len(plans)) if i % 2 == 0 else reversed(range(len(plans)))
        for which in order:
            plan, runs = plans[which], []
            end = time.perf_counter() + SLICE_SECONDS
            while len(runs) < 3 or time.perf_counter() < end:
                begin = clock()
                plan(**feeds)
                runs.append(1e3 * (clock() - begin))
            times[which].append(runs)
    return times


def row(model: str, options: dict, chosen: dict, count: int) -> str:
    path, _, given = model.partition(":")
    shapes = {}
    for each in filter(None, given.split(",")):
        name, _, extents = each.partition("=")
        shapes[name] = [int(extent) for extent in extents.split("x")]
    feeds = feeds_of(tenon.load(path), shapes)
    compiled(path, feeds, options)  # what a process does once
    by_rules, ruled = fastest(path, feeds, options)
    measuring, _ = compiled(path, feeds, {**options, **chosen})
    kept, measured = fastest(path, feeds, {**options, **chosen})
    times = slices([ruled, measured], feeds, count, clock_of(options))
    old, new = (statistics.median(x for one in each for x in one) for each in times)
    ratio, low, high = paired_ratio(*times)
    n_changed, n_all = changed(measured)
    return (
        f"{Path(path).stem:22} {given[-24:]:24} {by_rules:7.0f} {measuring:7.0f} {kept:7.0f}"
        f" {old:9.3f} {new:9.3f}  {ratio:.3f} [{low:.3f}, {high:.3f}]  {n_changed} of {n_all}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+")
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--slices", type=int, default=15)
    parser.add_argument("--choose-ms", type=int, default=500)
    given = parser.parse_args()
    options = {"precision": given.precision, "threads": given.threads}
    chosen = {"choose": "measured", "choose_ms": given.choose_ms}
    print(f"{'model':47} {'compile: rules, measuring, kept':>23}  {'rules':>8} {'measured':>9}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = folder
        for model in given.models:
            print(row(model, options, chosen, given.slices), flush=True)


if __name__ == "__main__":
    main()
