# SPDX-License-Identifier: Apache-2.0
"""Lottery tickets beside their controls (Frankle and Carbin 2019; Frankle et al. 2020; Renda 2020).

    PYTHONPATH=build/release/python .venv/bin/python tests/bench/slim/tickets.py
        [--network lenet|mlp|resnet20] [--seeds 3] [--epochs 10] [--step 20] [--rounds 11]
        [--densities 0.51,0.21,0.09] [--threads 1] [--out runs/tickets] [--connect 0,20,100]

A fifth of the weights that are left goes in each round, the smallest of all layers together. Then
rewound: survivors, optimizer, schedule and order of samples go back to `step` (0: the original
form); rate: weights stay as trained, the schedule begins again (learning-rate rewinding), which is
a chain of its own; anew: the masks of `rewound` on weights of another seed; random: as many
weights of each layer, drawn. Printed for each density: held-out accuracy in percent over seeds,
mean and 95 % interval, how far `rewound` is ahead of each control, seed by seed, and hours.

--connect: linear mode connectivity. Two trainings of the dense network from the same step k, with
samples in different order; the barrier is the largest error on the line between their ends less
the mean error of the ends, in points, at 11 places. The least k with a barrier under 2 points is
where tickets are rewound to. Batch normalization is estimated again at each place.

Each training has its folder in `out`; called again, those that ended give their weights at once,
and one that was stopped goes on.
"""

import argparse
import pathlib
import time

import networks
import numpy as np
import tenon as tn

nn = tn.nn
SHARE = 0.2
RATE = 1.2e-3  # of Adam, as LeNet has it in Frankle and Carbin 2019
BATCH = 64
PLACES = 11
STABLE = 2.0
CONTROLS = ("rate", "anew", "random")


