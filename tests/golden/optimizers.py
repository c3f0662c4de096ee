# SPDX-License-Identifier: Apache-2.0
"""Writes optimizers.json: parameters and states over six steps of each optimizer, in float64.

    python tests/golden/optimizers.py > tests/golden/optimizers.json      # needs torch

Each step goes down f = 1/2 sum c w^2 over three tensors, so the gradient is c w. SGD, Adam, AdamW
and RMSprop are PyTorch's own. LAMB, LARS and Lion are the formulas of their papers in NumPy, here.
Rates are powers of two, which float32 holds, and change, so that it shows where they come in.
"""

import json
import sys

import numpy as np
import torch

RATES = [2**-6, 2**-6, 2**-5, 2**-7, 2**-7, 2**-6]
START = {
    "w": [[1, -2, 3], [0.5, 0.25, -1]],
    "b": [0.75, -0.125, 0],
    "k": [[[[2], [-1]]], [[[0.5], [1.5]]]],
}
CURVES = {
    "w": [[1, 10, 0.1], [2, 0.5, 4]],
    "b": [3, 20, 1],
    "k": [[[[0.2], [6]]], [[[1], [0]]]],
}


def arrays(given):
    return {name: np.array(values, dtype="f8") for name, values in given.items()}


def by_torch(made, **options):
    p = {n: torch.tensor(v, dtype=torch.float64, requires_grad=True) for n, v in START.items()}
    decay = options.pop("weight_decay", 0)
    plain = options.pop("plain", [])
    groups = [
        {"params": [v for n, v in p.items() if n not in plain], "weight_decay": decay},
        {"params": [v for n, v in p.items() if n in plain], "weight_decay": 0},
    ]
    optimizer = made([g for g in groups if g["params"]], lr=1, **options)
    trace = []
    for rate in RATES:
        for group in optimizer.param_groups:
            group["lr"] = rate
        for name, value in p.items():
            value.grad = torch.tensor(CURVES[name], dtype=torch.float64) * value.detach()
        optimizer.step()
        trace.append({name: value.detach().numpy().copy() for name, value in p.items()})
    states = {
        f"{name}/{word}": state.numpy()
        for name, value in p.items()
        for word, state in optimizer.state[value].items()
        if word != "step" and state is not None
    }
    return trace, states


def by_hand(update):
    """update(name, w, g, state, rate, t) gives the next w; state is a dict that it fills."""
    p, states, trace = arrays(START), {}, []
    for t, rate in enumerate(RATES, 1):
        for name, c in arrays(CURVES).items():
            state = states.setdefault(name, {})
            p[name] = update(name, p[name], c * p[name], state, rate, t)
        trace.append({name: value.copy() for name, value in p.items()})
    return trace, {f"{n}/{word}": s for n, state in states.items() for word, s in state.items()}


def moved(state, word, beta, x):
    """beta s + (1 - beta) x"""
    state[word] = beta * state.get(word, np.zeros_like(x)) + (1 - beta) * x
    return state[word]


def lamb(decay, vectors=False, largest=0.0):
    """You et al. 2020, algorithm 2, with the identity for the function of the norm."""

    def update(name, w, g, state, rate, t):
        m = moved(state, "exp_avg", 0.9, g) / (1 - 0.9**t)
        v = moved(state, "exp_avg_sq", 0.999, g * g) / (1 - 0.999**t)
        u = m / (np.sqrt(v) + 1e-6) + decay * w
        ratio = 1.0
        size, length = np.linalg.norm(w.ravel()), np.linalg.norm(u.ravel())
        if (w.ndim > 1 or vectors) and size > 0 and length > 0:
            ratio = size / length
        return w - rate * (min(ratio, largest) if largest else ratio) * u

    return by_hand(update)


def lars(decay, vectors=False, clip=False, trust=0.001):
    """You, Gitman & Ginsburg 2017, algorithm 1."""

    def update(name, w, g, state, rate, t):
        local = rate
        size = np.linalg.norm(w.ravel())
        below = np.linalg.norm(g.ravel()) + decay * size
        if (w.ndim > 1 or vectors) and size > 0 and below > 0:
            ratio = trust * size / below
            local = min(rate, ratio) if clip else rate * ratio
        before = state.get("momentum_buffer", 0 * w)
        state["momentum_buffer"] = 0.9 * before + local * (g + decay * w)
        return w - state["momentum_buffer"]

    return by_hand(update)


def lion(decay):
    """Chen et al. 2023, algorithm 2."""

    def update(name, w, g, state, rate, t):
        m = state.get("exp_avg", 0 * w)
        direction = np.sign(0.9 * m + (1 - 0.9) * g)
        moved(state, "exp_avg", 0.99, g)
        return w - rate * (direction + decay * w)

    return by_hand(update)


