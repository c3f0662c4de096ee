# SPDX-License-Identifier: Apache-2.0
"""Writes curves.json: the losses of 50 training steps by PyTorch, in float64.

    PYTHONPATH=build/release/python python tests/golden/curves.py > tests/golden/curves.json

needs torch. Networks and their first weights are those of bindings/python/examples/mnist.py; the
test draws the same batches from here.
"""

import importlib.util
import json
import pathlib
import sys

import numpy as np

STEPS, BATCH = 50, 64
EXAMPLE = pathlib.Path(__file__).parents[2] / "bindings" / "python" / "examples" / "mnist.py"
OPTIMIZERS = {
    "sgd": {"lr": 0.005, "momentum": 0.9},
    "adamw": {"lr": 2e-4, "weight_decay": 0.01},
}


def example():
    spec = importlib.util.spec_from_file_location("mnist", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def batches():
    """Random images, labelled by which of ten random templates each is nearest to."""
    random = np.random.default_rng(11)
    templates = random.standard_normal((784, 10))
    for _ in range(STEPS):
        x = random.random((BATCH, 1, 28, 28)).astype("f")
        yield x, (x.reshape(BATCH, 784) @ templates).argmax(-1)


def torch_network(kind: str, p, x):
    import torch.nn.functional as F

    if kind == "mlp":
        return F.relu(x.flatten(1) @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]
    h = F.max_pool2d(F.relu(F.conv2d(x, p["c1"], p["b1"], padding=2)), 2)
    h = F.max_pool2d(F.relu(F.conv2d(h, p["c2"], p["b2"], padding=2)), 2)
    return h.flatten(1) @ p["w"] + p["b"]


def torch_curve(kind: str, optimizer: str) -> list[float]:
    import torch

    weights = example().NETWORKS[kind][1](np.random.default_rng(0))
    p = {name: torch.from_numpy(w).double().requires_grad_() for name, w in weights.items()}
    made = {"sgd": torch.optim.SGD, "adamw": torch.optim.AdamW}[optimizer]
    update = made(p.values(), **OPTIMIZERS[optimizer])
    losses = []
    for x, y in batches():
        update.zero_grad()
        scores = torch_network(kind, p, torch.from_numpy(x).double())
        loss = torch.nn.functional.cross_entropy(scores, torch.from_numpy(y))
        loss.backward()
        update.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    import torch

    curves = {
        f"{kind}/{optimizer}": torch_curve(kind, optimizer)
        for kind in ("mlp", "cnn")
        for optimizer in OPTIMIZERS
    }
    json.dump({"source": f"PyTorch {torch.__version__}, float64", "curves": curves}, sys.stdout)


if __name__ == "__main__":
    main()
