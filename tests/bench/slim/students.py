# SPDX-License-Identifier: Apache-2.0
"""Students made of their teacher's own blocks, with its answers and without.

    PYTHONPATH=build/release/python .venv/bin/python tests/bench/slim/students.py
        [--networks minilm_head] [--blocks 7] [--seeds 3] [--samples 4000] [--epochs 2]
        [--rates 1e-4] [--tests 0] [--precision bf16]

The residual blocks of least influence go (`pruner.depth`, by inputs without labels), as many as
`--blocks` says, and what is left is trained twice, from the same start, with the same samples,
steps and rates: by the answers of the whole network alone, without labels (`distiller.response`,
answers computed once), and by the labels alone. Of several rates each takes its best one by the
first quarter of the held-out samples, and is judged on the others. A seed draws the samples and
their order. Printed: shares of parameters and multiply-adds that are left, held-out accuracy in
percent and what it is of the whole network's, and how far the teacher is ahead of labels, with 95 %
intervals over seeds.
"""

import argparse
import pathlib
import time

import networks
import tenon as tn

TEMPERATURE = 2


def parts(network: networks.Network, limit: int) -> tuple[tn.data.Dataset, tn.data.Dataset]:
    """The held-out samples that choose a rate, and those that judge."""
    count = limit or len(network.test)
    return network.test.part(0, count // 4), network.test.part(count // 4, count - count // 4)


def accuracy(model: tn.Model, part: tn.data.Dataset) -> float:
    return 100 * tn.evaluate(model, part, metric="accuracy", batch=100)["accuracy"]


def losses(network: networks.Network, seed: int, args) -> dict[str, tuple]:
    """By name: what to train on, and the loss."""
    bare = tn.data.npz(network.draw(seed, args.samples, labels=False))
    answers = tn.data.Dataset("distiller.cached", data=bare, teacher=network.model)
    taught = {"alpha": 1, "temperature": TEMPERATURE, "axis": networks.LAST_AXIS, "cached": True}
    return {
        "teacher": (answers, tn.loss.distill(**taught)),
        "labels": (
            tn.data.npz(network.draw(seed, args.samples)),
            tn.loss.cross_entropy(axis=networks.LAST_AXIS),
        ),
    }


def trained(student: tn.Model, data, loss, seed: int, rate: float, args) -> tn.Model:
    steps = args.samples // args.batch * args.epochs
    return tn.train(
        student,
        data=data,
        loss=loss,
        epochs=args.epochs,
        batch=args.batch,
        drop_last=True,
        clip_norm=1,
        seed=seed,
        parameters=args.parameters,
        precision=args.precision,
        optimizer=tn.optim.adamw(lr=tn.schedule.cosine(base=rate, warmup=max(1, steps // 10))),
    )


def best(student, data, loss, seed: int, held: tuple, args) -> float:
    """By the samples that choose; the accuracy on those that judge."""
    tried = []
    for rate in args.rates:
        made = trained(student, data, loss, seed, rate, args)
        tried.append((accuracy(made, held[0]), accuracy(made, held[1]), rate))
    return max(tried)[1]


def table(network: networks.Network, args) -> None:
    held = parts(network, args.tests)
    whole = accuracy(network.model, held[1])
    found: dict[str, list[float]] = {"untrained": [], "teacher": [], "labels": []}
    left = {}
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        began = time.monotonic()
        data = network.draw(seed, 64, labels=False).as_posix()
        student = network.model.apply("pruner.depth", data=data, samples=64, blocks=args.blocks)
        left = {key: student.report[key]["ratio"] for key in ("parameters", "macs")}
        found["untrained"].append(accuracy(student, held[1]))
        for name, (samples, loss) in losses(network, seed, args).items():
            found[name].append(best(student, samples, loss, seed, held, args))
        row = {"network": network.name, "blocks": args.blocks, "seed": seed, "whole": whole}
        row |= left | {name: values[-1] for name, values in found.items()}
        networks.say(row | {"seconds": time.monotonic() - began}, args.rows)
        print(row, flush=True)
    print(f"{network.name}: {whole:.2f} % whole; {args.blocks} blocks less leave "
          f"{left['parameters']:.3f} of the parameters and {left['macs']:.3f} of the "
          "multiply-adds", flush=True)  # fmt: skip
    for name, values in found.items():
        share = networks.with_interval([100 * value / whole for value in values])
        print(f"  {name:<11}{networks.with_interval(values)}   {share} % of the whole", flush=True)
    ahead = [a - b for a, b in zip(found["teacher"], found["labels"], strict=True)]
    print(f"  teacher ahead of labels {networks.with_interval(ahead)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", default="minilm_head")
    parser.add_argument("--blocks", type=int, default=7)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=1, help="to go on from, or in parts")
    parser.add_argument("--samples", type=int, default=4000)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rates", type=lambda t: [float(x) for x in t.split(",")], default=[1e-4])
    parser.add_argument(
        "--parameters", type=lambda t: t.split(","), default=["encoder.*", "head.*"]
    )
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--tests", type=int, default=0, help="held-out samples; 0: all")
    parser.add_argument("--rows", type=pathlib.Path, help="file that figures are added to")
    args = parser.parse_args()
    with networks.folder() as folder:
        for name in args.networks.split(","):
            table(networks.Network(name, pathlib.Path(folder)), args)


if __name__ == "__main__":
    main()
