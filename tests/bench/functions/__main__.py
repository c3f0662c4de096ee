# SPDX-License-Identifier: Apache-2.0
"""Functions of arrays and their transforms, compiled, in Tenon and in JAX: times and differences.

  tests/bench/functions [--doubles] [--only TEXT]... [--rounds 15] [--build build/release]
                        [--without IMPLEMENTATION]...

One process has both; they take turns, each with its own threads on all CPUs. A turn is as many
calls as take about 4 ms. NumPy arrays go into Tenon, arrays on JAX's device into JAX. --doubles:
functions of float64 and of integers, beside NumPy. --without: beside Tenon itself without these
implementations, as `tenon bench --layers` names them.
"""

import argparse
import pathlib
import statistics
import sys
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(HERE.parent)]

TURN_S = 4e-3


class Jax:
    """What the cases call transforms of, by Tenon's names."""

    def __init__(self):
        import jax

        self._jax = jax
        self.scan, self.fori_loop = jax.lax.scan, jax.lax.fori_loop
        self.while_loop = jax.lax.while_loop

    def __getattr__(self, name):
        return getattr(self._jax, name)


def compiled_by_jax(case):
    import jax

    run = jax.jit(case.build(jax.numpy, Jax()))
    arguments = jax.device_put(case.arguments)
    return lambda: jax.block_until_ready(run(*arguments))


def of_numpy(case):
    run = case.build(np, None)
    return lambda: run(*case.arguments)


def compiled_by_tenon(case, **options):
    import tenon

    run = tenon.jit(case.build(tenon, tenon), **options)
    return lambda: run(*case.arguments)


def leaves(x) -> list:
    if isinstance(x, dict):
        x = [x[key] for key in sorted(x)]
    return [y for one in x for y in leaves(one)] if isinstance(x, (list, tuple)) else [x]


def difference(ours, theirs) -> float:
    """The largest one, over 1 + the size of the number."""
    found = [0.0]
    for a, b in zip(leaves(ours), leaves(theirs), strict=True):
        a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
        found.append(float(np.max(np.abs(a - b) / (1 + np.abs(b)), initial=0.0)))
    return max(found)


def seconds_of(run, calls: int = 1) -> float:
    begin = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - begin) / calls


def measured(case, peer, rounds: int) -> dict[str, float]:
    """peer: makes of a case what runs beside Tenon."""
    runs = {"peer": peer(case), "tenon": compiled_by_tenon(case)}
    first = {name: seconds_of(run) for name, run in runs.items()}
    apart = difference(runs["tenon"](), runs["peer"]())
    calls = {name: max(1, int(TURN_S / seconds_of(run))) for name, run in runs.items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(seconds_of(run, calls[name]))
    return {"first": first, "times": times, "apart": apart}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--doubles", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--build", default=str(ROOT / "build" / "release"))
    args = parser.parse_args()
    sys.path.insert(0, str(pathlib.Path(args.build) / "python"))
    import figures
    from cases import CASES, DOUBLES

    peer, made, cases = "jax", compiled_by_jax, CASES
    if args.doubles:
        peer, made, cases = "numpy", of_numpy, DOUBLES
    if args.without:
        peer, options = "without", {"backend": "onednn", "without": args.without}
        made = lambda case: compiled_by_tenon(case, **options)  # noqa: E731
    chosen = [c for c in cases if not args.only or any(text in c.name for text in args.only)]
    if not chosen:
        parser.error(f"--only: expected part of a function's name, got {', '.join(args.only)}")
    ratios = []
    print(f"{'function':28} {peer:>9} {'tenon':>9}  {peer} / tenon          first call ms  apart")
    for case in chosen:
        got = measured(case, made, args.rounds)
        peer_s, tenon_s = (got["times"][name] for name in ("peer", "tenon"))
        ratio = figures.paired_ratio([[t] for t in peer_s], [[t] for t in tenon_s])
        ratios.append(ratio[0])
        first = "{peer:6.0f} {tenon:6.0f}".format(**{k: v * 1e3 for k, v in got["first"].items()})
        print(
            f"{case.name:28} {statistics.median(peer_s) * 1e3:9.4f} "
            f"{statistics.median(tenon_s) * 1e3:9.4f}  {ratio[0]:6.2f} "
            f"[{ratio[1]:.2f}, {ratio[2]:.2f}]  {first}  {got['apart']:.0e}",
            flush=True,
        )
    print(f"geometric mean of {len(ratios)}: {statistics.geometric_mean(ratios):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
