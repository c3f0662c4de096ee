# SPDX-License-Identifier: Apache-2.0
"""Writes driven.json: trainings in PyTorch whose numbers change from step to step.

    python tests/golden/driven.py > tests/golden/driven.json      # needs torch

One linear layer from zeros on the table of tests/plugins/trainer (`table(16)`), all rows in each
step, SGD at 2 in float64. The scores are divided by a temperature. "schedules": it goes from 4
to 1 in a line over 8 steps, while weight decay falls from 0.1 along half a cosine. "follow": it
goes from 4 to 1 as the loss of the step before goes from 0.6931 to 0.66, and never back.
"plateau": it is halved after more than one step whose loss is not a tenth better than the best.
"""

import json
import math

import torch

STEPS = 8


def table(rows):
    a = [round(i * 37 % 101 / 101, 6) for i in range(rows)]
    b = [round(i * 53 % 103 / 103, 6) for i in range(rows)]
    x = torch.tensor([a, b], dtype=torch.float64).T
    return x, torch.tensor([int(p > q) for p, q in zip(a, b)])


def train(temperature, decay):
    """temperature and decay: functions of the step and the losses so far."""
    x, y = table(16)
    w = torch.zeros(2, 2, dtype=torch.float64, requires_grad=True)
    losses, temperatures = [], []
    for step in range(STEPS):
        temperatures.append(temperature(step, losses))
        loss = torch.nn.functional.cross_entropy(x @ w / temperatures[-1], y)
        (gradient,) = torch.autograd.grad(loss, w)
        with torch.no_grad():
            w -= 2 * (gradient + decay(step, losses) * w)
        losses.append(loss.item())
    return {"temperatures": temperatures, "losses": losses, "w": w.detach().flatten().tolist()}


def following(_, losses):
    share = 0.0
    for loss in losses:
        share = max(share, min(1.0, (0.6931 - loss) / (0.6931 - 0.66)))
    return 4 - 3 * share


def cut(_, losses):
    """torch's ReduceLROnPlateau drives it in place of a learning rate."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=4.0)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, factor=0.5, patience=1, threshold=0.1
    )
    for loss in losses:
        plateau.step(loss)
    return optimizer.param_groups[0]["lr"]


if __name__ == "__main__":
    none = lambda step, losses: 0.0  # noqa: E731
    traces = {
        "schedules": train(
            lambda step, _: 4 - 3 * step / STEPS,
            lambda step, _: 0.05 * (1 + math.cos(math.pi * step / STEPS)),
        ),
        "follow": train(following, none),
        "plateau": train(cut, none),
    }
    print(
        json.dumps({"source": f"torch {torch.__version__}, by driven.py beside this file"} | traces)
    )
