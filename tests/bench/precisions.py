# SPDX-License-Identifier: Apache-2.0
"""The reference networks trained in bf16 beside the same seeds in fp32: points of accuracy.

    scripts/fetch mnist glyphs shapes characters leaves
    .venv-bench/bin/python tests/bench/precisions.py lenet lstm mnist_cnn --seeds 5

Each training is a run of scripts/reference.lua in RUNS/PRECISION, which goes on where it was
stopped and gives at once what had ended. Printed: the held-out accuracy of each seed, and the mean
difference over the seeds with its 95 % interval (Student's t), for each network and over all pairs.
Hours are the training's own.
"""

import argparse
import json
import subprocess
from pathlib import Path

from figures import mean_interval

PRECISIONS = ("fp32", "bf16")


def trained(args: argparse.Namespace, network: str, precision: str, seed: int) -> dict:
    """The row of one seed."""
    settings = {
        "networks": network, "seeds": seed, "precision": precision, "threads": args.threads,
        "out": args.runs / precision, "models": args.models,
    }  # fmt: skip
    sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    done = subprocess.run(
        [args.tenon, "run", "scripts/reference.lua", "--trust", "--json", *sets],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return json.loads(done.stdout)[-1]


def compare(args: argparse.Namespace, network: str) -> list[float]:
    """Points of accuracy that bf16 gains, by seed."""
    apart, sums = [], dict.fromkeys(PRECISIONS, 0.0)
    for seed in range(1, args.seeds + 1):
        rows = {each: trained(args, network, each, seed) for each in PRECISIONS}
        right = {each: row["accuracy"] for each, row in rows.items()}
        for each in PRECISIONS:
            sums[each] += right[each]
        apart.append(right["bf16"] - right["fp32"])
        hours = ", ".join(f"{rows[each]['hours']:.3f} h" for each in PRECISIONS)
        print(f"{network} {seed}  fp32 {right['fp32']:.2f}  bf16 {right['bf16']:.2f}  {hours}",
              flush=True)  # fmt: skip
    means = {each: total / args.seeds for each, total in sums.items()}
    mean, low, high = mean_interval(apart)
    print(f"{network}: fp32 {means['fp32']:.2f}, bf16 {means['bf16']:.2f}, difference {mean:+.2f} "
          f"[{low:+.2f}, {high:+.2f}], {args.seeds} seeds", flush=True)  # fmt: skip
    return apart


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="+")
    parser.add_argument("--seeds", type=int, default=3, help="at least 2")
    parser.add_argument("--threads", type=int, default=0, help="0: all")
    parser.add_argument("--runs", type=Path, default=Path("runs/precisions"))
    parser.add_argument("--models", type=Path, default=Path(".cache/models"))
    parser.add_argument("--tenon", default="build/release/bin/tenon")
    args = parser.parse_args()
    pairs = [gain for network in args.networks for gain in compare(args, network)]
    if len(args.networks) > 1:
        mean, low, high = mean_interval(pairs)
        print(f"all: difference {mean:+.2f} [{low:+.2f}, {high:+.2f}], {len(pairs)} pairs")


if __name__ == "__main__":
    main()
