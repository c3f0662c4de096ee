# SPDX-License-Identifier: Apache-2.0
"""Constant tables out of which a Slice cuts rows, such as positions, in fewer bits."""

import numpy as np
import pytest
import tenon
from onnx import helper
from onnx_models import INT64, constant, info, model_of, ran

LENGTH, WIDTH = 64, 24
TABLE = np.random.default_rng(1).standard_normal((LENGTH, WIDTH)).astype("f")


def model(folder, shape, axis):
    """The first rows (or columns) of the table: as many as there are in x [1, n, 24]."""
    table = TABLE.reshape(shape)
    weights = {"t": table, "zero": np.zeros(1, "i8"), "axis": np.array([axis])}
    nodes = [
        helper.make_node("Shape", ["x"], ["n"], start=1, end=2),
        helper.make_node("Slice", ["t", "zero", "n", "axis"], ["y"], "cut"),
    ]
    values = [constant(name, value) for name, value in weights.items()]
    return ran(folder, model_of(nodes, [info("x", [1, "n"], INT64)], ["y"], values))


def cut(one, n):
    x = np.zeros((1, n), np.int64)
    made = [one.compile(backend=name)(x)[0] for name in ("reference", "onednn")]
    np.testing.assert_array_equal(*made)
    return np.asarray(made[0])


def stored(one):
    found = [np.asarray(value) for value in one.constants().values()]
    return sorted(value.dtype.name for value in found if value.size == LENGTH * WIDTH)


@pytest.mark.parametrize("shape", [(LENGTH, WIDTH), (1, LENGTH, WIDTH)])
def test_rows_in_8_bits(tmp_path, shape):
    plain = model(tmp_path, shape, len(shape) - 2)
    small = plain.apply("quantizer.weights")
    assert stored(small) == ["int8"]
    assert small.report["stored"][0]["node"] == "cut" and not small.report["float_constants"]
    got = cut(small, 9).reshape(9, WIDTH)
    steps = np.abs(TABLE[:9]).max(1, keepdims=True) / 127
    assert (np.abs(got - TABLE[:9]) <= 0.501 * steps).all()


@pytest.mark.parametrize(("dtype", "digits"), [("float16", 2.0**-11), ("bfloat16", 2.0**-8)])
def test_rows_in_16_bits(tmp_path, dtype, digits):
    plain = model(tmp_path, (1, LENGTH, WIDTH), 1)
    small = plain.apply("precision.autocast", dtype=dtype, tables=True).apply("fusion.default")
    assert stored(small) == [dtype] and small.outputs[0].dtype == "float32"
    got = cut(small, 9)[0]
    np.testing.assert_allclose(got, TABLE[:9], rtol=digits)
    assert (got != TABLE[:9]).any()


def test_what_stays_is_in_the_report(tmp_path):
    """Columns have no scale of their own here."""
    plain = model(tmp_path, (LENGTH, WIDTH), 1)
    with pytest.raises(tenon.TenonError, match="nothing to quantize"):
        plain.apply("quantizer.weights")
    weight = np.random.default_rng(2).standard_normal((WIDTH, 32)).astype("f")
    nodes = [
        helper.make_node("Shape", ["x"], ["n"], start=0, end=1),
        helper.make_node("Slice", ["t", "zero", "n", "axis"], ["y"], "cut"),
        helper.make_node("MatMul", ["x", "w"], ["z"]),
    ]
    values = {"t": TABLE, "w": weight, "zero": np.zeros(1, "i8"), "axis": np.array([1])}
    both = ran(tmp_path, model_of(nodes, [info("x", ["n", WIDTH])], ["y", "z"],
                                  [constant(k, v) for k, v in values.items()]))  # fmt: skip
    report = both.apply("quantizer.weights").report
    assert [one["node"] for one in report["float_constants"]] == ["cut"]
    assert report["float_constants"][0]["bytes"] == TABLE.nbytes
