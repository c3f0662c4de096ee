# SPDX-License-Identifier: Apache-2.0
"""The ladder of decomposition on a trained network: each step beside its measured time.

    PYTHONPATH=build/release/python .venv/bin/python tests/bench/slim/ladder.py
        [--network resnet20] [--budgets 0.8,0.6,0.5] [--times 0.8,0.6] [--methods tucker2,spatial]
        [--samples 256] [--draws 3] [--tests 0] [--flops]

Steps, none of them trained again: all layers by EVBMF (it hurts), the layers that have low-rank
structure, ratios of each layer by one budget of FLOPs with the norm of the weights, the same with
the norm of what the layers make of unlabelled inputs, that refitted, pruned first to half of the
budget's saving, and ranks of each layer by its measured time. But for the first step a layer whose
replacement is measured slower stays. Printed: held-out accuracy in percent (mean and 95 % interval
over draws of the inputs), the shares of parameters and multiply-adds that are left, and of time:
the median ratio of runs in turns, batch 1, one thread. --flops: replacements are taken by their
FLOPs, and nothing is timed, so that the figures are those of any machine.
"""

import argparse
import math
import pathlib
import statistics
import time

import networks
import numpy as np
import tenon as tn

SECONDS = 0.1
ROUNDS = 7


def once(plan, inputs) -> float:
    began, runs = time.perf_counter(), 0
    while (passed := time.perf_counter() - began) < SECONDS:
        plan.run(inputs)
        runs += 1
    return passed / runs


def time_left(before: tn.Model, after: tn.Model) -> float:
    port = before.inputs[0]
    shape = [size if isinstance(size, int) and size > 0 else 1 for size in port.shape]
    array = np.zeros(shape, port.dtype)
    if array.dtype == np.float32:
        array = np.random.default_rng(0).standard_normal(shape).astype("f")
    inputs = {port.name: array}
    plans = [one.compile(backend="onednn", threads=1) for one in (before, after)]
    rounds = [[once(plan, inputs) for plan in plans] for _ in range(ROUNDS + 1)][1:]
    return statistics.median(after / before for before, after in rounds)


def cost(model: tn.Model) -> dict:
    return model.apply("pruner.explain").report


def both(model: tn.Model, **options) -> tn.Model:
    """Tucker-2 where there is a window, SVD where there is none."""
    return model.apply("decomposer.tucker2", **options).apply("decomposer.svd", **options)


def within(model, method: str, data: str | None, args, **asked) -> tn.Model:
    options = {"max_ratio": 2, "only": "Conv", "multiple": 4, "measure": not args.flops} | asked
    if data:
        options |= {"data": data, "samples": args.samples}
    return model.apply(f"decomposer.{method}", **options)


def steps(network: networks.Network, model: tn.Model, args):
    """Name, and a function of a draw's inputs that gives the model; None: no draw changes it."""
    yield "all layers, EVBMF", lambda _: both(model, max_ratio=9, allow_slower=True), 1
    yield "those with structure", lambda _: both(model, measure=not args.flops), 1
    for method in args.methods:
        for budget in args.budgets:
            yield from by_budget(model, method, budget, args)
        for time_share in () if args.flops else args.times:
            aware = lambda data, m=method, t=time_share: within(  # noqa: E731
                model, m, data, args, time=t
            )
            yield f"{method}, time {time_share:g}", aware, args.draws


def by_budget(model: tn.Model, method: str, budget: float, args):
    def refitted(found, data):
        return found.apply("recovery.refit", data=data, samples=args.samples)

    def aware(data):
        return within(model, method, data, args, budget=budget)

    def pruned(data):
        first = model.apply("pruner.structured", target={"macs": (1 + budget) / 2})
        left = 2 * budget / (1 + budget)
        return within(refitted(first, data), method, data, args, budget=left)

    name = f"{method} {budget:g}"
    yield f"{name}, weights", lambda _: within(model, method, None, args, budget=budget), 1
    yield f"{name}, data", aware, args.draws
    yield f"{name}, refitted", lambda data: refitted(aware(data), data), args.draws
    yield f"{name}, pruned first", pruned, args.draws


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    numbers = lambda text: [float(one) for one in text.split(",")]  # noqa: E731
    parser.add_argument("--network", default="resnet20")
    parser.add_argument("--budgets", type=numbers, default=[0.8, 0.6, 0.5])
    parser.add_argument("--times", type=numbers, default=[0.8, 0.6])
    names = lambda text: text.split(",")  # noqa: E731
    parser.add_argument("--methods", type=names, default=["tucker2", "spatial"])
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--tests", type=int, default=0, help="held-out samples; 0: all")
    parser.add_argument("--flops", action="store_true", help="take by FLOPs, time nothing")
    parser.add_argument("--rows", type=pathlib.Path, help="file that figures are added to")
    args = parser.parse_args()
    with networks.folder() as folder:
        network = networks.Network(args.network, pathlib.Path(folder), args.tests)
        model = network.model.apply("fusion.default")
        whole = cost(model)
        print(f"{args.network}: {network.accuracy(model):.2f} %, {whole['parameters']:.0f} "
              f"parameters, {whole['macs'] / 1e6:.2f} MMACs", flush=True)  # fmt: skip
        print(f"{'step':<26}{'accuracy':>17}{'parameters':>12}{'MACs':>7}{'time':>7}")
        for name, make, draws in steps(network, model, args):
            found, left, why = [], None, ""
            for draw in range(draws):
                data = network.draw(draw, args.samples, labels=False).as_posix()
                try:
                    left = make(data)
                except tn.TenonError as error:
                    why = str(error)
                    break
                found.append(network.accuracy(left))
            if not found:
                print(f"{name:<26}  {why}", flush=True)
                continue
            costs = cost(left)
            shares = [costs[key] / whole[key] for key in ("parameters", "macs")]
            shares.append(math.nan if args.flops else time_left(model, left))
            print(f"{name:<26}{networks.with_interval(found):>17}"
                  f"{shares[0]:>12.3f}{shares[1]:>7.3f}{shares[2]:>7.3f}", flush=True)  # fmt: skip
            networks.say({"step": name, "accuracy": found, "left": shares}, args.rows)


if __name__ == "__main__":
    main()
