# SPDX-License-Identifier: Apache-2.0
"""Writes schedules.json: learning rates of PyTorch's own schedulers, step by step.

    python tests/golden/schedules.py > tests/golden/schedules.json      # needs torch

Each trace has the component and the options that must give the same numbers.
"""

import json

import torch
from torch.optim import lr_scheduler as lr

N = 40


def trace(base, make, n):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=base, momentum=0.9)
    scheduler = make(optimizer)
    values = []
    for _ in range(n):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return values


def length(name, options):
    """OneCycleLR allows one step beyond its end, and its line goes on there."""
    return options["steps"] if name == "one_cycle" else N


def warm_cosine(optimizer):
    warm = lr.LinearLR(optimizer, start_factor=0.1, end_factor=1.0, total_iters=8)
    cosine = lr.CosineAnnealingLR(optimizer, T_max=32, eta_min=1e-4)
    return lr.SequentialLR(optimizer, [warm, cosine], milestones=[8])


CASES = [
    ("step", {"base": 0.1, "every": 7, "gamma": 0.5}, lambda o: lr.StepLR(o, 7, 0.5)),
    (
        "multistep",
        {"base": 0.1, "milestones": [5, 12, 30]},
        lambda o: lr.MultiStepLR(o, [5, 12, 30]),
    ),
    (
        "linear",
        {"from": 0.1 * 0.25, "to": 0.1, "steps": 16},
        lambda o: lr.LinearLR(o, 0.25, 1.0, 16),
    ),
    ("exponential", {"base": 0.1, "gamma": 0.93}, lambda o: lr.ExponentialLR(o, 0.93)),
    (
        "polynomial",
        {"base": 0.1, "power": 2.5, "steps": 30},
        lambda o: lr.PolynomialLR(o, total_iters=30, power=2.5),
    ),
    (
        "cosine",
        {"base": 0.1, "end": 1e-3, "steps": 39},
        lambda o: lr.CosineAnnealingLR(o, T_max=39, eta_min=1e-3),
    ),
    (
        "cosine",
        {"base": 0.1, "end": 1e-4, "steps": 32, "warmup": 8, "warmup_from": 0.1},
        warm_cosine,
    ),
    (
        "restarts",
        {"base": 0.1, "period": 7, "end": 1e-3},
        lambda o: lr.CosineAnnealingWarmRestarts(o, 7, eta_min=1e-3),
    ),
    (
        "restarts",
        {"base": 0.1, "period": 4, "factor": 2},
        lambda o: lr.CosineAnnealingWarmRestarts(o, 4, 2),
    ),
    ("one_cycle", {"base": 0.1, "steps": 40}, lambda o: lr.OneCycleLR(o, 0.1, total_steps=40)),
    (
        "one_cycle",
        {
            "base": 0.1,
            "steps": 33,
            "rise": 0.4,
            "div": 10,
            "final_div": 100,
            "shape": "linear",
            "three_phases": True,
        },
        lambda o: lr.OneCycleLR(
            o,
            0.1,
            total_steps=33,
            pct_start=0.4,
            anneal_strategy="linear",
            div_factor=10,
            final_div_factor=100,
            three_phase=True,
        ),
    ),
]

# Measured values; the last ones of each improve by less than the threshold.
LOSSES = [1, 0.9, 0.9, 0.9, 0.9, 0.9, 0.5, 0.49996, 0.5, 0.5, 0.5, 0.6, 0.5, 0.4, 0.4, 0.4, 0.4]
SCORES = [0.5, 0.6, 0.6, 0.6, 0.7, 0.69, 0.69, 0.7, 0.70001, 0.7, 0.7, 0.8, 0.8, 0.8]
PLATEAUS = [
    (LOSSES, {"factor": 0.1, "patience": 2}, {}),
    (LOSSES, {"factor": 0.5, "patience": 1, "cooldown": 2, "lowest": 0.04}, {"min_lr": 0.04}),
    (SCORES, {"factor": 0.5, "patience": 1, "threshold": 0.01}, {"mode": "max"}),
]


def plateau(values, options, more):
    """The rate after each value, beginning with 0.1."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    given = {key: value for key, value in options.items() if key != "lowest"} | more
    scheduler = lr.ReduceLROnPlateau(optimizer, **given)
    rates = []
    for value in values:
        scheduler.step(value)
        rates.append(optimizer.param_groups[0]["lr"])
    higher = more.get("mode") == "max"
    return {"options": options, "higher_is_better": higher, "values": values, "rates": rates}


if __name__ == "__main__":
    traces = [
        {
            "schedule": f"scheduler.{name}",
            "options": options,
            "values": trace(0.1, make, length(name, options)),
        }
        for name, options, make in CASES
    ]
    source = (
        f"torch {torch.__version__}, torch/optim/lr_scheduler.py, by schedules.py beside this file"
    )
    plateaus = [plateau(*one) for one in PLATEAUS]
    print(json.dumps({"source": source, "traces": traces, "plateaus": plateaus}))
