# SPDX-License-Identifier: Apache-2.0
"""Writes grad_scaler.json: PyTorch's GradScaler, interrupted and gone on with.

    python tests/golden/grad_scaler.py > tests/golden/grad_scaler.json      # needs torch

Each case has the state_dict and the parameter of a scaler that has been in use, the inputs of the
next steps (1, or 0 for infinity, -1 for NaN), and scale, growth tracker and parameter after each.
The loss is parameter times input, by SGD with rate 0.1.
"""

import json
import random

import torch

RATE, BEFORE, AFTER = 0.1, 11, 25
KINDS = {1: 1.0, 0: float("inf"), -1: float("nan")}
SETTINGS = [
    {"init_scale": 65536.0, "growth_interval": 3},
    {"init_scale": 1000.7, "growth_factor": 3.3, "backoff_factor": 0.77, "growth_interval": 1},
    {"init_scale": 2.0**126, "growth_interval": 2, "backoff_factor": 0.9},
    {"init_scale": 1e-3, "growth_factor": 1.0001, "backoff_factor": 0.1, "growth_interval": 5},
]


def case(settings, seed):
    rng = random.Random(seed)
    scaler = torch.amp.GradScaler("cpu", **settings)
    parameter = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([parameter], lr=RATE)

    def step(kind):
        optimizer.zero_grad()
        scaler.scale((parameter * torch.tensor([KINDS[kind]])).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    kinds = [rng.choice([1, 1, 1, 1, 0, -1]) for _ in range(BEFORE + AFTER)]
    for kind in kinds[:BEFORE]:
        step(kind)
    begin = {"state_dict": scaler.state_dict(), "parameter": parameter.item()}
    after = []
    for kind in kinds[BEFORE:]:
        step(kind)
        state = scaler.state_dict()
        after.append([state["scale"], state["_growth_tracker"], parameter.item()])
    return begin | {"inputs": kinds[BEFORE:], "after": after}


if __name__ == "__main__":
    source = f"torch {torch.__version__}, torch/amp/grad_scaler.py, by grad_scaler.py beside this"
    cases = [case(settings, seed) for seed, settings in enumerate(SETTINGS)]
    print(json.dumps({"source": source, "rate": RATE, "cases": cases}))
