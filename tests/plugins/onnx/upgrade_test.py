# SPDX-License-Identifier: Apache-2.0
"""Old opsets mean the same after the upgrade: onnx's reference evaluator is the judge."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

F, I64 = TensorProto.FLOAT, TensorProto.INT64


def model_of(op, opset, shape, n_outputs=1, constants=(), rank_known=True, **attrs):
    names = [f"c{i}" for i in range(len(constants))]
    outputs = [f"y{i}" for i in range(n_outputs)]
    node = helper.make_node(op, ["x", *names], outputs, name="node", **attrs)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", F, shape if rank_known else None)],
        [helper.make_tensor_value_info(o, F, None) for o in outputs],
        [numpy_helper.from_array(c, n) for c, n in zip(constants, names)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def softmax_by_rows(axis):
    def expected(x):
        rows = x.reshape(int(np.prod(x.shape[:axis])), -1)
        e = np.exp(rows - rows.max(1, keepdims=True))
        return [(e / e.sum(1, keepdims=True)).reshape(x.shape)]

    return expected


def nearest_below(x):
    return [x.repeat(2, 2).repeat(2, 3)]


X4 = (2, 3, 4, 4)
f32 = lambda *v: np.array(v, np.float32)  # noqa: E731
CASES = {
    "softmax_7_axis_1": (model_of("Softmax", 7, X4, axis=1), X4, softmax_by_rows(1)),
    "softmax_11_default": (model_of("Softmax", 11, X4), X4, softmax_by_rows(1)),
    "softmax_12_rank_unknown": (
        model_of("Softmax", 12, X4, rank_known=False),
        X4,
        softmax_by_rows(1),
    ),
    "softmax_11_last": (model_of("Softmax", 11, X4, axis=3), X4, softmax_by_rows(3)),
    "log_softmax_9": (
        model_of("LogSoftmax", 9, X4, axis=2),
        X4,
        lambda x: [np.log(softmax_by_rows(2)(x)[0])],
    ),
    "clip_7": (model_of("Clip", 7, X4, min=0.2, max=0.6), X4, lambda x: [x.clip(0.2, 0.6)]),
    "clip_10_max_only": (model_of("Clip", 10, X4, max=0.5), X4, lambda x: [x.clip(None, 0.5)]),
    "pad_7": (
        model_of("Pad", 7, (2, 3), pads=[0, 1, 1, 0], value=0.5),
        (2, 3),
        lambda x: [np.pad(x, ((0, 1), (1, 0)), constant_values=0.5)],
    ),
    "pad_10_reflect": (
        model_of("Pad", 10, (2, 3), pads=[0, 1, 0, 1], mode="reflect"),
        (2, 3),
        lambda x: [np.pad(x, ((0, 0), (1, 1)), mode="reflect")],
    ),
    "slice_9": (
        model_of("Slice", 9, X4, starts=[1, 0], ends=[3, -1], axes=[1, 3]),
        X4,
        lambda x: [x[:, 1:3, :, :-1]],
    ),
    "slice_7_no_axes": (
        model_of("Slice", 7, (3, 4), starts=[1], ends=[9]),
        (3, 4),
        lambda x: [x[1:]],
    ),
    "squeeze_11": (model_of("Squeeze", 11, (1, 3, 1), axes=[0]), (1, 3, 1), lambda x: [x[0]]),
    "squeeze_12_all": (model_of("Squeeze", 12, (1, 3, 1)), (1, 3, 1), lambda x: [x.squeeze()]),
    "unsqueeze_12": (
        model_of("Unsqueeze", 12, (2, 3), axes=[0, 3]),
        (2, 3),
        lambda x: [x[None, ..., None]],
    ),
    "split_7": (
        model_of("Split", 7, (2, 6), 2, axis=1, split=[2, 4]),
        (2, 6),
        lambda x: [x[:, :2], x[:, 2:]],
    ),
    "split_13_equal": (model_of("Split", 13, (6, 2), 3), (6, 2), lambda x: np.split(x, 3)),
    "split_17_given": (
        model_of("Split", 17, (6, 2), 2, [np.array([2, 4])]),
        (6, 2),
        lambda x: [x[:2], x[2:]],
    ),
    "reduce_mean_17": (
        model_of("ReduceMean", 17, X4, axes=[2, 3], keepdims=0),
        X4,
        lambda x: [x.mean((2, 3))],
    ),
    "reduce_max_12_all": (model_of("ReduceMax", 12, X4), X4, lambda x: [x.max(keepdims=True)]),
    "reduce_sum_11": (
        model_of("ReduceSum", 11, X4, axes=[-1]),
        X4,
        lambda x: [x.sum(-1, keepdims=True)],
    ),
    "dropout_7": (model_of("Dropout", 7, X4, ratio=0.3), X4, lambda x: [x]),
    "dropout_10": (model_of("Dropout", 10, X4), X4, lambda x: [x]),
    "batch_norm_7": (
        model_of(
            "BatchNormalization",
            7,
            (1, 2, 3),
            1,
            [f32(1, 2), f32(0, 1), f32(0.5, 0.5), f32(1, 4)],
            epsilon=0.0,
        ),
        (1, 2, 3),
        lambda x: [np.stack([x[:, 0] - 0.5, (x[:, 1] - 0.5) + 1], 1)],
    ),
    "upsample_7": (model_of("Upsample", 7, X4, scales=[1.0, 1.0, 2.0, 2.0]), X4, nearest_below),
    "upsample_9": (model_of("Upsample", 9, X4, 1, [f32(1, 1, 2, 2)]), X4, nearest_below),
    "resize_10": (model_of("Resize", 10, X4, 1, [f32(1, 1, 2, 2)]), X4, nearest_below),
    "dft_17": (
        model_of("DFT", 17, (1, 4, 1), axis=1),
        (1, 4, 1),
        lambda x: [
            np.stack([np.fft.fft(x[..., 0]).real, np.fft.fft(x[..., 0]).imag], -1).astype(
                np.float32
            )
        ],
    ),
    "group_norm_18": (
        model_of(
            "GroupNormalization",
            18,
            (1, 4, 2),
            1,
            [f32(1, 2), f32(0, 1)],
            num_groups=2,
            epsilon=1e-5,
        ),
        (1, 4, 2),
        None,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_means_the_same(name, rewrite):
    model, shape, expected = CASES[name]
    x = np.random.default_rng(7).random(shape, np.float32)

    written = rewrite(model)
    got = ReferenceEvaluator(written).run(None, {"x": x})

    assert written.opset_import[0].version == 21
    want = expected(x) if expected else ReferenceEvaluator(model).run(None, {"x": x})
    for ours, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=2e-6)


def test_top_k_9_takes_k_from_its_attribute(rewrite):
    node = helper.make_node("TopK", ["x"], ["v", "i"], k=2, axis=0)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", F, [4])],
        [helper.make_tensor_value_info("v", F, [2]), helper.make_tensor_value_info("i", I64, [2])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=4)

    values, indices = ReferenceEvaluator(rewrite(model)).run(None, {"x": f32(1, 4, 2, 3)})

    assert values.tolist() == [4, 3] and indices.tolist() == [1, 3]


@pytest.mark.parametrize("opset", range(7, 29))
def test_every_opset_is_read(opset, rewrite):
    ir = 14 if opset > 20 else 8
    node = helper.make_node("Relu", ["x"], ["y"])
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", F, [2])],
        [helper.make_tensor_value_info("y", F, [2])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)

    written = rewrite(model)

    assert (written.opset_import[0].version, written.ir_version) == (21, 10)


@pytest.mark.parametrize("opset", [6, 29])
def test_other_opsets_are_refused(opset, tenon, tmp_path):
    node = helper.make_node("Relu", ["x"], ["y"], name="first")
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", F, [2])],
        [helper.make_tensor_value_info("y", F, [2])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")

    with pytest.raises(Exception, match=f"node first .Relu.*expected opset 7..28, got {opset}"):
        tenon.load(tmp_path / "m.onnx")
