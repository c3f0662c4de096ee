# SPDX-License-Identifier: Apache-2.0
"""Trials of training: ways that must lead to the same weights, on a random network.

A trial takes (network, rng, folder), trains a few steps in two ways, and raises `Finding` where
they part; it returns False where it does not apply. To add one: a function and its row in `TRIALS`.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import tenon as tn
from agreement import Finding, same
from growth import Network, pick

OPTIMIZERS = ["sgd", "adamw", "adam", "rmsprop", "lamb", "lars", "lion", "adafactor", "adamw_8bit"]


def drawn(rng: np.random.Generator) -> dict:
    """Options of a training of two epochs of three steps."""
    name = pick(rng, OPTIMIZERS)
    more = {"momentum": pick(rng, [0.0, 0.9])} if name in ("sgd", "lars", "rmsprop") else {}
    optimizer = getattr(tn.optim, name)(lr=1e-3, **more)
    options = {"optimizer": optimizer, "seed": int(rng.integers(1000))}
    if rng.integers(2):
        options["clip_norm"] = float(rng.uniform(0.1, 2))
    return {"epochs": 2, "batch": 4, **options}


def weights(model: tn.Model) -> dict[str, np.ndarray]:
    return {name: np.asarray(x) for name, x in model.constants().items()}


def losses(model: tn.Model) -> np.ndarray:
    return np.array([record["loss"] for record in model.report["history"]])


def agree(what: str, got: tn.Model, wanted: tn.Model, tolerance: float) -> None:
    """Losses within the tolerance; with 0 all weights too, to the bit."""
    same(f"{what}: losses", losses(got), losses(wanted), tolerance)
    if tolerance == 0:
        other = weights(got)
        for name, x in weights(wanted).items():
            same(f"{what}: {name}", other[name], x, 0)


def on_backends(network: Network, rng, folder: Path) -> bool:
    options = drawn(rng)
    plain = tn.train(network.model, network.data, backend="reference", **options)
    fused = tn.train(network.model, network.data, backend="onednn", **options)
    agree(f"onednn beside reference, {options}", fused, plain, 2e-3)
    return True


def recomputed(network: Network, rng, folder: Path) -> bool:
    options = {**drawn(rng), "backend": "reference"}
    plain = tn.train(network.model, network.data, **options)
    again = tn.train(network.model, network.data, joint={"autodiff.recompute": {}}, **options)
    agree(f"recomputed, {options}", again, plain, 0)
    return True


def resumed(network: Network, rng, folder: Path) -> bool:
    options = {**drawn(rng), "backend": pick(rng, ["reference", "onednn"])}
    whole = tn.train(network.model, network.data, **options)
    kept, last = {**options, "run": str(folder / "run")}, int(rng.integers(1, 6))

    def step(point):
        if point["step"] == last:
            raise InterruptedError

    with contextlib.suppress(InterruptedError):
        tn.train(network.model, network.data, callbacks=[tn.callback(step=step)], **kept)
    rest = tn.train(network.model, network.data, resume=True, **kept)
    for name, x in weights(whole).items():
        same(f"resumed, {options}: {name}", weights(rest)[name], x, 0)
    return True


def accumulated(network: Network, rng, folder: Path) -> bool:
    """Two batches of 2 are one of 4, where samples do not see each other."""
    if network.has_batch_statistics:
        return False
    options = {**drawn(rng), "shuffle": False}
    one = tn.train(network.model, network.data, **options)
    two = tn.train(network.model, network.data, **{**options, "batch": 2, "accumulate": 2})
    agree(f"accumulated, {options}", two, one, 2e-3)
    return True


def by_threads(network: Network, rng, folder: Path) -> bool:
    options = drawn(rng)
    made = [tn.train(network.model, network.data, threads=n, **options) for n in (1, 2, 2)]
    agree(f"two threads beside one, {options}", made[1], made[0], 2e-3)
    agree(f"two threads once more, {options}", made[2], made[1], 0)
    return True


def falls(network: Network, rng, folder: Path) -> bool:
    """Plain descent with a small rate lowers the loss of the batch that it is made for."""
    options = {"epochs": 6, "batch": len(network.x), "rate": 1e-3, "optimizer": "trainer.sgd"}
    history = losses(tn.train(network.model, network.data, shuffle=False, **options))
    if not history[-1] < history[0]:
        raise Finding(f"the loss goes {history}")
    return True


TRIALS = [on_backends, recomputed, resumed, accumulated, by_threads, falls]
