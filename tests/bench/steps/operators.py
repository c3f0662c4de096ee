# SPDX-License-Identifier: Apache-2.0
"""Gradients of single operators and layers beside PyTorch's eager mode: where one falls off.

  operators.py [FAMILY...] [--only REGEX] [--below 0.5] [--first 10] [--rounds 3]

FAMILY: activations, rows, norms, pools, convolutions (operator_cases.py), moves, products, losses,
layers (operator_moves.py), images, tokens, targets (operator_blocks.py); all without one. A
function's result, its gradients by its arrays, and the call are one run. Both engines run on one
thread and take turns; a figure is the CPU time of the shortest of many runs, so that other programs
matter little. Printed: each case that takes more than
1/BELOW of PyTorch's time, that has nodes on the backend reference, whose first call takes
more than FIRST times PyTorch's, or whose numbers differ, then the geometric mean of all ratios
with its 95 % interval over the cases.
"""

import argparse
import os
import re
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.append(str(HERE.parents[2] / "build/release/python"))
os.environ["OMP_NUM_THREADS"] = "1"
import figures  # noqa: E402
import numpy as np  # noqa: E402
import operator_blocks  # noqa: E402
import operator_cases  # noqa: E402
import operator_moves  # noqa: E402
import tenon as tn  # noqa: E402
import torch  # noqa: E402

LEAST_MS = 0.05
FAMILIES = {
    name: getattr(module, name)
    for module, names in [
        (operator_cases, ("activations", "rows", "norms", "pools", "convolutions")),
        (operator_moves, ("moves", "products", "losses", "layers")),
        (operator_blocks, ("images", "tokens", "targets")),
    ]
    for name in names
}


def engines(case: operator_cases.Case) -> tuple:
    """The compiled function, and a run of each engine: the results and the gradients."""

    leaves = [torch.tensor(one, requires_grad=True) for one in case.wrt]
    data = [torch.tensor(one) for one in case.data]
    weights = operator_cases.f32(*case.theirs(*leaves, *data).shape)
    their_weights = torch.tensor(weights)

    def loss(wrt, weights, *data):
        return tn.sum(case.ours(*wrt, *data) * weights)

    def theirs():
        total = (case.theirs(*leaves, *data) * their_weights).sum()
        return total, torch.autograd.grad(total, leaves, allow_unused=True)

    ours = tn.jit(tn.value_and_grad(loss))
    return ours, lambda: ours(case.wrt, weights, *case.data), theirs


def timed(run) -> tuple:
    began = time.process_time()
    result = run()
    return result, 1e3 * (time.process_time() - began)


def difference(ours: tuple, theirs: tuple) -> float:
    """The largest of the gradients' relative distances; 0 where PyTorch keeps its own weights."""
    worst = 0.0
    for a, b in zip(ours[1], theirs[1], strict=True):
        if b is not None:
            b = b.numpy()
            worst = max(worst, float(np.linalg.norm(a - b) / (np.linalg.norm(b) + 1e-6)))
    return worst


def report(case: operator_cases.Case, args: argparse.Namespace) -> tuple[float, float]:
    """ms of both, with a line where one falls off."""
    compiled, ours, theirs = engines(case)
    (a, first), (b, their_first) = timed(ours), timed(theirs)
    worst = 0.0 if case.name.startswith(("nn.", "dropout")) else difference(a, b)
    ms, peer_ms = figures.shortest([ours, theirs], args.rounds)
    plain = [one["op"] for one in compiled.describe()["fallback_nodes"]]
    notes = [f"reference: {plain}"] if plain else []
    if worst > 1e-3:
        notes.append(f"gradients differ by {worst:.2g}")
    if first > args.first * max(their_first, 20):
        notes.append(f"first call {first:.0f} ms, PyTorch {their_first:.0f}")
    if notes or (peer_ms / ms < args.below and ms > LEAST_MS):
        print(f"{peer_ms / ms:5.2f} of {peer_ms:8.3f} ms: {case.name} {'; '.join(notes)}",
              flush=True)  # fmt: skip
    return ms, peer_ms


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("family", nargs="*", choices=[[], *FAMILIES])
    parser.add_argument("--only", default="", help="cases whose name has this")
    parser.add_argument("--below", type=float, default=0.5)
    parser.add_argument("--first", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    ours, theirs = [], []
    for family in args.family or FAMILIES:
        for case in FAMILIES[family]():
            if not re.search(args.only, case.name):
                continue
            try:
                ms, peer_ms = report(case, args)
            except Exception as failed:  # the other cases are worth their time
                print(f"  failed: {case.name}: {failed}", flush=True)
                continue
            ours.append([ms])
            theirs.append([peer_ms])
    mean, low, high = figures.paired_ratio(theirs, ours)
    print(f"{len(ours)} cases: PyTorch / Tenon {mean:.2f} [{low:.2f}, {high:.2f}]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
