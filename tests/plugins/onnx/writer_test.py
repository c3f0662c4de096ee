# SPDX-License-Identifier: Apache-2.0
"""What the writer chooses: opset, ir version, place of the weights, bytes."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tenon_library import TenonError

F = TensorProto.FLOAT


def one_node(op, element=F, opset=28, inputs=("x",), **attrs):
    shapes = [helper.make_tensor_value_info(i, element, [2, 4]) for i in inputs]
    graph = helper.make_graph(
        [helper.make_node(op, list(inputs), ["y"], name="n", **attrs)],
        "g",
        shapes,
        [helper.make_tensor_value_info("y", element, [2, 4])],
    )
    return helper.make_model(graph, ir_version=14, opset_imports=[helper.make_opsetid("", opset)])


@pytest.mark.parametrize(
    "model, opset, ir",
    [
        (one_node("Relu"), 21, 10),
        (one_node("Softplus", TensorProto.BFLOAT16), 22, 10),
        (one_node("Swish"), 24, 12),
        (one_node("CumProd", inputs=("x", "a")), 26, 13),
    ],
)
def test_the_lowest_opset_that_serves(model, opset, ir, rewrite):
    if len(model.graph.input) == 2:
        model.graph.input[1].CopyFrom(helper.make_tensor_value_info("a", TensorProto.INT64, []))

    written = rewrite(model)

    assert (written.opset_import[0].version, written.ir_version) == (opset, ir)


def test_an_opset_can_be_asked_for(rewrite):
    assert rewrite(one_node("Relu"), '{"opset": 23}').opset_import[0].version == 23


def test_an_opset_that_is_too_low_is_refused(rewrite):
    with pytest.raises(TenonError, match="option opset: node n .Swish. needs at least 24, got 23"):
        rewrite(one_node("Swish"), '{"opset": 23}')


def test_opsets_over_26_only_on_request(rewrite):
    # Signed integers came to BitShift at 28.
    model = one_node("BitShift", TensorProto.INT32, inputs=("x", "by"), direction="LEFT")

    with pytest.raises(TenonError, match="node n .BitShift. needs opset 28"):
        rewrite(model)

    assert rewrite(model, '{"opset": 28}').opset_import[0].version == 28


def test_what_other_tools_noted_at_nodes_may_be_left_out(rewrite):
    model = one_node("Relu")
    model.graph.node[0].doc_string = "file.py, line 7"
    model.graph.node[0].metadata_props.add(key="pkg.torch.onnx.stack_trace", value="file.py")
    model.graph.node[0].metadata_props.add(key="tenon.scope", value="encoder")
    model.metadata_props.add(key="classes", value="cat, dog")

    kept, bare = rewrite(model), rewrite(model, '{"metadata": false}')

    assert kept.graph.node[0].doc_string == "file.py, line 7"
    assert {one.key for one in kept.graph.node[0].metadata_props} == {
        "pkg.torch.onnx.stack_trace", "tenon.scope",
    }  # fmt: skip
    assert bare.graph.node[0].doc_string == ""
    assert [one.key for one in bare.graph.node[0].metadata_props] == ["tenon.scope"]
    assert [one.key for one in bare.metadata_props] == ["classes"]  # the model's own


def big_model():
    w = np.random.default_rng(1).random((300, 4), np.float32)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["w", "i"], ["y"])],
        "g",
        [helper.make_tensor_value_info("i", TensorProto.INT64, [3])],
        [helper.make_tensor_value_info("y", F, [3, 4])],
        [numpy_helper.from_array(w, "w")],
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), w


def test_weights_go_beside_the_model_when_asked(rewrite, tmp_path):
    model, w = big_model()

    written = rewrite(model, '{"external_data": true}')

    assert (tmp_path / "out.onnx.data").stat().st_size == w.nbytes
    assert np.array_equal(numpy_helper.to_array(written.graph.initializer[0]), w)


def test_the_same_graph_gives_the_same_bytes(tenon, tmp_path):
    model, _ = big_model()
    onnx.save(model, tmp_path / "in.onnx")
    graph = tenon.load(tmp_path / "in.onnx")
    for name in ("a.onnx", "b.onnx"):
        tenon.save(graph, tmp_path / name)

    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_outputs_that_share_a_value_keep_their_names(rewrite):
    model = one_node("Relu")
    model.graph.node.append(helper.make_node("Identity", ["y"], ["z"]))
    model.graph.output.append(helper.make_tensor_value_info("z", F, [2, 4]))
    model.graph.output.append(helper.make_tensor_value_info("x", F, [2, 4]))

    assert [o.name for o in rewrite(model).graph.output] == ["y", "z", "x"]


def test_values_of_unknown_type_are_written_without_one(rewrite):
    def branch(name):
        return helper.make_graph(
            [helper.make_node("Frob", ["x"], [name], domain="com.acme")],
            name,
            [],
            [onnx.ValueInfoProto(name=name)],
        )

    model = one_node("If", inputs=("x", "c"), then_branch=branch("a"), else_branch=branch("b"))
    model.opset_import.append(helper.make_opsetid("com.acme", 1))
    model.graph.input[1].CopyFrom(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    model.graph.node[0].input[:] = ["c"]

    written = rewrite(model)

    bodies = [a.g for a in written.graph.node[0].attribute]
    assert [b.output[0].HasField("type") for b in bodies] == [False, False]


def test_outputs_that_nothing_reads_still_count(rewrite):
    model = one_node("Relu", opset=13)
    split = helper.make_node("Split", ["x"], ["halves", "halves_out1"], name="halves", axis=1)
    model.graph.node.insert(0, split)
    model.graph.node[1].input[0] = "halves"
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", F, [2, 2]))

    written = rewrite(model)

    assert list(written.graph.node[0].output) == ["halves", "halves_out1"]
    assert rewrite(written).graph.node[0].op_type == "Split"


def test_types_that_only_a_later_opset_lets_differ(rewrite):
    zero = helper.make_tensor("z", TensorProto.INT8, [], [0])
    scale = helper.make_tensor("s", F, [], [0.1])
    graph = helper.make_graph(
        [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], name="n")],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, [2, 4])],
        [helper.make_tensor_value_info("y", TensorProto.INT8, [2, 4])],
        [scale, zero],
    )
    model = helper.make_model(graph, ir_version=12, opset_imports=[helper.make_opsetid("", 23)])

    assert rewrite(model).opset_import[0].version == 23


def test_a_sequence_of_a_type_that_onnx_has_not_is_refused(rewrite):
    graph = helper.make_graph(
        [
            helper.make_node("SequenceConstruct", ["x", "x"], ["s"], name="list"),
            helper.make_node("ConcatFromSequence", ["s"], ["y"], name="join", axis=0),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.BFLOAT16, [2, 4])],
        [helper.make_tensor_value_info("y", TensorProto.BFLOAT16, [4, 4])],
    )
    model = helper.make_model(graph, ir_version=12, opset_imports=[helper.make_opsetid("", 24)])

    with pytest.raises(TenonError, match="list.*sequences and optional values of a type"):
        rewrite(model)
