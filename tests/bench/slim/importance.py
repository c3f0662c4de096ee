# SPDX-License-Identifier: Apache-2.0
"""The order in which importances remove, without fine-tuning: accuracy of trained networks.

    PYTHONPATH=build/release/python .venv/bin/python tests/bench/slim/importance.py
        [--networks mnist_cnn,resnet20,transformer] [--scores l1,...] [--ratios 0.1,0.2,0.3]
        [--draws 5] [--what channels|heads|weights] [--samples 128] [--tests 0]

A draw is a set of training samples, of which scores that read data are made, and the seed of random
scores and orders. Each score is asked once a draw and network; its order then serves all ratios.
Channels (of a transformer: heads, and units of its inner layers) go by `pruner.structured` from
each layer alike, heads alone where they are asked for (networks transformer and minilm_head);
weights by `pruner.unstructured` from all layers together. Printed: held-out
accuracy in percent, mean over draws, and how far it is ahead of random, paired by draw, each with
its 95 % interval. Scores that read no data are the same in every draw. `-`: the network has
nothing that the score needs.
"""

import argparse
import pathlib
import statistics
import time

import networks
import tenon as tn

CHANNELS = "l1,l2,lamp,median,batch_norm,taylor,taylor2,hessian,wanda,apoz,shapley,random"
HEADS = "l1,l2,lamp,taylor,taylor2,hessian,wanda,shapley,random"
WEIGHTS = "l1,lamp,taylor,hessian,wanda,random"
READS_DATA = {"taylor", "taylor2", "hessian", "wanda", "apoz", "shapley"}


def options(network: networks.Network, score: str, draw: int, samples: int) -> dict:
    found = {"importance": score}
    if score == "random":
        found["importance_options"] = {"seed": draw}
    if score in READS_DATA:
        found |= {"data": network.draw(draw, samples).as_posix(), "samples": samples}
        found |= {"axis": networks.LAST_AXIS}
        found |= {"order_seed": draw} if score == "shapley" else {}
        found["batch"] = 1 if score == "hessian" else 16
    return found


def layers(network, what: str) -> dict:
    """As options: the layers whose channels are blocks of more than one entry, which heads are."""
    if what != "heads":
        return {}
    found = network.model.apply("pruner.structured", ratio=0, dry_run=True).report["groups"]
    return {"only": [row["layer"] for row in found if row["width"] > 1]}


def orders(network, score: str, draw: int, args) -> dict | None:
    """The scores of each group of channels, as options that give them again."""
    asked = options(network, score, draw, args.samples)
    try:
        scored = network.model.apply(
            "pruner.structured", ratio=0, scores=True, **asked, **args.layers
        )
    except tn.TenonError as error:
        if "no BatchNormalization" in str(error):
            return None
        raise
    scores = {row["layer"]: row["scores"] for row in scored.report["groups"]}
    return {"importance": "given", "importance_options": {"scores": scores}} | args.layers


def accuracies(network, score: str, draw: int, args) -> list[float] | None:
    """At each ratio."""
    found = []
    if args.what != "weights":
        order = orders(network, score, draw, args)
        if order is None:
            return None
        for ratio in args.ratios:
            found.append(
                network.accuracy(network.model.apply("pruner.structured", ratio=ratio, **order))
            )
        return found
    asked = options(network, score, draw, args.samples)
    for ratio in args.ratios:
        pruned = network.model.apply("pruner.unstructured", sparsity=ratio, scope="global", **asked)
        found.append(network.accuracy(pruned))
    return found


def table(network, args) -> bool:
    """Prints it; whether each score is ahead of random at each ratio."""
    rows = {}
    for score in args.scores:
        began = time.monotonic()
        is_drawn = score in READS_DATA or score == "random"
        drawn = [accuracies(network, score, n, args) for n in range(args.draws if is_drawn else 1)]
        if not is_drawn:  # the same each time
            drawn *= args.draws
        rows[score] = None if drawn[0] is None else drawn
        seconds = (time.monotonic() - began) / args.draws
        found = {"network": network.name, "what": args.what, "score": score, "drawn": drawn}
        networks.say(found | {"seconds": seconds}, args.rows)
    print(f"{network.name}, {args.what}: {network.accuracy(network.model):.2f} % whole", flush=True)
    print(f"  {'score':<11}" + "".join(f"{ratio:>17g}{'- random':>16}" for ratio in args.ratios))
    ahead = True
    summary = [score for score in rows if rows[score]]
    for score in sorted(summary, key=lambda s: -statistics.fmean(map(statistics.fmean, rows[s]))):
        cells = ""
        for i in range(len(args.ratios)):
            values = [draw[i] for draw in rows[score]]
            cells += f"{networks.with_interval(values):>17}"
            if score == "random" or "random" not in summary:
                cells += f"{'':>16}"
                continue
            more = [ours - theirs[i] for ours, theirs in zip(values, rows["random"])]
            cells += f"{networks.with_interval(more):>16}"
            ahead = ahead and statistics.fmean(more) > 0
        print(f"  {score:<11}{cells}", flush=True)
    for score in rows:
        if score not in summary:
            print(f"  {score:<11}  -", flush=True)
    return ahead


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    numbers = lambda text: [float(one) for one in text.split(",")]  # noqa: E731
    parser.add_argument("--networks", default="mnist_cnn,resnet20,transformer")
    parser.add_argument("--what", choices=("channels", "heads", "weights"), default="channels")
    parser.add_argument("--scores", default="")
    parser.add_argument("--ratios", type=numbers, default=None)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--samples", type=int, default=128)
    parser.add_argument("--tests", type=int, default=0, help="held-out samples; 0: all")
    parser.add_argument("--rows", type=pathlib.Path, help="file that figures are added to")
    args = parser.parse_args()
    scores, ratios = {
        "channels": (CHANNELS, [0.1, 0.2, 0.3]),
        "heads": (HEADS, [0.25, 0.5, 0.75]),
        "weights": (WEIGHTS, [0.5, 0.7, 0.9]),
    }[args.what]
    args.scores = (args.scores or scores).split(",")
    args.ratios = args.ratios or ratios
    behind = []
    with networks.folder() as folder:
        for name in args.networks.split(","):
            network = networks.Network(name, pathlib.Path(folder), args.tests)
            args.layers = layers(network, args.what)
            if not table(network, args):
                behind.append(name)
    print(f"not ahead of random everywhere: {', '.join(behind) or 'none'}")


if __name__ == "__main__":
    main()
