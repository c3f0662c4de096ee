# SPDX-License-Identifier: Apache-2.0
"""Files whose weights are kept in 16 bits, as exporters leave them: float32 behind a Cast, or the
whole model in half precision."""

import numpy as np
import pytest
import tenon
from onnx import TensorProto, helper, numpy_helper
from onnx_models import info, model_of, ran

RANDOM = np.random.default_rng(23)
FIRST = (RANDOM.standard_normal((32, 64)) / 6).astype(np.float32)
SECOND = (RANDOM.standard_normal((64, 32)) / 8).astype(np.float32)
HALVES = [TensorProto.FLOAT16, TensorProto.BFLOAT16]


def bits(array, element):
    """The upper half of a float32 is a bfloat16; what is cut off here is cut off in `kept` too."""
    if element == TensorProto.FLOAT16:
        return array.astype(np.float16)
    return (array.view(np.uint32) >> 16).astype(np.uint16)


def kept(array, element):
    """The numbers that the file holds, in float32."""
    if element == TensorProto.FLOAT16:
        return array.astype(np.float16).astype(np.float32)
    return (bits(array, element).astype(np.uint32) << 16).view(np.float32)


def weight(name, array, element):
    return helper.make_tensor(name, element, array.shape, bits(array, element).tobytes(), raw=True)


def answer(x, element):
    return np.maximum(x @ kept(FIRST, element), 0) @ kept(SECOND, element)


def behind_casts(folder, element) -> tenon.Model:
    nodes = [
        helper.make_node("Cast", [f"{name}16"], [name], to=TensorProto.FLOAT) for name in ("a", "b")
    ]
    nodes += chain("a", "b")
    weights = [weight("a16", FIRST, element), weight("b16", SECOND, element)]
    return ran(folder, model_of(nodes, [info("x", [4, 32])], ["y"], weights))


def whole(folder, element) -> tenon.Model:
    weights = [weight("a", FIRST, element), weight("b", SECOND, element)]
    return ran(folder, model_of(chain("a", "b"), [info("x", [4, 32], element)], ["y"], weights))


def chain(first, second):
    return [
        helper.make_node("MatMul", ["x", first], ["m"], name="first"),
        helper.make_node("Relu", ["m"], ["r"]),
        helper.make_node("MatMul", ["r", second], ["y"], name="second"),
    ]


@pytest.mark.parametrize("backend", ["reference", "onednn"])
@pytest.mark.parametrize("element", HALVES)
def test_weights_behind_a_cast_compute_in_float32(element, backend, tmp_path):
    x = RANDOM.standard_normal((4, 32)).astype(np.float32)
    plan = behind_casts(tmp_path, element).compile(backend=backend)

    np.testing.assert_allclose(plan(x)[0], answer(x, element), rtol=1e-5, atol=1e-5)
    assert plan.describe()["fallback_nodes"] == []


@pytest.mark.parametrize("recipe", ["weights", "dynamic", "static"])
@pytest.mark.parametrize("element", HALVES)
def test_weights_behind_a_cast_are_quantized(element, recipe, tmp_path):
    x = RANDOM.standard_normal((4, 32)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=x)
    options = {"data": str(tmp_path / "data.npz"), "observer": "minmax"}

    plain = behind_casts(tmp_path, element).apply("fusion.default")
    small = plain.apply(f"quantizer.{recipe}", **(options if recipe == "static" else {}))
    small.save(tmp_path / "small.onnx")

    assert small.report["counts"]["quantized"] >= 2
    assert (tmp_path / "small.onnx").stat().st_size < 2 * FIRST.size + 4096
    got = tenon.load(tmp_path / "small.onnx").compile(backend="onednn")(x)[0]
    wanted = answer(x, element)
    assert np.abs(got - wanted).max() <= 0.02 * np.ptp(wanted)


@pytest.mark.parametrize("backend", ["reference", "onednn"])
def test_a_model_in_half_precision_runs(backend, tmp_path):
    x = RANDOM.standard_normal((4, 32)).astype(np.float16)
    plan = whole(tmp_path, TensorProto.FLOAT16).compile(backend=backend)

    got = plan(x)[0]

    assert got.dtype == np.float16
    wanted = answer(x.astype(np.float32), TensorProto.FLOAT16)
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-3 * np.ptp(wanted))


