# SPDX-License-Identifier: Apache-2.0
"""The update alone: 1,000 tensors with 25 M numbers in all, beside PyTorch's fused optimizers.

  PYTHONPATH=build/release/python python tests/bench/steps/update.py [adamw lion ...]
           [--tensors 1000] [--numbers 25000000] [--threads 2] [--rounds 15]

Half of the tensors are vectors of 256, the others matrices of one size. Gradients are constants of
the graph, so that nothing but the update is timed; steps of both alternate. Ratio: PyTorch's time
by ours, round by round, with its 95 % interval.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import tenon as tn

sys.path.insert(0, str(Path(__file__).parents[1]))
from figures import paired_ratio  # noqa: E402

PEERS = {  # what of torch.optim does the same in one pass over all tensors
    "adamw": ("AdamW", {}, {"fused": True}),
    "adam": ("Adam", {}, {"fused": True}),
    "sgd": ("SGD", {"momentum": 0.9}, {"fused": True}),
    "rmsprop": ("RMSprop", {}, {"foreach": True}),
    "lion": None,
    "lars": None,
    "lamb": None,
}
RATE = 1e-3


def shapes(tensors: int, numbers: int) -> list[tuple[int, ...]]:
    vectors = tensors // 2
    each = (numbers - 256 * vectors) // (tensors - vectors)
    return [(256,)] * vectors + [(64, each // 64)] * (tensors - vectors)


def gradients(of: list[tuple[int, ...]]):
    random = np.random.default_rng(0)
    return [0.01 * random.standard_normal(shape, dtype="f") for shape in of]


def ours(word: str, given, threads: int):
    graph = tn.Graph()
    graph.add_output("loss", graph.add_constant(np.zeros((), "f"), "loss"))
    for i, gradient in enumerate(given):
        graph.add_input(f"w{i}", "float32", gradient.shape)
        graph.add_output(f"grad/w{i}", graph.add_constant(gradient, f"g{i}"))
    options = (PEERS[word] or ("", {}))[1]
    optimizer = getattr(tn.optim, word)(lr=RATE, **options)
    step = graph.build().apply("trainer.step", optimizer=optimizer)
    plan = step.compile(backend="onednn", threads=threads)
    return lambda: plan(np.float32(RATE))


def theirs(word: str, given, threads: int):
    import torch

    torch.set_num_threads(threads)
    name, options, kind = PEERS[word]
    parameters = [torch.nn.Parameter(torch.zeros(g.shape)) for g in given]
    for parameter, gradient in zip(parameters, given):
        parameter.grad = torch.from_numpy(gradient)
    return getattr(torch.optim, name)(parameters, lr=RATE, **options, **kind).step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("optimizers", nargs="*", default=list(PEERS))
    parser.add_argument("--tensors", type=int, default=1000)
    parser.add_argument("--numbers", type=int, default=25_000_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    given = gradients(shapes(args.tensors, args.numbers))
    print(f"{len(given)} tensors, {sum(g.size for g in given)} numbers, {args.threads} threads")
    print(f"{'optimizer':10}{'ms':>8}{'PyTorch ms':>12}  ratio")
    for word in args.optimizers:
        steps = [ours(word, given, args.threads)]
        if PEERS[word]:
            steps.append(theirs(word, given, args.threads))
        times = [[] for _ in steps]
        for round_ in range(args.rounds + 3):
            for step, taken in zip(steps, times):
                began = time.perf_counter()
                step()
                if round_ >= 3:
                    taken.append(1e3 * (time.perf_counter() - began))
        ms = [statistics.median(taken) for taken in times]
        peer = ""
        if len(ms) > 1:
            ratio, low, high = paired_ratio(*([[ms] for ms in times[i]] for i in (1, 0)))
            peer = f"{ms[1]:12.1f}  {ratio:.2f} [{low:.2f}, {high:.2f}]"
        print(f"{word:10}{ms[0]:8.1f}{peer}", flush=True)


if __name__ == "__main__":
    main()