SGD, ADAM, ADAMW, RMS = (getattr(torch.optim, n) for n in ("SGD", "Adam", "AdamW", "RMSprop"))
CENTERED = {"centered": True, "momentum": 0.75, "weight_decay": 0.125}
NESTEROV = {"momentum": 0.875, "nesterov": True}
ADAFACTOR = torch.optim.Adafactor

CASES = [
    ("sgd", {}, by_torch(SGD)),
    ("sgd", {"weight_decay": 0.125}, by_torch(SGD, weight_decay=0.125)),
    ("sgd", {"momentum": 0.875}, by_torch(SGD, momentum=0.875)),
    ("sgd", NESTEROV, by_torch(SGD, **NESTEROV)),
    ("sgd", NESTEROV | {"weight_decay": 0.125}, by_torch(SGD, **NESTEROV, weight_decay=0.125)),
    ("adam", {}, by_torch(ADAM)),
    ("adam", {"weight_decay": 0.125}, by_torch(ADAM, weight_decay=0.125)),
    (
        "adam",
        {"weight_decay": 0.125, "decay_vectors": False, "beta1": 0.75, "beta2": 0.875},
        by_torch(ADAM, weight_decay=0.125, plain=["b"], betas=(0.75, 0.875)),
    ),
    ("adamw", {"weight_decay": 0}, by_torch(ADAMW)),
    ("adamw", {"weight_decay": 0.125}, by_torch(ADAMW, weight_decay=0.125)),
    (
        "adamw",
        {"weight_decay": 0.125, "no_decay": ["k", "w"]},
        by_torch(ADAMW, weight_decay=0.125, plain=["k", "w"]),
    ),
    ("rmsprop", {}, by_torch(RMS)),
    ("rmsprop", {"weight_decay": 0.125}, by_torch(RMS, weight_decay=0.125)),
    ("rmsprop", {"alpha": 0.875, "momentum": 0.75}, by_torch(RMS, alpha=0.875, momentum=0.75)),
    ("rmsprop", CENTERED, by_torch(RMS, **CENTERED)),
    ("lamb", {"weight_decay": 0}, lamb(0)),
    ("lamb", {"weight_decay": 0.125}, lamb(0.125)),
    ("lamb", {"weight_decay": 0.125, "adapt_vectors": True}, lamb(0.125, vectors=True)),
    ("lamb", {"weight_decay": 0, "largest_ratio": 1}, lamb(0, largest=1)),
    ("lars", {}, lars(0)),
    ("lars", {"weight_decay": 0.125}, lars(0.125)),
    ("lars", {"weight_decay": 0.125, "adapt_vectors": True}, lars(0.125, vectors=True)),
    ("lars", {"clip": True, "trust": 0.0625}, lars(0, clip=True, trust=0.0625)),
    ("adafactor", {}, by_torch(ADAFACTOR)),
    ("adafactor", {"weight_decay": 0.125}, by_torch(ADAFACTOR, weight_decay=0.125)),
    (
        "adafactor",
        {"beta2_decay": -0.5, "smallest_scale": 2.0, "clip": 1.5, "epsilon": 0.125},
        by_torch(ADAFACTOR, beta2_decay=-0.5, eps=(0.125, 2.0), d=1.5),
    ),
    ("adamw_8bit", {"weight_decay": 0}, by_torch(ADAMW)),
    ("adamw_8bit", {"weight_decay": 0.125}, by_torch(ADAMW, weight_decay=0.125)),
    ("lion", {}, lion(0)),
    ("lion", {"weight_decay": 0.125}, lion(0.125)),
]


def case(name, options, made):
    trace, states = made
    return {
        "optimizer": f"trainer.{name}",
        "options": options,
        "steps": [{n: value.ravel().tolist() for n, value in step.items()} for step in trace],
        "states": {n: np.asarray(value).ravel().tolist() for n, value in states.items()},
    }


if __name__ == "__main__":
    source = (
        f"torch {torch.__version__}: sgd, adam, adamw, rmsprop, adafactor; lamb, lars, lion: the "
        "formulas of their papers in NumPy; all float64, by optimizers.py beside this file"
    )
    shapes = {name: list(value.shape) for name, value in arrays(START).items()}
    start = {name: value.ravel().tolist() for name, value in arrays(START).items()}
    curves = {name: value.ravel().tolist() for name, value in arrays(CURVES).items()}
    out = {"source": source, "shapes": shapes, "start": start, "curves": curves, "rates": RATES}
    json.dump(out | {"cases": [case(*one) for one in CASES]}, sys.stdout)
