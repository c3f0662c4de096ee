# SPDX-License-Identifier: Apache-2.0
"""What the frame itself costs: calls, empty runs, listing, compiling, and a plan's memory.

  figures.py [--build build/release] [--models .cache/models] [--threads 2] [--rounds 5] [--json]

Prints each figure beside its limit. Times are the least of the rounds, one process each. The arena
holds values and the kernels' scratch; its lower bound is the most bytes that are alive at once.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[3]
TOKENS = ("input_ids", "attention_mask", "token_type_ids")
MODELS = {
    "resnet50": ["--shape", "image=1x3x224x224"],
    "mobilenet_v2": ["--shape", "image=1x3x224x224"],
    "minilm": [
        f"--shape={name}=1x128" for name in ("input_ids", "attention_mask", "token_type_ids")
    ],
    "ppocr_rec": ["--shape", "x=1x3x48x320"],
}
COMPILE_MS, LIST_MS, CALL_NS, RUN_NS, ARENA = 300.0, 100.0, 100.0, 2000.0, 1.3


class Figure(NamedTuple):
    """One row of the table."""

    what: str
    value: float
    unit: str
    limit: float | None
    note: str = ""


def output(command: list) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"{command[0]}: exit code {done.returncode}")
    return done.stdout


def listing_ms(tenon: pathlib.Path, rounds: int) -> float:
    best = float("inf")
    for _ in range(max(rounds, 10)):
        begin = time.perf_counter()
        output([tenon, "plugin", "list"])
        best = min(best, (time.perf_counter() - begin) * 1e3)
    return best


def calls(build: pathlib.Path) -> list[Figure]:
    report = json.loads(output([build / "bin" / "bench_calls", "onednn"]))
    return [
        Figure("empty call across the C API", report["call_ns"], "ns", CALL_NS),
        Figure("object made and freed across the C API", report["make_and_free_ns"], "ns", None),
        Figure("run of an empty plan", report["empty_run_ns"], "ns", RUN_NS),
        Figure("run of a plan of one node", report["one_node_run_ns"], "ns", None),
    ]


def model_figures(name: str, args) -> list[Figure]:
    path = args.models / f"{name}.onnx"
    if not path.exists():
        return [Figure(f"{name}: not there, see scripts/fetch --list", float("nan"), "", None)]
    command = [args.build / "bin" / "tenon", "bench", path, *MODELS[name], "--backend", "onednn"]
    command += ["--threads", args.threads, "--rounds", 3, "--json"]
    report = [json.loads(output(command)) for _ in range(args.rounds)]
    limit = COMPILE_MS if name == "resnet50" else None
    out = [Figure(f"{name}: compile", min(t["compile_ms"] for t in report), "ms", limit)]
    arena, alive, packed = (
        report[0][key] / 2**20 for key in ("arena_bytes", "arena_lower_bound_bytes", "packed_bytes")
    )
    resident = min(each["peak_rss_mb"] for each in report)
    note = (
        f"{arena:.2f} MB, {alive:.2f} alive; packed weights {packed:.1f}, resident {resident:.0f}"
    )
    out.append(Figure(f"{name}: arena over its lower bound", arena / alive, "x", ARENA, note))
    return out


def show(figures: list[Figure]) -> None:
    for row in figures:
        limit = f"(limit {row.limit:g})" if row.limit is not None else ""
        late = " TOO MUCH" if row.limit is not None and not row.value <= row.limit else ""
        print(f"{row.what:42}{row.value:10.2f} {row.unit:3}{limit:14}{late}  {row.note}".rstrip())


def main(argv=None) -> int:
    parser = argparse.ArgumentParser(prog="figures.py", description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / ".cache" / "models")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args(argv)
    try:
        found = calls(args.build)
        listed = listing_ms(args.build / "bin" / "tenon", args.rounds)
        found.append(Figure("tenon plugin list", listed, "ms", LIST_MS))
        for name in MODELS:
            found += model_figures(name, args)
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        print(f"figures: {error}", file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps([row._asdict() for row in found]))
    else:
        show(found)
    return 0 if all(row.limit is None or row.value <= row.limit for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
