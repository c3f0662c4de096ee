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


def focal(z, t, alpha=None, gamma=2.0):
    """Lin et al. 2017, equation 5; the lines are those of torchvision.ops.sigmoid_focal_loss."""
    p = z.sigmoid()
    ce = F.binary_cross_entropy_with_logits(z, t, reduction="none")
    loss = ce * (1 - (p * t + (1 - p) * (1 - t))) ** gamma
    return loss if alpha is None else (alpha * t + (1 - alpha) * (1 - t)) * loss


def ctc(logits, target, lengths=None, blank=0, layout="ntc", by_length=True, **options):
    scores = logits.log_softmax(2)
    if layout == "ntc":
        scores = scores.transpose(0, 1)
    frames = torch.full((len(target),), scores.shape[0]) if lengths is None else lengths
    counts = (target >= 0).sum(1)
    kept = F.ctc_loss(scores, target, frames, counts, blank, reduction="none", **options)
    return (kept / counts.clamp(min=1) if by_length else kept).mean()


X, MAP, K = numbers(4, 5, seed=1), numbers(2, 3, 2, 2, seed=2), shares(4, 5, seed=3)
Y = torch.tensor([0, 4, 2, 2])
Y_MAP = torch.tensor([[[0, 1], [2, 1]], [[2, 2], [0, 1]]])
T = numbers(4, 5, seed=4).detach()
YES = torch.tensor(
    [[1.0, 0, 0, 1, 0], [0, 0, 1, 1, 1], [0, 1, 0, 0, 0], [1, 0.5, 0.25, 0, 1]]
).double()
P = ((numbers(4, 5, seed=5).detach().sigmoid() * 64).round() / 64).clamp(1 / 64, 63 / 64)
P.requires_grad_()
W = torch.tensor([0.5, 1, 2, 3, 0.25]).double()
FRAMES = numbers(3, 7, 4, seed=6)
TEXT = torch.tensor([[1, 1, 2], [3, -1, -1], [2, 3, 2]])
SOME = torch.tensor([7, 4, 5])
TOO_MANY = torch.tensor([[1], [2], [3], [1], [-1], [2], [3]])
NOT_LAST = torch.tensor([[1, 1, 2], [0, -1, -1], [2, 0, 2]])  # 3 is the blank
TOO_LONG = torch.tensor([5, 7, 2])  # frames: the last text does not fit

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
    (
        "cross_entropy",
        {"weight": [0.5, 1, 2, 3, 0.25], "label_smoothing": 0.125, "ignore_index": 4},
        X,
        Y,
        lambda: F.cross_entropy(X, Y, W, label_smoothing=0.125, ignore_index=4),
    ),
    (
        "cross_entropy",
        {"weight": [0.5, 1, 2]},
        MAP,
        Y_MAP,
        lambda: F.cross_entropy(MAP, Y_MAP, W[:3]),
    ),
    ("cross_entropy", {"weight": [0.5, 1, 2, 3, 0.25]}, X, K, lambda: F.cross_entropy(X, K, W)),
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
    ("l1", {}, X, T, lambda: F.l1_loss(X, T)),
    ("huber", {}, X, T, lambda: F.huber_loss(X, T)),
    ("huber", {"delta": 0.5}, X, T, lambda: F.huber_loss(X, T, delta=0.5)),
    ("smooth_l1", {}, X, T, lambda: F.smooth_l1_loss(X, T)),
    ("smooth_l1", {"beta": 2}, X, T, lambda: F.smooth_l1_loss(X, T, beta=2)),
    ("bce_with_logits", {}, X, YES, lambda: F.binary_cross_entropy_with_logits(X, YES)),
    (
        "bce_with_logits",
        {"positive_weight": 3},
        X,
        YES,
        lambda: F.binary_cross_entropy_with_logits(X, YES, pos_weight=torch.tensor(3.0)),
    ),
    (
        "bce_with_logits",
        {"positive_weight": [0.5, 1, 2, 3, 0.25]},
        X,
        YES,
        lambda: F.binary_cross_entropy_with_logits(X, YES, pos_weight=W),
    ),
    ("bce", {}, P, YES, lambda: F.binary_cross_entropy(P, YES)),
    ("focal", {"alpha": 0.25}, X, YES, lambda: focal(X, YES, 0.25).mean()),
    ("focal", {"gamma": 0.5}, X, YES, lambda: focal(X, YES, gamma=0.5).mean()),
    ("focal", {"gamma": 0, "alpha": 0.75}, X, YES, lambda: focal(X, YES, 0.75, 0).mean()),
    ("focal", {"divide_by": "positives"}, X, YES, lambda: focal(X, YES).sum() / YES.sum()),
    ("ctc", {}, FRAMES, TEXT, lambda: ctc(FRAMES, TEXT)),
    ("ctc", {"divide_by": "one"}, FRAMES, TEXT, lambda: ctc(FRAMES, TEXT, by_length=False)),
    ("ctc", {"blank": 3}, FRAMES, NOT_LAST, lambda: ctc(FRAMES, NOT_LAST, blank=3)),
    ("ctc", {"layout": "tnc"}, FRAMES, TOO_MANY, lambda: ctc(FRAMES, TOO_MANY, layout="tnc")),
    ("ctc", {}, FRAMES, TEXT, lambda: ctc(FRAMES, TEXT, SOME), SOME),
    (
        "ctc",
        {"zero_infinity": True},
        FRAMES,
        TEXT,
        lambda: ctc(FRAMES, TEXT, TOO_LONG, zero_infinity=True),
        TOO_LONG,
    ),
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


def case(name, options, prediction, target, loss, lengths=None):
    value = loss()
    (gradient,) = torch.autograd.grad(value, prediction)
    more = {} if lengths is None else {"lengths": lengths.tolist()}
    return more | {
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
