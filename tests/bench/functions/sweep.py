# SPDX-License-Identifier: Apache-2.0
"""Single functions at several sizes, axes and types beside NumPy and JAX: where Tenon is slow.

  tests/bench/functions/sweep.py [--only TEXT]... [--sizes 1,100,10000,1000000] [--types f,d,...]
                                 [--peers numpy,jax] [--above 2] [--build build/release]

For each function: CPU time of the shortest run, in turns, in one process, of `tenon.jit`, of
NumPy and of `jax.jit`. Runs of Tenon are compared after the cost of a compiled call itself is
taken off. Printed are the rows where Tenon takes more than --above times as long as a peer
(all rows with --above 0), the slowest first. --eager: beside NumPy, without `jit`.
Start it with OMP_NUM_THREADS=1 and on one CPU (`taskset -c 0`).
"""

import argparse
import pathlib
import sys
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE))

TURN_S = 2e-3
TURNS = 5


def seconds_of(run, calls: int) -> float:
    begin = time.process_time()
    for _ in range(calls):
        run()
    return (time.process_time() - begin) / calls


def shortest(runs: dict) -> dict[str, float]:
    """CPU time of the shortest run of each, in turns."""
    calls = {}
    for name, run in runs.items():
        run()
        calls[name] = min(2000, max(1, int(TURN_S / max(seconds_of(run, 1), 1e-7))))
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(TURNS):
        for name, run in runs.items():
            best[name] = min(best[name], seconds_of(run, calls[name]))
    return best


def by_jax(build, arguments):
    import jax

    jax.config.update("jax_enable_x64", True)
    run = jax.jit(build(jax.numpy))
    arguments = jax.device_put(arguments)
    return lambda: jax.block_until_ready(run(*arguments))


def by_numpy(build, arguments):  # views are copied: results of the others are arrays of their own
    run = build(np)

    def called():
        made = run(*arguments)
        return np.ascontiguousarray(made) if isinstance(made, np.ndarray) else made

    return called


def by_tenon(build, arguments, eager: bool):
    import tenon

    run = build(tenon) if eager else tenon.jit(build(tenon))
    return lambda: run(*arguments)


def measured(row, arguments, peers: list[str], eager: bool) -> dict[str, float]:
    """Times by library; a peer that lacks the function has none."""
    runs = {"tenon": by_tenon(row.build, arguments, eager)}
    made = {"numpy": by_numpy, "jax": by_jax}
    with np.errstate(all="ignore"):
        for peer in peers:
            try:
                run = made[peer](row.build, arguments)
                run()
            except (AttributeError, TypeError, ValueError, NotImplementedError):
                continue
            runs[peer] = run
        return shortest(runs)


def behind(times: dict[str, float], call_s: float) -> float:
    """How many times as long as its faster peer Tenon takes, beyond its call."""
    peers = [t for name, t in times.items() if name != "tenon"]
    return max(0.0, times["tenon"] - call_s) / min(peers) if peers else 0.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--sizes", default="1,100,10000,1000000")
    parser.add_argument("--types", default="")
    parser.add_argument("--peers", default="numpy,jax")
    parser.add_argument("--above", type=float, default=2.0)
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    args = parser.parse_args()
    sys.path.insert(0, str(pathlib.Path(args.build) / "python"))
    from swept import ROWS

    peers = [peer for peer in args.peers.split(",") if peer]
    one = np.ones(1, "float32")
    call_s = shortest({"call": by_tenon(lambda m: lambda x: x + x, (one,), args.eager)})["call"]
    print(f"a call of Tenon itself: {call_s * 1e6:.2f} us", flush=True)
    found = []
    for row in ROWS:
        if args.only and not any(text in row.name for text in args.only):
            continue
        for kind in [k for k in row.kinds if not args.types or k in args.types.split(",")]:
            for size in map(int, args.sizes.split(",")):
                if size > row.most:
                    continue
                name = f"{row.name} {np.dtype(kind).name} {size}"
                try:
                    times = measured(row, row.arguments(size, kind), peers, args.eager)
                except Exception as error:  # a row that fails is a finding, not the end
                    print(f"{name}: {str(error).splitlines()[0]}", flush=True)
                    continue
                found.append((behind(times, call_s), name, times))
                if found[-1][0] >= args.above:
                    text = "  ".join(f"{k} {t * 1e6:.1f}" for k, t in times.items())
                    print(f"  {found[-1][0]:8.2f}  {name:40}  {text}", flush=True)
    print(f"{len(found)} measured; CPU time in us, the slowest first:")
    for ratio, name, times in sorted(found, reverse=True, key=lambda row: row[0]):
        if ratio >= args.above:
            text = "  ".join(f"{library} {t * 1e6:.1f}" for library, t in times.items())
            print(f"{ratio:8.2f}  {name:44}  {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
