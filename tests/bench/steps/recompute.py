# SPDX-License-Identifier: Apache-2.0
"""A training step of a 48-block transformer with values kept or computed again: time and memory.

  recompute.py [--blocks 48] [--batch 8] [--length 128] [--width 128] [--rounds 3] [--steps 5]
               [--threads 2]

One process for each contestant and round, alternating. keep: all values for the backward pass;
sqrt: the pass autodiff.recompute; half, quarter: the same with a budget, a share of the planned
peak; compress, bfloat16: the pass autodiff.compress in its two forms; both: sqrt, and compress
behind it; blocks: tn.checkpoint of each block; the same in PyTorch where it is installed: eager,
blocks: torch.utils.checkpoint; compile, half, quarter: torch.compile of the whole with
activation_memory_budget 1, 0.5, 0.25. arena: what the plan takes for values in
between; peak: the most memory of the process less what it had before the first step; loss: of the
last step, the same to the bit in all of Tenon's but those that compress.
"""

import argparse
import importlib.util
import json
import resource
import statistics
import subprocess
import sys
import time

import numpy as np

HEADS = 4
CONTESTANTS = (
    "keep", "sqrt", "half", "quarter", "compress", "bfloat16", "both", "blocks",
    "torch keep", "torch blocks", "torch compile", "torch half", "torch quarter",
)  # fmt: skip
BUDGETS = {"compile": 1.0, "half": 0.5, "quarter": 0.25}  # PyTorch's activation memory budget
JOINT = {
    "sqrt": {"autodiff.recompute": {}},
    "half": {"autodiff.recompute": {"budget": 0.5}},  # of the planned peak
    "quarter": {"autodiff.recompute": {"budget": 0.25}},
    "compress": {"autodiff.compress": {}},
    "bfloat16": {"autodiff.compress": {"form": "bfloat16"}},
    "both": {"autodiff.recompute": {}, "autodiff.compress": {}},
}


def weights(options):
    random = np.random.default_rng(0)
    d = options.width
    shapes = {"qkv": (d, 3 * d), "out": (d, d), "up": (d, 4 * d), "down": (4 * d, d)}
    return [
        {
            k: (random.normal(size=s) / np.sqrt(s[0]) / 4).astype("float32")
            for k, s in shapes.items()
        }
        for _ in range(options.blocks)
    ]


def batch(options):
    random = np.random.default_rng(1)
    shape = (options.batch, options.length, options.width)
    return random.normal(size=shape).astype("float32")