@pytest.mark.parametrize("element, name", [(HALVES[0], "float16"), (HALVES[1], "bfloat16")])
def test_that_a_quantizer_wants_float32_is_said_with_the_way_out(element, name, tmp_path):
    said = f"first: expected float32, got {name}; apply precision.widen"
    with pytest.raises(tenon.FailedPrecondition, match=said):
        whole(tmp_path, element).apply("quantizer.weights")


@pytest.mark.parametrize("recipe", ["weights", "dynamic", "static"])
@pytest.mark.parametrize("element", HALVES)
def test_a_model_in_half_precision_is_widened_and_quantized(element, recipe, tmp_path):
    x = RANDOM.standard_normal((4, 32)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=x)
    options = {"data": str(tmp_path / "data.npz"), "observer": "minmax"}

    wide = whole(tmp_path, element).apply("precision.widen", interface="float32")
    small = wide.apply(f"quantizer.{recipe}", **(options if recipe == "static" else {}))
    small.save(tmp_path / "small.onnx")

    assert wide.report == {"constants": 2, "casts": 0}
    np.testing.assert_allclose(wide.compile()(x)[0], answer(x, element), rtol=1e-5, atol=1e-5)
    assert small.report["counts"]["quantized"] >= 2
    assert (tmp_path / "small.onnx").stat().st_size < 2 * FIRST.size + 4096
    got = tenon.load(tmp_path / "small.onnx").compile(backend="onednn")(x)[0]
    assert np.abs(got - answer(x, element)).max() <= 0.02 * np.ptp(answer(x, element))


def test_a_widened_model_keeps_the_types_of_its_inputs_and_outputs(tmp_path):
    x = RANDOM.standard_normal((4, 32)).astype(np.float16)
    wide = whole(tmp_path, TensorProto.FLOAT16).apply("precision.widen")

    (got,) = wide.compile()(x)

    assert wide.report == {"constants": 2, "casts": 2}
    assert [port.dtype for port in wide.inputs + wide.outputs] == ["float16", "float16"]
    assert got.dtype == np.float16
    wanted = answer(x.astype(np.float32), TensorProto.FLOAT16)
    # A sum in another order may fall on the other side of a half's rounding.
    np.testing.assert_array_max_ulp(got, wanted.astype(np.float16), 1)


def test_what_states_a_type_is_widened_too(tmp_path):
    """Casts, fillings and the bodies of control flow, with what they take from around them."""
    half = TensorProto.FLOAT16
    bound = weight("bound", np.full(1, 2, np.float32), half)

    def branch(name, op, *more):
        node = helper.make_node(op, ["around", *more], [name])
        return helper.make_graph([node], name, [], [info(name, [4], half)], [bound])

    nodes = [
        helper.make_node("Cast", ["x"], ["narrow"], to=half),
        helper.make_node(
            "ConstantOfShape", ["four"], ["filled"], value=weight("", np.full(1, 0.5, "f"), half)
        ),
        helper.make_node("Add", ["narrow", "filled"], ["around"]),
        helper.make_node(
            "If",
            ["flag"],
            ["chosen"],
            then_branch=branch("yes", "Mul", "bound"),
            else_branch=branch("no", "Neg"),
        ),
        helper.make_node("Cast", ["chosen"], ["y"], to=TensorProto.FLOAT),
    ]
    inputs = [info("x", [4]), info("flag", [], TensorProto.BOOL)]
    four = numpy_helper.from_array(np.array([4], np.int64), "four")
    model = ran(tmp_path, model_of(nodes, inputs, ["y"], [four]))
    x = np.float32([0.1, 1 / 3, -7.7, 1000.1])  # none of them a float16

    wide = model.apply("precision.widen")

    assert wide.report == {"constants": 2, "casts": 0}
    for backend in ("reference", "onednn"):
        plan = wide.compile(backend=backend)
        np.testing.assert_allclose(plan(x, np.array(True))[0], 2 * (x + np.float32(0.5)), rtol=1e-6)
        np.testing.assert_allclose(plan(x, np.array(False))[0], -(x + np.float32(0.5)), rtol=1e-6)
