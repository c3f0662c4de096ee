# SPDX-License-Identifier: Apache-2.0
"""Writes losses.json: losses and their gradients by PyTorch, in float64.

    python tests/golden/losses.py > tests/golden/losses.json      # needs torch

Each case has the component, its options, prediction and target, the loss, and its gradient by the
prediction. Numbers are multiples of 1/64, so that they are the same in float32.
"""

import json

import torch
import torch.nn.functional as F


def numbers(*shape, seed):
    made = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return ((made * 64).round() / 64).requires_grad_()


def shares(*shape, seed):
    """Rows that sum to 1 in eighths, some of them 0."""
    picks = torch.randint(shape[1], (shape[0], 8), generator=torch.Generator().manual_seed(seed))
    return F.one_hot(picks, shape[1]).sum(1).double() / 8


def over_others(logits, labels, e):
    """He et al. 2019: 1 - e for the class, e/(K - 1) for each other."""
    k = logits.shape[1]
    q = torch.full_like(logits, e / (k - 1)).detach()
    q.scatter_(1, labels[:, None], 1 - e)
    return -(q * logits.log_softmax(1)).sum(1).mean()


X, MAP, K = numbers(4, 5, seed=1), numbers(2, 3, 2, 2, seed=2), shares(4, 5, seed=3)
Y = torch.tensor([0, 4, 2, 2])
Y_MAP = torch.tensor([[[0, 1], [2, 1]], [[2, 2], [0, 1]]])
T = numbers(4, 5, seed=4).detach()

CASES = [
    ("cross_entropy", {}, X, Y, lambda: F.cross_entropy(X, Y)),
    (
        "cross_entropy",
        {"label_smoothing": 0.125},
        X,
        Y,
        lambda: F.cross_entropy(X, Y, label_smoothing=0.125),
    ),
    (
        "cross_entropy",
        {"label_smoothing": 0.125, "smoothing_over": "others"},
        X,
        Y,
        lambda: over_others(X, Y, 0.125),
    ),
    ("cross_entropy", {"ignore_index": 2}, X, Y, lambda: F.cross_entropy(X, Y, ignore_index=2)),
    ("cross_entropy", {}, MAP, Y_MAP, lambda: F.cross_entropy(MAP, Y_MAP)),
    ("cross_entropy", {}, X, K, lambda: F.cross_entropy(X, K)),
    (
        "cross_entropy",
        {"label_smoothing": 0.25},
        X,
        K,
        lambda: F.cross_entropy(X, K, label_smoothing=0.25),
    ),
    ("mse", {}, X, T, lambda: F.mse_loss(X, T)),
    ("kl", {}, X, K, lambda: F.kl_div(X.log_softmax(1), K, reduction="batchmean")),
    (
        "kl",
        {"target": "logits"},
        X,
        T,
        lambda: F.kl_div(
            X.log_softmax(1), T.log_softmax(1), reduction="batchmean", log_target=True
        ),
    ),
]


def case(name, options, prediction, target, loss):
    value = loss()
    (gradient,) = torch.autograd.grad(value, prediction)
    return {
        "loss": f"trainer.{name}",
        "options": options,
        "shape": list(prediction.shape),
        "prediction": prediction.flatten().tolist(),
        "target_shape": list(target.shape),
        "target_is_float": target.is_floating_point(),
        "target": target.flatten().tolist(),
        "value": value.item(),
        "gradient": gradient.flatten().tolist(),
    }


if __name__ == "__main__":
    source = f"torch {torch.__version__}, torch/nn/functional.py, by losses.py beside this file"
    print(json.dumps({"source": source, "cases": [case(*one) for one in CASES]}))
