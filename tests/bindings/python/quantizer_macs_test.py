# SPDX-License-Identifier: Apache-2.0
"""quantizer.macs counts every operator whose row says that it is a product."""

from pathlib import Path

import numpy as np
import pytest
import tenon
from onnx import TensorProto, helper
from onnx_models import constant, info, model_of, ran

STEPS, WIDE, UNITS = 5, 6, 4


def random(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("f")


def samples(folder: Path) -> str:
    path = folder / "samples.npz"
    np.savez(path, x=random(12, STEPS, WIDE, seed=9))
    return path.as_posix()


def counted(model: tenon.Model, folder: Path, **more) -> dict:
    return model.apply("quantizer.macs", data=samples(folder), **more).report


PRODUCTS = {
    "MatMul": (
        [helper.make_node("MatMul", ["x", "w"], ["y"], "it")],
        [constant("w", random(WIDE, UNITS))],
        STEPS * WIDE * UNITS,
    ),
    "Einsum": (
        [helper.make_node("Einsum", ["x", "w"], ["y"], "it", equation="bsd,edf->bsef")],
        [constant("w", random(3, WIDE, UNITS))],
        STEPS * 3 * WIDE * UNITS,
    ),
    "Einsum of activations": (
        [helper.make_node("Einsum", ["x", "x"], ["y"], "it", equation="bqd,bkd->bqk")],
        [],
        STEPS * STEPS * WIDE,
    ),
    "Conv": (
        [helper.make_node("Conv", ["x", "w"], ["y"], "it")],
        [constant("w", random(UNITS, STEPS, 3))],
        UNITS * STEPS * 3 * (WIDE - 2),
    ),
    "RNN": (
        [helper.make_node("RNN", ["x", "w", "r"], ["y"], "it", hidden_size=UNITS)],
        [constant("w", random(1, UNITS, WIDE)), constant("r", random(1, UNITS, UNITS))],
        STEPS * UNITS * (WIDE + UNITS),
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_counted_by_their_rows(tmp_path: Path, name: str) -> None:
    nodes, constants, macs = PRODUCTS[name]
    more = [helper.make_node("Relu", ["y"], ["z"])]  # no product
    rank = {"Conv": 3, "MatMul": 3, "Einsum of activations": 3}.get(name, 4)
    model = model_of(
        [*nodes, *more], [info("x", ["N", STEPS, WIDE])], [info("z", [None] * rank)], constants
    )
    report = counted(ran(tmp_path, model), tmp_path)
    row = {
        "node": "it",
        "op": nodes[0].op_type,
        "macs": macs,
        "of_activations": False,
        "scores": False,
    }
    assert report["float"] == [row]
    assert report["macs"] == macs and report["int8_macs"] == report["share"] == 0
    assert counted(ran(tmp_path, model), tmp_path, batch=1)["macs"] == macs
    assert report["uncounted"] == []


def test_one_operand_is_no_product(tmp_path: Path) -> None:
    nodes = [helper.make_node("Einsum", ["x"], ["y"], equation="bsd->bds")]
    model = model_of(nodes, [info("x", ["N", STEPS, WIDE])], [info("y", ["N", WIDE, STEPS])], [])
    assert counted(ran(tmp_path, model), tmp_path)["macs"] == 0


def test_the_share_is_of_products_whose_operands_are_stored(tmp_path: Path) -> None:
    """Two layers of which one stays in float, and experts whose weight alone has 8 bits."""
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["p"], "first"),
        helper.make_node("Transpose", ["p"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Transpose", ["t"], ["q"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "b"], ["r"], "second"),
        helper.make_node("Einsum", ["r", "c"], ["y"], "experts", equation="bsd,edf->bsef"),
    ]
    constants = [
        constant("a", random(WIDE, 32)),
        constant("b", random(32, 16, seed=2)),
        constant("c", random(2, 16, 40, seed=3)),
    ]
    shapes = [info("x", ["N", STEPS, WIDE])], [info("y", ["N", STEPS, 2, 40])]
    model = ran(tmp_path, model_of(nodes, *shapes, constants))
    sizes = {"first": STEPS * WIDE * 32, "second": STEPS * 32 * 16, "experts": STEPS * 2 * 16 * 40}

    for skip in ([], ["second"]):
        small = model.apply("quantizer.static", data=samples(tmp_path), batch=4, skip=skip)
        report = counted(small, tmp_path)
        floats = ["second", "experts"] if skip else ["experts"]
        assert [one["node"] for one in report["float"]] == floats
        assert report["int8_macs"] == sum(n for name, n in sizes.items() if name not in floats)
        assert report["macs"] == sum(sizes.values())
        assert report["share"] == pytest.approx(report["int8_macs"] / report["macs"])


def test_products_of_activations_are_said(tmp_path: Path) -> None:
    """Those that option `products` of quantizer.static would store, and which a Softmax reads."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"], "layer"),
        helper.make_node("Transpose", ["p"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["p", "t"], ["s"], "scores"),
        helper.make_node("Softmax", ["s"], ["shares"], axis=-1),
        helper.make_node("MatMul", ["shares", "p"], ["c"], "context"),
        helper.make_node("MatMul", ["c", "t"], ["y"], "plain"),
    ]
    shapes = [info("x", ["N", STEPS, WIDE])], [info("y", ["N", STEPS, STEPS])]
    model = ran(tmp_path, model_of(nodes, *shapes, [constant("w", random(WIDE, 16))]))
    for products, left in (("none", ["scores", "context", "plain"]), ("all", [])):
        small = model.apply("quantizer.static", data=samples(tmp_path), products=products)
        floats = counted(small, tmp_path)["float"]
        said = [(one["node"], one["of_activations"], one["scores"]) for one in floats]
        assert said == [(name, True, name == "scores") for name in left]


def test_operators_on_quantized_values_are_named(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "zero"]),
        helper.make_node("MatMulInteger", ["q", "w", "zero"], ["y"], "it"),
    ]
    weight = np.arange(WIDE * UNITS, dtype=np.int8).reshape(WIDE, UNITS)
    shapes = (
        [info("x", ["N", STEPS, WIDE])],
        [helper.make_tensor_value_info("y", TensorProto.INT32, ["N", STEPS, UNITS])],
    )
    report = counted(ran(tmp_path, model_of(nodes, *shapes, [constant("w", weight)])), tmp_path)
    assert report["uncounted"] == [{"node": "it", "op": "MatMulInteger"}]
    assert report["macs"] == 0
