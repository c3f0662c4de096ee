# SPDX-License-Identifier: Apache-2.0
"""From the start of a process to a model's first result, and what a second process adds.

  start.py MODEL [--precision fp32|bf16|int8] [--shape NAME=1x128]... [--threads N] [--rounds 9]
           [--only command,tenon,kept,onnxruntime,openvino] [--build build/release]

command: `tenon bench --rounds 1`; the others are Python processes. kept: with keep_packed, whose
files an uncounted first process has written. Rounds alternate between contestants. start: median
in ms of the wall time to the first result, and its range. second: MB that a process holds for
itself alone while another one with the same model runs.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import peer_inputs
import peers


def tenon_run(path: str, precision: str, threads: int, inputs, **options):
    import tenon

    plan = tenon.load(path).compile(
        backend="onednn", precision=precision, threads=threads, **options
    )
    return lambda: plan(**inputs)


def serve_one(args) -> int:
    """In a process of its own: a line when the first result is there, then waits for one."""
    inputs = dict(np.load(args.inputs))
    kept = {"keep_packed": True} if args.one == "kept" else {}
    make = {"tenon": tenon_run, "kept": tenon_run, **peers.ENGINES}[args.one]
    run = make(args.model, args.precision, args.threads, inputs, **kept)
    run()
    print("ready", flush=True)
    sys.stdin.readline()
    del run  # it holds the model until here
    return 0


class Process:
    """A contestant that has its first result, or has ended."""

    def __init__(self, command: list[str], waits: bool, environment: dict) -> None:
        begin = time.perf_counter()
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        if waits and self._process.stdout.readline() != "ready\n":
            raise SystemExit(f"{' '.join(command)}: failed")
        if not waits and self._process.wait() != 0:
            raise SystemExit(f"{' '.join(command)}: failed")
        self.ms = 1e3 * (time.perf_counter() - begin)

    def private_mb(self) -> float:
        lines = pathlib.Path(f"/proc/{self._process.pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("Private")) / 1024

    def end(self) -> None:
        self._process.communicate("\n")


def main() -> int:
    parser = peers.contest_arguments(
        __doc__.splitlines()[0], "command,tenon,kept,onnxruntime,openvino"
    )
    parser.add_argument("--rounds", type=int, default=9)
    args = parser.parse_args()
    if args.one:
        sys.path.insert(0, str(pathlib.Path(args.build) / "python"))
        return serve_one(args)
    with tempfile.TemporaryDirectory() as folder:
        return compare(args, pathlib.Path(folder))


def commands(args, inputs: pathlib.Path) -> dict[str, list[str]]:
    own = [sys.executable, __file__, *sys.argv[1:], "--inputs", str(inputs), "--one"]
    made = {engine: [*own, engine] for engine in args.only.split(",")}
    if "command" in made:
        shapes = [word for shape in args.shape for word in ("--shape", shape)]
        made["command"] = [f"{args.build}/bin/tenon", "bench", args.model, "--rounds", "1", *shapes]
        made["command"] += ["--precision", args.precision, "--threads", str(args.threads)]
    return made


def compare(args, folder: pathlib.Path) -> int:
    inputs = folder / "inputs.npz"
    shapes = peer_inputs.shapes_of(args.shape)
    np.savez(inputs, **peer_inputs.make(peers.declared(args.model), shapes, {}))
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    contestants = commands(args, inputs)
    times: dict[str, list[float]] = {name: [] for name in contestants}
    second = {}
    for name, command in contestants.items():  # uncounted: files of models and libraries are read
        processes = [Process(command, name != "command", environment) for _ in range(2)]
        if name != "command":
            second[name] = processes[1].private_mb()
        for process in processes:
            process.end()
    for _ in range(args.rounds):
        for name, command in contestants.items():
            process = Process(command, name != "command", environment)
            times[name].append(process.ms)
            process.end()
    print(f"{args.model}, {args.precision}, {args.threads} threads, {args.rounds} rounds")
    for name, ms in times.items():
        line = f"  {name:12} start {statistics.median(ms):6.0f} ms ({min(ms):.0f} to {max(ms):.0f})"
        print(line + (f"   second {second[name]:6.1f} MB" if name in second else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
