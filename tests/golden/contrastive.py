# SPDX-License-Identifier: Apache-2.0
"""Writes contrastive.json: losses of several vectors a sample and their gradients, in float64.

    python tests/golden/contrastive.py > tests/golden/contrastive.json      # needs torch

Triplet is PyTorch's triplet_margin_loss, InfoNCE cross_entropy of the matrix of scores.
"""

import json

import torch
import torch.nn.functional as F


def numbers(seed):
    made = torch.randn(5, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return ((made * 64).round() / 64).requires_grad_()


def nce(a, b, temperature=0.07, both=False, normalize=True):
    if normalize:
        a, b = F.normalize(a), F.normalize(b)
    scores, places = a @ b.T / temperature, torch.arange(len(a))
    one = F.cross_entropy(scores, places)
    return (one + F.cross_entropy(scores.T, places)) / 2 if both else one


CASES = [
    ("triplet", {}, 3, F.triplet_margin_loss),
    ("triplet", {"margin": 0.25, "swap": True}, 3, F.triplet_margin_loss),
    ("info_nce", {}, 2, nce),
    ("info_nce", {"temperature": 0.5, "both": True}, 2, nce),
    ("info_nce", {"temperature": 1.0, "normalize": False}, 2, nce),
]


def case(name, options, count, function):
    vectors = [numbers(seed) for seed in range(count)]
    loss = function(*vectors, **options)
    return {
        "loss": f"trainer.{name}",
        "options": options,
        "predictions": [one.flatten().tolist() for one in vectors],
        "value": loss.item(),
        "gradients": [g.flatten().tolist() for g in torch.autograd.grad(loss, vectors)],
    }


if __name__ == "__main__":
    source = f"torch {torch.__version__}, by contrastive.py beside this file"
    print(json.dumps({"source": source, "cases": [case(*one) for one in CASES]}))
