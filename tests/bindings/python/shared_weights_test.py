# SPDX-License-Identifier: Apache-2.0
"""A network that is applied to two inputs has its weights once, whatever a pass makes of them."""

from pathlib import Path

import numpy as np
import pytest
import tenon
from onnx import helper
from onnx_models import constant, info, model_of, ran

CHANNELS = 16


@pytest.fixture
def twins(tmp_path: Path) -> tenon.Model:
    """Conv and BatchNormalization with the same parameters on `a` and on `b`."""
    rng = np.random.default_rng(1)
    norm = ["scale", "bias", "mean", "variance"]
    nodes = [
        node
        for x in ("a", "b")
        for node in (
            helper.make_node("Conv", [x, "w"], [f"{x}1"], f"conv_{x}", pads=[1] * 4),
            helper.make_node("BatchNormalization", [f"{x}1", *norm], [f"{x}2"], f"norm_{x}"),
            helper.make_node("Relu", [f"{x}2"], [f"{x}3"]),
        )
    ]
    nodes.append(helper.make_node("Sub", ["a3", "b3"], ["y"]))
    constants = [constant("w", rng.standard_normal((CHANNELS, 3, 3, 3)).astype("f"))]
    constants += [constant(name, rng.uniform(0.5, 2, CHANNELS).astype("f")) for name in norm]
    shapes = [info(name, ["N", 3, 8, 8]) for name in "ab"], [info("y", ["N", CHANNELS, 8, 8])]
    return ran(tmp_path, model_of(nodes, *shapes, constants))


def weights(model: tenon.Model) -> list[np.ndarray]:
    arrays = (np.asarray(one) for one in model.constants().values())
    return [one for one in arrays if one.ndim == 4]


def images(seed: int) -> dict:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal((8, 3, 8, 8)).astype("f") for name in "ab"}


def test_folded_normalizations_leave_one_weight(twins: tenon.Model) -> None:
    fused = twins.apply("fusion.default")

    assert len(weights(twins)) == len(weights(fused)) == 1
    x = images(2)
    for wanted, found in zip(twins.compile().run(x), fused.compile().run(x), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_rounded_weights_are_stored_once(twins: tenon.Model, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **images(3))
    small = twins.apply("fusion.default").apply("quantizer.static", data=str(tmp_path / "x.npz"))

    stored = weights(small)

    assert [one.dtype for one in stored] == [np.int8]


@pytest.mark.parametrize("component", ["quantizer.static", "quantizer.qat", "quantizer.weights"])
def test_every_node_says_what_its_shared_weight_loses(
    twins: tenon.Model, tmp_path: Path, component: str
) -> None:
    np.savez(tmp_path / "x.npz", **images(4))
    given = {} if component == "quantizer.weights" else {"data": str(tmp_path / "x.npz")}
    small = twins.apply("fusion.default").apply(component, **given)

    rows = {row["node"]: row for row in small.report["quantized"]}
    assert small.report["weight_bytes"]["all"] == 4 * CHANNELS * 3 * 9

    assert rows["conv_a"]["weight_snr_db"] == rows["conv_b"]["weight_snr_db"] > 30
