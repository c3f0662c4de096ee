# SPDX-License-Identifier: Apache-2.0
"""What comes back of a one-shot pruning without training and without labels.

    PYTHONPATH=build/release/python .venv/bin/python tests/bench/slim/recovery.py
        [--networks lenet,mnist_cnn,resnet20,unet,transformer] [--ratio 0.3] [--draws 5]
        [--samples 256] [--importance l2] [--tests 0]

Normalization is folded, the share of each layer's channels goes (`pruner.structured`), and what is
left is fitted to what the whole network made (`recovery.refit`) on training inputs whose labels
are taken away, drawn anew each time. statistics: normalization is not folded, and only its
statistics are estimated again (`recovery.statistics`). Printed: held-out accuracy in percent, and
the share of the loss that came back, with its 95 % interval over draws; seconds of the refit.
"""

import argparse
import pathlib
import statistics
import time

import networks
import tenon as tn


def back(whole: float, pruned: float, then: float) -> float:
    """Percent of the loss."""
    return 100 * (then - pruned) / (whole - pruned) if whole != pruned else 100.0


def refits(network, args) -> tuple[list[float], list[float], float]:
    folded = network.model.apply("fusion.default")
    pruned = folded.apply("pruner.structured", ratio=args.ratio, importance=args.importance)
    then, seconds = [], []
    for draw in range(args.draws):
        inputs = network.draw(draw, args.samples, labels=False).as_posix()
        began = time.monotonic()
        refitted = pruned.apply("recovery.refit", data=inputs, samples=args.samples)
        seconds.append(time.monotonic() - began)
        then.append(network.accuracy(refitted))
    return then, seconds, network.accuracy(pruned)


def estimates(network, args) -> list[float] | None:
    pruned = network.model.apply("pruner.structured", ratio=args.ratio, importance=args.importance)
    then = []
    for draw in range(args.draws):
        inputs = network.draw(draw, args.samples, labels=False).as_posix()
        try:
            done = pruned.apply("recovery.statistics", data=inputs, samples=args.samples)
        except tn.TenonError as error:
            if "no BatchNormalization" in str(error):
                return None
            raise
        then.append(network.accuracy(done))
    return then


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default="lenet,mnist_cnn,resnet20,unet,transformer")
    parser.add_argument("--ratio", type=float, default=0.3)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--importance", default="l2")
    parser.add_argument("--tests", type=int, default=0, help="held-out samples; 0: all")
    parser.add_argument("--rows", type=pathlib.Path, help="file that figures are added to")
    args = parser.parse_args()
    print(f"{'network':<12}{'whole':>8}{'pruned':>8}{'refitted':>17}{'back %':>17}"
          f"{'statistics':>17}{'back %':>17}{'seconds':>9}", flush=True)  # fmt: skip
    with networks.folder() as folder:
        for name in args.networks.split(","):
            network = networks.Network(name, pathlib.Path(folder), args.tests)
            whole = network.accuracy(network.model)
            then, seconds, pruned = refits(network, args)
            estimated = estimates(network, args)
            line = f"{name:<12}{whole:>8.2f}{pruned:>8.2f}"
            for values in (then, estimated):
                if values is None:
                    line += f"{'-':>17}{'-':>17}"
                    continue
                shares = [back(whole, pruned, one) for one in values]
                line += f"{networks.with_interval(values):>17}"
                line += f"{networks.with_interval(shares):>17}"
            print(line + f"{statistics.median(seconds):>9.1f}", flush=True)
            found = {"network": name, "whole": whole, "pruned": pruned, "refitted": then}
            networks.say(found | {"statistics": estimated, "seconds": seconds}, args.rows)


if __name__ == "__main__":
    main()
