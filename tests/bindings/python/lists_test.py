# SPDX-License-Identifier: Apache-2.0
"""Sequences and optionals into plans, through them, and out."""

import numpy as np
import pytest
import tenon
from onnx import TensorProto, helper
from tenon import lists, onnx_backend

SEQUENCE = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None))


def plan_of(nodes, inputs, outputs):
    def ports(named):
        return [helper.make_value_info(name, kind) for name, kind in named.items()]

    graph = helper.make_graph(nodes, "lists", ports(inputs), ports(outputs))
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    return onnx_backend.model_of(proto).compile(backend="reference")


@pytest.fixture(scope="module")
def push():
    """Appends a tensor to a sequence."""
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    node = helper.make_node("SequenceInsert", ["s", "x"], ["y"])
    return plan_of([node], {"s": SEQUENCE, "x": tensor}, {"y": SEQUENCE})


@pytest.mark.parametrize(
    "value",
    [
        [],
        [np.arange(3, dtype=np.int64), np.float32(2.5)],
        [np.zeros((2, 0), np.float16), np.array([[True, False]])],
        [[np.ones(70, np.uint8)], []],
    ],
)
def test_what_is_packed_comes_back(value):
    def same(a, b):
        if isinstance(a, list):
            return len(a) == len(b) and all(map(same, a, b))
        return np.asarray(a).dtype == b.dtype and np.array_equal(a, b)

    assert same(value, lists.unpack(lists.pack(value, "sequence"), "sequence"))


def test_an_optional_is_its_element_or_none():
    assert lists.unpack(lists.pack(None, "optional"), "optional") is None
    assert lists.unpack(lists.pack(np.float32(3), "optional"), "optional") == 3


def test_sequences_of_any_length_run_without_another_compile(push):
    seen = []
    for i in range(5):
        (seen,) = push(seen, np.full(i, i, np.float32))

    assert [one.tolist() for one in seen] == [[i] * i for i in range(5)]


def test_a_sequence_goes_by_name_too(push):
    assert len(push.run({"s": [np.zeros(2, np.float32)], "x": np.ones(1, np.float32)})["y"]) == 2


def test_an_array_is_no_sequence(push):
    with pytest.raises(TypeError, match="expected a list of arrays, got ndarray"):
        push(np.zeros(3, np.float32), np.zeros(3, np.float32))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda raw: raw[:-4], "cut short"),
        (lambda raw: np.concatenate([raw[:8] + 1, raw[8:]]), "packed list"),
        (lambda raw: np.concatenate([raw[:8], raw[8:16] | 255, raw[16:]]), "cut short|head"),
        (lambda raw: np.concatenate([raw[:32], raw[32:40] | 255, raw[40:]]), "head"),
        (lambda raw: np.concatenate([raw[:40], raw[40:48] | 255, raw[48:]]), "dimension"),
    ],
)
def test_bytes_that_are_no_list_are_refused(push, damage, message):
    raw = damage(lists.pack([np.ones(3, np.float32)], "sequence"))

    with pytest.raises(tenon.TenonError, match=message):
        push._native.arrays(np.ascontiguousarray(raw), np.ones(3, np.float32))


def test_an_index_outside_of_a_sequence_of_declared_sizes_is_refused():
    rows = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [4]))
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, ["n", "m"])
    row = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    nodes = [
        helper.make_node("SplitToSequence", ["x"], ["s"], axis=0, keepdims=0),
        helper.make_node("Constant", [], ["i"], value_int=4),
        helper.make_node("SequenceAt", ["s", "i"], ["y"]),
    ]
    plan = plan_of(nodes, {"x": tensor}, {"y": row, "s": rows})

    assert plan(np.ones((5, 4), np.float32))[0].shape == (4,)
    with pytest.raises(tenon.TenonError, match=r"position: expected -3\.\.2, got 4"):
        plan(np.ones((3, 4), np.float32))


def test_a_body_takes_and_gives_sequences():
    # Pushes the loop's number on each of three turns.
    int_type = helper.make_tensor_type_proto(TensorProto.INT64, [])
    bool_type = helper.make_tensor_type_proto(TensorProto.BOOL, [])
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["again"]),
            helper.make_node("Cast", ["i"], ["x"], to=TensorProto.FLOAT),
            helper.make_node("SequenceInsert", ["s", "x"], ["t"]),
        ],
        "body",
        [
            helper.make_value_info(n, t)
            for n, t in (("i", int_type), ("go", bool_type), ("s", SEQUENCE))
        ],
        [helper.make_value_info(n, t) for n, t in (("again", bool_type), ("t", SEQUENCE))],
    )
    nodes = [
        helper.make_node("SequenceEmpty", [], ["none"], dtype=TensorProto.FLOAT),
        helper.make_node("Loop", ["n", "", "none"], ["all"], body=body),
        helper.make_node("ConcatFromSequence", ["all"], ["y"], axis=0, new_axis=1),
    ]
    row_type = helper.make_tensor_type_proto(TensorProto.FLOAT, [None])
    plan = plan_of(nodes, {"n": int_type}, {"y": row_type, "all": SEQUENCE})

    y, every = plan(np.int64(3))

    assert y.tolist() == [0, 1, 2]
    assert len(every) == 3