def block(m, p, x):
    """Attention and two products, each behind a normalization and beside a residual. m: the
    functions of an engine."""
    b, n, d = x.shape
    normal = m.norm(x)
    q, k, v = (
        m.heads(normal @ p["qkv"][:, i * d : (i + 1) * d], (b, n, HEADS, d // HEADS))
        for i in range(3)
    )
    scores = m.softmax(q @ m.swap(k) * (d // HEADS) ** -0.5)
    x = x + m.joined(scores @ v, (b, n, d)) @ p["out"]
    return x + m.gelu(m.norm(x) @ p["up"]) @ p["down"]


class Tenon:
    def __init__(self, options):
        import tenon as tn

        self.tn, self.options = tn, options

    def norm(self, x):
        centred = x - x.mean(-1, keepdims=True)
        return centred / self.tn.sqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)

    def heads(self, x, shape):
        return self.tn.permute_dims(self.tn.reshape(x, shape), (0, 2, 1, 3))

    def joined(self, x, shape):
        return self.tn.reshape(self.tn.permute_dims(x, (0, 2, 1, 3)), shape)

    def swap(self, x):
        return self.tn.matrix_transpose(x)

    def softmax(self, x):
        return self.tn.softmax(x)

    def gelu(self, x):
        return x * 0.5 * (1 + self.tn.erf(x * 0.5**0.5))

    def step(self, kind):
        tn = self.tn

        def one(p, x):
            return block(self, p, x)

        f = tn.checkpoint(one) if kind == "blocks" else one

        def loss(params, x):
            for p in params:
                x = f(p, x)
            return (x * x).mean()

        joint = JOINT.get(kind, {})
        optimizer = tn.optim.sgd(lr=1e-2)
        made = tn.Step(
            loss, weights(self.options), optimizer, joint=joint, threads=self.options.threads
        )
        x = batch(self.options)

        def figures():
            summary = made.describe()
            parts = [
                p.get("arena_bytes", p.get("workspace_bytes", 0)) for p in summary["partitions"]
            ]
            return {
                "arena": max(parts) + summary.get("arena_bytes", 0),
                "report": made.joint_reports,
            }

        return lambda: float(made(x)), figures


class Torch:
    def __init__(self, options):
        import torch

        torch.set_num_threads(options.threads)
        self.torch, self.options = torch, options

    def norm(self, x):
        return self.torch.nn.functional.layer_norm(x, x.shape[-1:])

    def heads(self, x, shape):
        return x.reshape(shape).permute(0, 2, 1, 3)

    def joined(self, x, shape):
        return x.permute(0, 2, 1, 3).reshape(shape)

    def swap(self, x):
        return x.mT

    def softmax(self, x):
        return x.softmax(-1)

    def gelu(self, x):
        return self.torch.nn.functional.gelu(x)

    def step(self, kind):
        import torch.utils.checkpoint

        torch = self.torch
        params = [
            {k: torch.from_numpy(v).requires_grad_() for k, v in p.items()}
            for p in weights(self.options)
        ]
        optimizer = torch.optim.SGD([v for p in params for v in p.values()], lr=1e-2)
        given = torch.from_numpy(batch(self.options))

        def forward(x):
            for p in params:
                if kind == "blocks":
                    x = torch.utils.checkpoint.checkpoint(
                        lambda x, p=p: block(self, p, x), x, use_reentrant=False
                    )
                else:
                    x = block(self, p, x)
            return (x * x).mean()

        if kind in BUDGETS:
            import torch._functorch.config

            torch._functorch.config.activation_memory_budget = BUDGETS[kind]
            forward = torch.compile(forward)

        def run():
            optimizer.zero_grad()
            loss = forward(given)
            loss.backward()
            optimizer.step()
            return loss.item()

        return run, dict


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def contestant(name, options):
    engine = Torch if name.startswith("torch") else Tenon
    step, figures = engine(options).step(name.split()[-1])
    before = peak()
    losses, times = [step()], []
    for _ in range(options.steps):
        start = time.perf_counter()
        losses.append(step())
        times.append(1e3 * (time.perf_counter() - start))
    summary = {"ms": statistics.median(times), "loss": losses[-1], "peak": peak() - before}
    print(json.dumps(summary | figures()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (
        ("blocks", 48),
        ("batch", 8),
        ("length", 128),
        ("width", 128),
        ("rounds", 3),
        ("steps", 5),
        ("threads", 2),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--only", help="these contestants, with commas between them")
    parser.add_argument("--contestant", help="this one, in this process")
    options = parser.parse_args()
    if options.contestant:
        return contestant(options.contestant, options)
    names = [
        n for n in CONTESTANTS if not n.startswith("torch") or importlib.util.find_spec("torch")
    ]
    if options.only:
        names = [name for name in names if name in options.only.split(",")]
    results = {name: [] for name in names}
    for _ in range(options.rounds):
        for name in names:
            command = [sys.executable, *sys.argv, "--contestant", name]
            made = subprocess.run(command, check=True, capture_output=True, text=True)
            results[name].append(json.loads(made.stdout.splitlines()[-1]))
    print("contestant      ms    time  arena MB  arena  peak MB   peak  loss")
    for name, rounds in results.items():
        first = results["torch keep" if name.startswith("torch") else "keep"]
        ms, base = (statistics.median(r["ms"] for r in of) for of in (rounds, first))
        arena, full = rounds[0].get("arena", 0), first[0].get("arena", 0)
        most, whole = (statistics.median(r["peak"] for r in of) for of in (rounds, first))
        print(
            f"{name:12} {ms:7.1f} {ms / base:6.2f}x {arena / 1e6:9.1f} "
            f"{arena / full if full else 0:5.2f}x {most / 1e6:8.1f} {most / whole:5.2f}x "
            f"{rounds[0]['loss']!r}"
        )
        if rounds[0].get("report"):
            print(" " * 12, rounds[0]["report"])


if __name__ == "__main__":
    main()
