# SPDX-License-Identifier: Apache-2.0
"""Sequences padded to one length: passes that fit layers look at what the mask counts."""

import numpy as np
import pytest
import tenon as tn
from onnx import TensorProto, helper, numpy_helper

SAMPLES, LENGTH, WIDTH, UNITS = 64, 16, 6, 12


@pytest.fixture
def model(tmp_path):
    """x [n, length, width] -> tanh of 12 units -> 3 numbers; of padding, of other numbers."""
    rng = np.random.default_rng(1)
    weights = {
        "w1": rng.standard_normal((WIDTH, UNITS)),
        "b1": rng.standard_normal(UNITS),
        "w2": rng.standard_normal((UNITS, 3)),
        "b2": rng.standard_normal(3),
        "two": np.array([2], np.int64),
        "five": np.float32(5),
    }
    arrays = [
        numpy_helper.from_array(a if a.dtype == np.int64 else np.float32(a), name)
        for name, a in ((name, np.asarray(a)) for name, a in weights.items())
    ]
    nodes = [
        helper.make_node("Unsqueeze", ["mask", "two"], ["column"]),
        helper.make_node("Cast", ["column"], ["counts"], to=TensorProto.BOOL),
        helper.make_node("Mul", ["x", "five"], ["other"]),
        helper.make_node("Where", ["counts", "x", "other"], ["read"]),
        helper.make_node("MatMul", ["read", "w1"], ["p1"], name="fc1"),
        helper.make_node("Add", ["p1", "b1"], ["s1"]),
        helper.make_node("Tanh", ["s1"], ["h"]),
        helper.make_node("MatMul", ["h", "w2"], ["p2"], name="fc2"),
        helper.make_node("Add", ["p2", "b2"], ["y"]),
    ]
    inputs = [
        helper.make_tensor_value_info("mask", TensorProto.INT64, ["n", LENGTH]),
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", LENGTH, WIDTH]),
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", LENGTH, 3])
    graph = helper.make_graph(nodes, "g", inputs, [output], arrays)
    path = tmp_path / "model.onnx"
    path.write_bytes(
        helper.make_model(
            graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]
        ).SerializeToString()
    )
    return tn.load(path.as_posix())


def sequences(path, seed):
    """Three of sixteen entries count."""
    rng = np.random.default_rng(seed)
    mask = np.zeros((SAMPLES, LENGTH), np.int64)
    mask[:, :3] = 1
    x = rng.standard_normal((SAMPLES, LENGTH, WIDTH)).astype(np.float32)
    np.savez(path, mask=mask, x=x)
    return mask, x


def rows_of(report, kind, node):
    return next(row for row in report[kind] if row["node"] == node)


def error(model, pruned, mask, x):
    """Of what counts, relative."""
    wanted, found = (np.asarray(m(mask, x))[mask != 0] for m in (model, pruned))
    return np.square(found - wanted).sum() / np.square(wanted).sum()


def test_refit_to_what_counts_is_better_there(model, tmp_path):
    path = tmp_path / "fit.npz"
    sequences(path, 2)
    mask, x = sequences(tmp_path / "judge.npz", 3)
    pruned = model.apply("pruner.structured", ratio=0.5)
    how = {"data": path.as_posix(), "batch": 16}

    everywhere = pruned.apply("recovery.refit", **how)
    where = pruned.apply("recovery.refit", **how, mask="mask")

    assert rows_of(everywhere.report, "refitted", "fc2")["rows"] == 48 * LENGTH
    assert rows_of(where.report, "refitted", "fc2")["rows"] == 48 * 3
    assert error(model, where, mask, x) < 0.8 * error(model, everywhere, mask, x)
    assert error(model, where, mask, x) < error(model, pruned, mask, x)


def test_sparsegpt_chooses_by_what_counts(model, tmp_path):
    path = tmp_path / "fit.npz"
    sequences(path, 2)
    mask, x = sequences(tmp_path / "judge.npz", 3)
    how = {"data": path.as_posix(), "batch": 16, "sparsity": 0.5, "only": ["fc2"]}

    everywhere = model.apply("recovery.sparsegpt", **how)
    where = model.apply("recovery.sparsegpt", **how, mask="mask")

    assert error(model, where, mask, x) < error(model, everywhere, mask, x)


def test_a_mask_that_is_no_input(model, tmp_path):
    path = tmp_path / "fit.npz"
    sequences(path, 2)
    pruned = model.apply("pruner.structured", ratio=0.5)
    with pytest.raises(tn.TenonError, match=r"expected an input of the model \(mask, x\), got 'm'"):
        pruned.apply("recovery.refit", data=path.as_posix(), mask="m")
