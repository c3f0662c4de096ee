# SPDX-License-Identifier: Apache-2.0
"""Residual blocks that go by their influence, beside as many random ones, without training.

    PYTHONPATH=build/release/python .venv/bin/python tests/bench/slim/depth.py
        [--networks resnet20,mobilenet,transformer] [--counts 1,2,3] [--draws 5] [--samples 64]
        [--tests 0]

A draw is a set of unlabelled training inputs, by which `pruner.depth` ranks blocks, and the seed of
the random ones. Printed: held-out accuracy in percent, mean over draws, and how far the blocks of
least influence are ahead of random ones, paired by draw, with 95 % intervals.
"""

import argparse
import pathlib

import networks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default="resnet20,mobilenet,transformer")
    counts = lambda text: [int(one) for one in text.split(",")]  # noqa: E731
    parser.add_argument("--counts", type=counts, default=[1, 2, 3])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--tests", type=int, default=0, help="held-out samples; 0: all")
    parser.add_argument("--rows", type=pathlib.Path, help="file that figures are added to")
    args = parser.parse_args()
    print(f"{'network':<12}{'blocks':>8}{'least influence':>17}{'random':>17}{'ahead':>17}",
          flush=True)  # fmt: skip
    with networks.folder() as folder:
        for name in args.networks.split(","):
            network = networks.Network(name, pathlib.Path(folder), args.tests)
            print(f"{name:<12}{0:>8}{network.accuracy(network.model):>9.2f}", flush=True)
            for count in args.counts:
                found: dict[str, list[float]] = {"influence": [], "random": []}
                for draw in range(args.draws):
                    data = network.draw(draw, args.samples, labels=False).as_posix()
                    how = {"data": data, "samples": args.samples, "blocks": count, "seed": draw}
                    for by, values in found.items():
                        smaller = network.model.apply("pruner.depth", importance=by, **how)
                        values.append(network.accuracy(smaller))
                pairs = zip(found["influence"], found["random"], strict=True)
                ahead = [one - other for one, other in pairs]
                texts = [networks.with_interval(values) for values in (*found.values(), ahead)]
                print(f"{name:<12}{count:>8}" + "".join(f"{one:>17}" for one in texts), flush=True)
                networks.say({"network": name, "blocks": count, **found}, args.rows)


if __name__ == "__main__":
    main()
