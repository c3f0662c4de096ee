# SPDX-License-Identifier: Apache-2.0
"""What bodies and functions have of their own and take from around them, and outputs that nobody
asks for."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tenon_library import TenonError

F, BOOL, I64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64
X = np.array([[1, -2], [3, -4]], np.float32)


def info(name, shape=(2, 2), element=F):
    return helper.make_tensor_value_info(name, element, shape)


def model_of(nodes, inputs, outputs=("y",), functions=(), opset=18):
    made = [o if not isinstance(o, str) else info(o) for o in outputs]
    return helper.make_model(
        helper.make_graph(nodes, "g", inputs, made),
        ir_version=10,
        functions=functions,
        opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("local", 1)],
    )


def branch(name, *nodes):
    outputs = [info(node.output[0]) for node in nodes]
    return helper.make_graph(list(nodes), name, [], outputs)


def ran(model, **feeds):
    return ReferenceEvaluator(model).run(None, feeds)


def test_a_body_may_have_sparse_initializers(rewrite):
    values = numpy_helper.from_array(np.array([5], np.float32), "s")
    indices = numpy_helper.from_array(np.array([3]), "places")
    then = branch("then", helper.make_node("Add", ["x", "s"], ["a"]))
    then.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2, 2]))
    other = branch("other", helper.make_node("Neg", ["x"], ["b"]))
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)

    written = rewrite(model_of([node], [info("x"), info("c", [], BOOL)]))

    (got,) = ran(written, x=X, c=np.array(True))
    np.testing.assert_array_equal(got, X + [[0, 0], [0, 5]])


def test_what_a_call_leaves_out_is_left_out_in_bodies_of_the_function(rewrite):
    node = helper.make_node(
        "If",
        ["c"],
        ["b"],
        then_branch=branch("then", helper.make_node("Clip", ["a", "least"], ["p"])),
        else_branch=branch("other", helper.make_node("Neg", ["a"], ["q"])),
    )
    function = helper.make_function(
        "local", "Held", ["a", "c", "least"], ["b"], [node], [helper.make_opsetid("", 18)]
    )
    call = helper.make_node("Held", ["x", "c"], ["y"], domain="local")

    written = rewrite(model_of([call], [info("x"), info("c", [], BOOL)], functions=[function]))

    np.testing.assert_array_equal(ran(written, x=X, c=np.array(True))[0], X)


def test_two_functions_of_one_name_are_refused(tenon, tmp_path):
    functions = [
        helper.make_function(
            "local",
            "F",
            ["a"],
            ["b"],
            [helper.make_node(op, ["a"], ["b"])],
            [helper.make_opsetid("", 18)],
        )
        for op in ("Neg", "Abs")
    ]
    call = helper.make_node("F", ["x"], ["y"], domain="local")
    onnx.save(model_of([call], [info("x")], functions=functions), tmp_path / "m.onnx")

    with pytest.raises(TenonError, match="two functions have the name F in the domain local"):
        tenon.load(tmp_path / "m.onnx")


@pytest.mark.parametrize("opset, attrs", [(13, {}), (18, {"num_outputs": 2})])
def test_a_part_that_is_left_out_is_still_a_part(opset, attrs, rewrite):
    node = helper.make_node("Split", ["x"], ["y", ""], axis=1, **attrs)

    written = rewrite(model_of([node], [info("x")], [info("y", [2, 1])], opset=opset))

    np.testing.assert_array_equal(ran(written, x=X)[0], X[:, :1])


def test_last_outputs_of_bodies_may_be_left_out(rewrite):
    def both(name, op):
        first = helper.make_node(op, ["x"], [f"{name}1"])
        return branch(name, first, helper.make_node("Identity", ["x"], [f"{name}2"]))

    node = helper.make_node(
        "If", ["c"], ["y", ""], then_branch=both("t", "Neg"), else_branch=both("e", "Abs")
    )

    written = rewrite(model_of([node], [info("x"), info("c", [], BOOL)]))

    assert len(written.graph.node[0].output) == 2
    np.testing.assert_array_equal(ran(written, x=X, c=np.array(True))[0], -X)


TENSOR = helper.make_tensor_type_proto(F, None)


@pytest.mark.parametrize("kind", [TENSOR, helper.make_sequence_type_proto(TENSOR)])
def test_an_empty_optional_keeps_its_type(kind, rewrite):
    nodes = [
        helper.make_node("Optional", [], ["none"], type=kind),
        helper.make_node("OptionalHasElement", ["none"], ["y"]),
    ]

    written = rewrite(model_of(nodes, [], [info("y", [], BOOL)]))

    (attribute,) = written.graph.node[0].attribute
    assert (attribute.type, attribute.tp) == (onnx.AttributeProto.TYPE_PROTO, kind)
