# SPDX-License-Identifier: Apache-2.0
"""Old opsets mean the same after the upgrade: onnx's reference evaluator is the judge."""

import itertools

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


def newer(op, opset, constants, **attrs):
    """What the later form of an operator gives, where onnx cannot run the old one."""

    def expected(x):
        model = model_of(op, opset, x.shape, 1, constants, **attrs)
        return ReferenceEvaluator(model).run(None, {"x": x})

    return expected


def hard_rows(x):
    rows = x.reshape(x.shape[0], -1)
    return [np.eye(rows.shape[1], dtype=x.dtype)[rows.argmax(1)].reshape(x.shape)]


def trained(x):
    mean, var = x.mean((0, 2)), x.var((0, 2))
    y = (x - mean[:, None]) / np.sqrt(var[:, None] + 1e-5)
    return [y, 0.9 * 0 + 0.1 * mean, 0.9 * 1 + 0.1 * var]


def nearest_below(x):
    return [x.repeat(2, 2).repeat(2, 3)]


def every_other(x):
    """Rows and columns 0 and 2 of four at 0.6: 1 / 0.6 is rounded up."""
    return [x[:, :, ::2, ::2]]


X4 = (2, 3, 4, 4)
f32 = lambda *v: np.array(v, np.float32)  # noqa: E731
BOX = (f32([0.3, 0.2, 2.9, 3.1]), np.array([1]))
ROI = {"output_height": 2, "output_width": 2, "sampling_ratio": 2}
GRID = np.stack(np.meshgrid(f32(-0.9, 0.1, 0.7), f32(-0.6, 0.8)), -1)[None].repeat(2, 0)
CASES = {
    "softmax_7_axis_1": (model_of("Softmax", 7, X4, axis=1), X4, softmax_by_rows(1)),
    "softmax_11_default": (model_of("Softmax", 11, X4), X4, softmax_by_rows(1)),
    "softmax_12_rank_unknown": (
        model_of("Softmax", 12, X4, rank_known=False),
        X4,
        softmax_by_rows(1),
    ),
    "softmax_11_last": (model_of("Softmax", 11, X4, axis=3), X4, softmax_by_rows(3)),
    "softmax_11_of_nothing": (model_of("Softmax", 11, (2, 3, 0)), (2, 3, 0), lambda x: [x]),
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
    "resize_10_down": (model_of("Resize", 10, X4, 1, [f32(1, 1, 0.6, 0.6)]), X4, every_other),
    "resize_12_tf": (
        model_of(
            "Resize",
            12,
            (5,),
            1,
            [f32(), f32(0.7)],
            coordinate_transformation_mode="tf_half_pixel_for_nn",
            nearest_mode="floor",
        ),
        (5,),
        lambda x: [x[[0, 2, 3]]],  # 0.5, 1.5 and 2.5 over 0.7
    ),
    "batch_norm_13_training": (
        model_of(
            "BatchNormalization", 13, (2, 2, 3), 3, [f32(1, 1), f32(0, 0), f32(0, 0), f32(1, 1)]
        ),
        (2, 2, 3),
        trained,
    ),
    "hardmax_11": (model_of("Hardmax", 11, X4), X4, hard_rows),
    "grid_sample_16": (
        model_of("GridSample", 16, X4, 1, [GRID], mode="bilinear"),
        X4,
        newer("GridSample", 20, [GRID], mode="linear"),
    ),
    "grid_sample_19_cubic": (
        model_of("GridSample", 19, X4, 1, [GRID], mode="bicubic"),
        X4,
        newer("GridSample", 20, [GRID], mode="cubic"),
    ),
    "roi_align_10": (
        model_of("RoiAlign", 10, X4, 1, BOX, **ROI),
        X4,
        newer("RoiAlign", 16, BOX, coordinate_transformation_mode="output_half_pixel", **ROI),
    ),
    "scatter_9": (
        model_of("Scatter", 9, (2, 3), 1, [np.array([[2], [0]]), f32([8], [9])], axis=1),
        (2, 3),
        lambda x: [np.array([[*x[0, :2], 8], [9, *x[1, 1:]]], x.dtype)],
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
REDUCTIONS = {
    "L1": lambda x: np.abs(x).sum((1, 3)),
    "L2": lambda x: np.sqrt((x * x).sum((1, 3))),
    "LogSum": lambda x: np.log(x.sum((1, 3))),
    "LogSumExp": lambda x: np.log(np.exp(x).sum((1, 3))),
    "Max": lambda x: x.max((1, 3)),
    "Mean": lambda x: x.mean((1, 3)),
    "Min": lambda x: x.min((1, 3)),
    "Prod": lambda x: x.prod((1, 3)),
    "SumSquare": lambda x: (x * x).sum((1, 3)),
}
for name, reduced in REDUCTIONS.items():
    made = model_of(f"Reduce{name}", 13, X4, axes=[1, -1], keepdims=0)
    CASES[f"reduce_{name}_13"] = (made, X4, lambda x, f=reduced: [f(x)])
# No schema shows them: a default that was another, parts that need their number, per group.
UNSEEN = {("RoiAlign", 16), ("Split", 18), ("GroupNormalization", 21), ("Resize", 13)}
ELSEWHERE = {("Constant", 11), ("Scan", 9), ("TopK", 10)}  # quirks_test, below


def changes():
    """(operator, opset) where onnx's schemas drop or rename something, or change a default."""
    history = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            history.setdefault(schema.name, []).append(schema)
    for name, schemas in history.items():
        schemas.sort(key=lambda schema: schema.since_version)
        for old, new in itertools.pairwise(schemas):
            if new.since_version > 7 and is_another_form(old, new):
                yield name, new.since_version


def is_another_form(old, new):
    def defaults(schema):
        return {k: a.default_value for k, a in schema.attributes.items() if k in new.attributes}

    gone = old.attributes.keys() - new.attributes.keys()
    names = [port.name for port in old.inputs] != [
        port.name for port in new.inputs[: len(old.inputs)]
    ]
    other = any(new.attributes[k].default_value != v for k, v in defaults(old).items())
    required = any(
        a.required != new.attributes[k].required
        for k, a in old.attributes.items()
        if k in new.attributes
    )
    return bool(gone or names or other or required or new.deprecated)


def test_every_change_of_form_has_a_case():
    covered = set(ELSEWHERE)
    for model, *_ in CASES.values():
        op, opset = model.graph.node[0].op_type, model.opset_import[0].version
        covered |= {(op, later) for later in range(opset + 1, 29)}

    assert set(changes()) | UNSEEN <= covered


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


@pytest.mark.parametrize(
    "model, match",
    [
        (
            model_of(
                "BatchNormalization",
                8,
                (1, 2, 3),
                1,
                [np.ones((2, 3), np.float32)] * 4,
                spatial=0,
            ),
            "node node .BatchNormalization.*spatial: expected 1, got 0",
        ),
        (
            model_of("Resize", 10, (4, 4), 1, [f32(0.5, 2)]),
            "node node .Resize.*all up to 1 or all from 1 at opset 10, got 0.5 and 2$",
        ),
        (
            model_of("Scan", 8, (1, 2), 1, [f32([1])], num_scan_inputs=1),
            "node node .Scan.*export the model with opset 9 or later",
        ),
        (
            model_of("Resize", 19, (4,), 1, [f32(), f32(2)], nearest_mode="flor"),
            "node node .Resize.*nearest_mode: expected one of round_prefer_floor.*got 'flor'",
        ),
    ],
)
def test_forms_without_a_successor_are_refused(model, match, tenon, tmp_path):
    onnx.save(model, tmp_path / "m.onnx")

    with pytest.raises(Exception, match=match):
        tenon.load(tmp_path / "m.onnx")
