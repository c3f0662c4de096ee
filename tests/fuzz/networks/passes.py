# SPDX-License-Identifier: Apache-2.0
"""Trials of passes: what a pass promises about the model that it makes, on a random network.

A trial takes (network, rng, folder) and raises `Finding` where a promise is broken; it returns
False where the pass had nothing to do. To add one: a function and its row in `TRIALS`.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import tenon as tn
from agreement import Finding, noise_db, same
from growth import Network, pick

try:
    import onnxruntime
except ImportError:  # tests/bench/requirements.txt has it
    onnxruntime = None

EXACT = 2e-4  # of float32 results that were computed in another order
BACKENDS = ["reference", "onednn"]


def run(model: tn.Model, x: np.ndarray, backend: str = "reference", **options) -> np.ndarray:
    return np.asarray(model.compile(backend=backend, **options)(x)[0])


def by_peer(path: Path, x: np.ndarray) -> dict[str, np.ndarray]:
    """ONNX Runtime's answer for a file, where it is installed."""
    if onnxruntime is None:
        return {}
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return {"ONNX Runtime": session.run(None, {session.get_inputs()[0].name: x})[0]}


def on_all_backends(what: str, model: tn.Model, x, wanted: np.ndarray, tolerance: float) -> None:
    for backend in BACKENDS:
        same(f"{what} on {backend}", run(model, x, backend), wanted, tolerance)


@functools.cache
def rewrites() -> list[str]:
    """All passes of `fusion`: none changes results."""
    return [one["id"] for one in tn.components("pass") if one["id"].startswith("fusion.")]


def rewritten(network: Network, rng, folder: Path) -> bool:
    wanted = run(network.model, network.x)
    on_all_backends("the network", network.model, network.x, wanted, EXACT)
    for id in rewrites():
        on_all_backends(id, network.model.apply(id), network.x, wanted, EXACT)
    return True


def in_a_file(network: Network, rng, folder: Path) -> bool:
    """Saved as ONNX: the same numbers here, but for attributes such as an epsilon, which ONNX keeps
    in float32; close ones in ONNX Runtime."""
    model = network.model.apply("fusion.default") if rng.integers(2) else network.model
    path = folder / "network.onnx"
    model.save(path)
    wanted = run(model, network.x)
    same("read again", run(tn.load(path), network.x), wanted, 1e-6)
    for name, result in by_peer(path, network.x).items():
        same(name, result, wanted, EXACT)
    return True


def fewer_channels(network: Network, rng, folder: Path) -> bool:
    """Removed equals masked, and no more than the ratio is gone."""
    options = {"ratio": float(rng.uniform(0.1, 0.8)), "scope": pick(rng, ["local", "global"])}
    options["importance"] = pick(rng, ["l1", "l2", "random"])
    model = network.model.apply("fusion.default")
    try:
        removed = model.apply("pruner.structured", **options)
    except tn.FailedPrecondition:  # no channel that may go: a network of one layer
        return False
    masked = model.apply("pruner.structured", apply="mask", **options)
    on_all_backends(f"removed {options}", removed, network.x, run(masked, network.x), EXACT)
    return removed.text() != model.text()


def fewer_weights(network: Network, rng, folder: Path) -> bool:
    """At least the share that was asked for is 0, and kernels for zeros compute the same."""
    share = float(rng.uniform(0.3, 0.95))
    model = network.model.apply("fusion.default")
    sparse = model.apply("pruner.unstructured", sparsity=share)
    on_all_backends(f"sparse {share}", sparse, network.x, run(sparse, network.x), EXACT)
    return sparse.text() != model.text()


def of_full_rank(network: Network, rng, folder: Path) -> bool:
    """A decomposition that keeps all of the energy changes nothing but rounding."""
    id = pick(rng, ["decomposer.svd", "decomposer.spatial", "decomposer.tucker2"])
    apart = network.model.apply("fusion.default").apply(id, rank="energy", energy=1.0)
    on_all_backends(id, apart, network.x, run(network.model, network.x), 10 * EXACT)
    return apart.text() != network.model.text()


def prepared(network: Network, rng, folder: Path) -> bool:
    """Preparations move factors between layers; in floating point nothing changes."""
    id = pick(rng, ["quantizer.equalize", "quantizer.smooth", "quantizer.awq"])
    options = {} if id == "quantizer.equalize" else {"data": {"x": network.x}}
    model = network.model.apply("fusion.default")
    ready = model.apply(id, **options)
    on_all_backends(id, ready, network.x, run(model, network.x), 5 * EXACT)
    return ready.text() != model.text()


def quantized(network: Network, rng, folder: Path) -> bool:
    """In 8 bits, or 4: two backends and ONNX Runtime are closer to each other than to float."""
    calibration = {"x": network.x}
    id = pick(
        rng, ["quantizer.static", "quantizer.static", "quantizer.dynamic", "quantizer.weights"]
    )
    options = {}
    if id == "quantizer.static":
        options = {"data": calibration, "observer": pick(rng, ["minmax", "percentile", "mse"])}
    if id == "quantizer.weights":
        options = {"bits": pick(rng, [4, 8])}
    model = network.model.apply("fusion.default").apply(id, **options)
    exact, plain = run(network.model, network.x), run(model, network.x)
    loss = noise_db(plain, exact)
    path = folder / "quantized.onnx"
    model.save(path)
    others = {"onednn": run(model, network.x, "onednn"), **by_peer(path, network.x)}
    if loss < 8 and id != "quantizer.weights":
        raise Finding(f"{id} {options}: {loss:.1f} dB are left")
    for name, result in others.items():
        between = noise_db(result, plain)
        if between < loss - 3 and between < 40:
            raise Finding(f"{id} on {name}: {between:.1f} dB from reference, float {loss:.1f} dB")
    return model.text() != network.model.text()


def in_half(network: Network, rng, folder: Path) -> bool:
    dtype = pick(rng, ["bfloat16", "float16"])
    half = network.model.apply("precision.autocast", dtype=dtype)
    exact = run(network.model, network.x)
    for backend in BACKENDS:
        left = noise_db(run(half, network.x, backend), exact)
        if left < (18 if dtype == "bfloat16" else 30):
            raise Finding(f"{dtype} on {backend}: {left:.1f} dB are left")
    return True


TRIALS = [
    rewritten,
    in_a_file,
    fewer_channels,
    fewer_weights,
    of_full_rank,
    prepared,
    quantized,
    in_half,
]
