# SPDX-License-Identifier: Apache-2.0
"""Plans that meet one length after the other, beside `reference`, compiled anew for each.

  main.py [--seed 1] [--from 0] [--count 100] [--nodes 25] [--keep FOLDER]

Prints a line for each graph that differs or fails, and at last how many plans left sizes open.
"""

import argparse
import logging
import pathlib
import sys
import tempfile

import numpy as np
import tenon as tn
from graphs import grown

LENGTHS = (5, 6, 7, 8, 9, 9, 12, 3, 4, 30, 31, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8)


class Warnings(logging.Handler):
    """A plan that cannot leave sizes open, though it would pay, says so."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


def near(got, want) -> bool:
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype != want.dtype or got.shape != want.shape:
        return False
    if got.dtype.kind != "f":
        return bool((got == want).all())
    return np.allclose(got, want, rtol=1e-4, atol=1e-4 * (1 + np.abs(want).max(initial=0)))


def difference(model, feed, seed: int) -> tuple[str, bool]:
    """What is wrong, or nothing; and whether the plan had sizes open."""
    plan = model.compile(backend="onednn", threads=1)
    was_open = False
    for i, t in enumerate(LENGTHS):
        inputs = feed(t, seed + i)
        want = list(model.compile(backend="reference").run(inputs))
        try:
            got = plan.run(inputs)
        except tn.TenonError as error:
            return f"length {t}: {error}", was_open
        parts = plan.describe()["partitions"]
        was_open |= any(part["backend"] != "onednn" for part in parts)
        for name, one, other in zip(got.names, got, want, strict=True):
            if not near(one, other):
                return f"length {t}: {name} differs", was_open
    return "", was_open


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=25)
    parser.add_argument("--keep", type=pathlib.Path)
    args = parser.parse_args()
    warnings = Warnings()
    logging.getLogger("tenon").addHandler(warnings)
    failed = n_open = 0
    for i in range(args.first, args.first + args.count):
        made, feed = grown(args.seed * 1_000_003 + i, args.nodes)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(args.keep or folder) / f"length_{i}.onnx"
            path.write_bytes(made.SerializeToString())
            wrong, was_open = difference(tn.load(path), feed, args.seed)
            if args.keep and not wrong:
                path.unlink()
        wrong = wrong or "; ".join(warnings.lines)
        warnings.lines.clear()
        n_open += was_open
        failed += bool(wrong)
        if wrong:
            print(f"graph {i}: {wrong}", flush=True)
    print(f"lengths: {args.count} graphs, {n_open} plans with open sizes, {failed} failed")
    return 1 if failed or n_open * 4 < args.count else 0


if __name__ == "__main__":
    sys.exit(main())