def mlp() -> nn.Layer:
    """LeNet-300-100."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(300), tn.relu, nn.Linear(100), tn.relu, nn.Linear(10)
    )


def lenet() -> nn.Layer:
    convolutions = [nn.Conv(6, 5, padding=2), tn.relu, nn.MaxPool(2)]
    convolutions += [nn.Conv(16, 5), tn.relu, nn.MaxPool(2), nn.Flatten()]
    return nn.Sequential(
        *convolutions, nn.Linear(120), tn.relu, nn.Linear(84), tn.relu, nn.Linear(10)
    )


def resnet20() -> nn.Layer:
    def conv(width, kernel, stride=1):
        init = nn.init.he(mode="fan_out")
        return nn.Conv(width, kernel, stride=stride, padding=kernel // 2, bias=False, init=init)

    layers = [conv(16, 3), nn.BatchNorm(), tn.relu]
    for stage in range(3):
        for i in range(3):
            width, stride = 16 << stage, 2 if stage and not i else 1
            body = [conv(width, 3, stride), nn.BatchNorm(), tn.relu, conv(width, 3), nn.BatchNorm()]
            short = nn.Sequential(conv(width, 1, stride), nn.BatchNorm()) if stride > 1 else None
            layers.append(nn.Residual(nn.Sequential(*body), shortcut=short, activation=tn.relu))
    return nn.Sequential(*layers, nn.GlobalAvgPool(), nn.Linear(94))


NETWORKS = {
    "mlp": (mlp, "mnist", (28, 28)),
    "lenet": (lenet, "mnist", (28, 28)),
    "resnet20": (resnet20, "glyphs", (32, 32)),
}


class Search:
    """One seed: its models, each made once and kept in its folder."""

    def __init__(self, args, seed: int):
        self.args, self.seed, self.seconds = args, seed, 0.0
        self.make, data, size = NETWORKS[args.network]
        self.shape = ["N", 1, *size]
        self.train = tn.data.npz(networks.MODELS / f"{data}_train.npz")
        self.test = tn.data.npz(networks.MODELS / f"{data}_test.npz")
        self.folder = args.out / f"{args.network}_{args.epochs}_{args.step}_{seed}"
        self.dense = self.fit(self.network(seed), "dense", keep_steps=self.kept_steps())

    def kept_steps(self) -> list[int]:
        return sorted({self.args.step, *self.args.connect})

    def network(self, seed: int) -> tn.Model:
        return nn.build(self.make(), {"image": nn.Input(self.shape)}, seed=seed)

    def fit(self, model: tn.Model, name: str, **options) -> tn.Model:
        given = dict(batch=BATCH, epochs=self.args.epochs, drop_last=True, seed=self.seed)
        given |= dict(threads=self.args.threads, loss=tn.loss.cross_entropy(axis=-1))
        given["optimizer"] = tn.optim.adam(lr=tn.schedule.cosine(base=RATE, warmup=20))
        given |= dict(run=self.folder / name, resume=True)
        done = tn.train(model, self.train, **(given | options))
        self.seconds += sum(record["seconds"] for record in done.report["history"])
        return done

    def accuracy(self, model: tn.Model) -> float:
        return 100 * tn.evaluate(model, self.test, metric="accuracy", batch=100)["accuracy"]

    def at(self, step: int) -> pathlib.Path:
        return self.folder / "dense" / f"step_{step}.safetensors"

    def masked(self, model: tn.Model, share: float, **options) -> tn.Model:
        given = dict(sparsity=share, scope="global", relative=True, apply="nodes")
        return model.apply("pruner.unstructured", **(given | options))

    def chain(self, way: str):
        """After each round: its density, the trained model and its ticket."""
        model, density = self.dense, 1.0
        for number in range(1, self.args.rounds + 1):
            ticket, density = self.masked(model, SHARE), density * (1 - SHARE)
            start = {"rewind": self.at(self.args.step)} if way == "rewound" else {}
            model = self.fit(ticket, f"{way}_{number}", **start)
            yield density, model, ticket

    def anew(self, ticket: tn.Model, density: float) -> tn.Model:
        fresh = self.network(self.seed + 1000)
        again = ticket.apply("pruner.rewind", to=fresh, apply="nodes")
        return self.fit(again, f"anew_{density:.3f}")

    def random(self, density: float) -> tn.Model:
        """As many of each layer: the densities of layers are those of the ticket."""
        model = self.network(self.seed + 2000)
        drawn = self.masked(
            model, 1 - density, importance="random", importance_options={"seed": self.seed}
        )
        return self.fit(drawn, f"random_{density:.3f}")

    def barrier(self, step: int) -> float:
        """Points of error on the line between two trainings from step k."""
        start = nn.load(self.network(self.seed), self.at(step), partial=True)
        ends = [
            self.fit(start, f"order_{step}_{order}", seed=self.seed + order) for order in (100, 200)
        ]
        held = [end.constants() for end in ends]
        errors = []
        for place in np.linspace(0, 1, PLACES):
            model = nn.load(ends[0], between(*held, place), partial=True)
            if self.args.network == "resnet20":
                model = model.apply("recovery.statistics", data=self.train, samples=1024)
            errors.append(100 - self.accuracy(model))
        return max(errors) - (errors[0] + errors[-1]) / 2


def between(one: dict, other: dict, place: float) -> tn.Model:
    """Constants on the line between those of two models, as a model that holds nothing else."""
    graph = tn.Graph()
    for name, value in one.items():
        a, b = np.asarray(value), np.asarray(other[name])
        if a.dtype == np.float32:
            mixed = ((1 - place) * a + place * b).astype("f")
            graph.add_output(f"{name}/held", graph.add_constant(mixed, name))
    return graph.build()


def examine(args, seed: int) -> dict:
    search = Search(args, seed)
    whole = search.accuracy(search.dense)
    found = {"seed": seed, "dense": whole, "rows": [], "barriers": []}
    for step in args.connect:
        found["barriers"].append({"step": step, "points": search.barrier(step)})
    rates = {round(density, 6): model for density, model, _ in search.chain("rate")}
    for density, model, ticket in search.chain("rewound"):
        row = {"density": density, "rewound": search.accuracy(model)}
        row["rate"] = search.accuracy(rates[round(density, 6)])
        if any(abs(density - wanted) < 0.01 for wanted in args.densities):
            row["anew"] = search.accuracy(search.anew(ticket, density))
            row["random"] = search.accuracy(search.random(density))
        found["rows"].append(row)
    return found | {"hours": search.seconds / 3600}


def table(found: list[dict]) -> None:
    print(f"dense: {networks.with_interval([one['dense'] for one in found])}")
    for at, barrier in enumerate(found[0]["barriers"]):
        points = [one["barriers"][at]["points"] for one in found]
        word = "" if sum(points) / len(points) < STABLE else "  not stable"
        print(f"barrier from step {barrier['step']}: {networks.with_interval(points)}{word}")
    print(f"{'density':>8}" + "".join(f"{key:>17}" for key in ("rewound", *CONTROLS))
          + "".join(f"{'- ' + key:>17}" for key in CONTROLS))  # fmt: skip
    for at, row in enumerate(found[0]["rows"]):
        rows = [one["rows"][at] for one in found]
        text = f"{row['density']:>8.3f}"
        for key in ("rewound", *CONTROLS):
            text += cell([each[key] for each in rows] if key in row else None)
        for key in CONTROLS:
            text += cell([each["rewound"] - each[key] for each in rows] if key in row else None)
        print(text)
    print(f"hours: {sum(one['hours'] for one in found):.2f}", flush=True)


def cell(values: list[float] | None) -> str:
    return f"{networks.with_interval(values) if values else '-':>17}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    floats = lambda text: [float(one) for one in text.split(",")]  # noqa: E731
    whole = lambda text: [int(one) for one in text.split(",")] if text else []  # noqa: E731
    parser.add_argument("--network", choices=sorted(NETWORKS), default="lenet")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--step", type=int, default=20, help="that tickets are rewound to")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--densities", type=floats, default=[0.51, 0.21, 0.09])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--connect", type=whole, default=[0, 20, 100])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/tickets"))
    parser.add_argument("--rows", type=pathlib.Path, help="file that figures are added to")
    args = parser.parse_args()
    found = []
    for seed in range(1, args.seeds + 1):
        began = time.monotonic()
        found.append(examine(args, seed))
        networks.say(found[-1], args.rows)
        print(f"seed {seed}: {time.monotonic() - began:.0f} s", flush=True)
    table(found)


if __name__ == "__main__":
    main()
