# SPDX-License-Identifier: Apache-2.0
"""What exporters write beyond the plain case, and what is refused."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tenon_library import TenonError

F = TensorProto.FLOAT


def info(name, shape, element=F):
    return helper.make_tensor_value_info(name, element, shape)


def model_of(nodes, inputs, outputs, initializers=(), opset=17, ir=8, **more):
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    more.setdefault("opset_imports", [helper.make_opsetid("", opset)])
    return helper.make_model(graph, ir_version=ir, **more)


def weight(name="w", shape=(2, 2)):
    return numpy_helper.from_array(np.arange(np.prod(shape), dtype=np.float32).reshape(shape), name)


def add_model(**more):
    return model_of(
        [helper.make_node("Add", ["x", "w"], ["y"], name="add")],
        [info("x", [2, 2])],
        [info("y", [2, 2])],
        [weight()],
        **more,
    )


def refused(tenon, tmp_path, model, match):
    path = tmp_path / "bad.onnx"
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    with pytest.raises(TenonError, match=match):
        tenon.load(path)


def test_constant_nodes_become_initializers(rewrite):
    node = helper.make_node("Constant", [], ["w"], value=weight())
    model = add_model()
    del model.graph.initializer[:]
    model.graph.node.insert(0, node)

    written = rewrite(model)

    assert [n.op_type for n in written.graph.node] == ["Add"]
    assert [t.name for t in written.graph.initializer] == ["w"]


def test_numbers_of_the_program_stay_constant_nodes(rewrite):
    scale = numpy_helper.from_array(np.full((1, 2), 0.125, np.float32), "scale")
    nodes = [
        helper.make_node("Constant", [], ["scale"], value=scale),
        helper.make_node("Mul", ["x", "scale"], ["y"], name="mul"),
    ]

    written = rewrite(model_of(nodes, [info("x", [2, 2])], [info("y", [2, 2])]))

    assert [n.op_type for n in written.graph.node] == ["Constant", "Mul"]
    kept = numpy_helper.to_array(written.graph.node[0].attribute[0].t)
    np.testing.assert_array_equal(kept, numpy_helper.to_array(scale))
    assert not written.graph.initializer


def test_initializers_listed_as_inputs_are_weights(rewrite):
    model = add_model(ir=3, opset=8)
    model.graph.input.append(info("w", [2, 2]))

    assert [i.name for i in rewrite(model).graph.input] == ["x"]


@pytest.mark.parametrize("dims", [[-1, "?"], ["", "None"], ["unknown", "?"]])
def test_garbage_dimensions_are_nameless(dims, rewrite):
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], [info("x", dims)], [info("y", dims)])
    if dims[0] == -1:
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1

    shape = rewrite(model).graph.input[0].type.tensor_type.shape

    assert [d.WhichOneof("value") for d in shape.dim] == [None, None]


def test_named_dimensions_stay(rewrite):
    dims = ["batch", "p2o.DynamicDimension.0"]
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], [info("x", dims)], [info("y", dims)])

    shape = rewrite(model).graph.output[0].type.tensor_type.shape

    assert [d.dim_param for d in shape.dim] == dims


def test_nested_bodies_take_values_from_around_them(rewrite):
    def branch(op, name):
        inner = helper.make_node(
            "If",
            ["c"],
            [f"{name}_o"],
            name=f"{name}_if",
            then_branch=leaf(op, f"{name}_t"),
            else_branch=leaf("Sub", f"{name}_e"),
        )
        return helper.make_graph([inner], name, [], [info(f"{name}_o", [2, 2])])

    def leaf(op, name):
        return helper.make_graph(
            [helper.make_node(op, ["h", "w"], [f"{name}_o"])], name, [], [info(f"{name}_o", [2, 2])]
        )

    model = model_of(
        [
            helper.make_node("Relu", ["x"], ["h"]),
            helper.make_node("Add", ["h", "w"], ["z"]),
            helper.make_node(
                "If",
                ["c"],
                ["y"],
                name="outer",
                then_branch=branch("Mul", "a"),
                else_branch=branch("Div", "b"),
            ),
        ],
        [info("x", [2, 2]), info("c", [], TensorProto.BOOL)],
        [info("y", [2, 2]), info("z", [2, 2])],
        [weight()],
    )
    x = np.ones((2, 2), np.float32)

    written = rewrite(model)

    assert all(len(n.input) == 1 for n in written.graph.node if n.op_type == "If")
    for c in (True, False):
        feeds = {"x": x, "c": np.array(c)}
        for ours, theirs in zip(
            ReferenceEvaluator(written).run(None, feeds),
            ReferenceEvaluator(model).run(None, feeds),
            strict=True,
        ):
            np.testing.assert_array_equal(ours, theirs)


def test_model_local_functions_are_inlined(rewrite):
    scale = helper.make_node("LeakyRelu", ["a"], ["b"])
    scale.attribute.append(
        onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    )
    function = helper.make_function(
        "local", "Leak", ["a"], ["b"], [scale], [helper.make_opsetid("", 16)], ["slope"]
    )
    call = helper.make_node("Leak", ["x"], ["y"], name="call", domain="local", slope=0.5)
    model = model_of(
        [call],
        [info("x", [2])],
        [info("y", [2])],
        functions=[function],
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("local", 1)],
    )

    written = rewrite(model)

    assert [n.op_type for n in written.graph.node] == ["LeakyRelu"]
    got = ReferenceEvaluator(written).run(None, {"x": np.array([-2, 2], np.float32)})
    assert got[0].tolist() == [-1, 2]


def test_functions_that_call_themselves_are_refused(tenon, tmp_path):
    node = helper.make_node("Loop1", ["a"], ["b"], domain="local")
    function = helper.make_function(
        "local", "Loop1", ["a"], ["b"], [node], [helper.make_opsetid("local", 1)]
    )
    call = helper.make_node("Loop1", ["x"], ["y"], domain="local")
    model = model_of(
        [call],
        [info("x", [2])],
        [info("y", [2])],
        functions=[function],
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("local", 1)],
    )

    refused(tenon, tmp_path, model, "functions call each other without end")


def test_unknown_operators_keep_domain_and_version(rewrite):
    node = helper.make_node("Frob", ["x"], ["y"], name="f", domain="com.acme", level=3)
    model = model_of(
        [node],
        [info("x", [2])],
        [info("y", [2])],
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.acme", 4)],
    )

    written = rewrite(model)

    assert (written.graph.node[0].domain, written.graph.node[0].attribute[0].i) == ("com.acme", 3)
    assert {o.domain: o.version for o in written.opset_import} == {"": 21, "com.acme": 4}


def test_what_the_file_says_about_itself_survives(rewrite):
    model = add_model(producer_name="maker", producer_version="3", doc_string="about")
    helper.set_model_props(model, {"author": "me"})
    model.graph.node[0].doc_string = "a sum"
    model.graph.metadata_props.add(key="signature", value="x -> y")

    written = rewrite(model)

    assert (written.producer_name, written.producer_version, written.doc_string) == (
        "maker",
        "3",
        "about",
    )
    assert (written.metadata_props[0].key, written.metadata_props[0].value) == ("author", "me")
    assert (written.graph.name, written.graph.node[0].doc_string) == ("g", "a sum")
    (of_graph,) = written.graph.metadata_props
    assert (of_graph.key, of_graph.value) == ("signature", "x -> y")


def test_external_data_is_found_beside_the_model(tenon, tmp_path):
    onnx.save(
        add_model(),
        tmp_path / "m.onnx",
        save_as_external_data=True,
        size_threshold=0,
        location="m.bin",
    )

    tenon.convert(tmp_path / "m.onnx", tmp_path / "out.onnx")

    (got,) = onnx.load(tmp_path / "out.onnx").graph.initializer
    assert numpy_helper.to_array(got).tolist() == [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    "location, length, match",
    [
        ("none.bin", 16, "external data: cannot .*none.bin.*no such file"),
        ("../m.bin", 16, "may leave the folder"),
        ("/etc/passwd", 16, "expected a relative path"),
        ("m.bin", 15, "expected a length of 16 bytes, got 15"),
        ("m.bin", 16, "expected 16 bytes at offset 0, got a file of 3 bytes"),
    ],
)
def test_bad_external_data_is_refused(location, length, match, tenon, tmp_path):
    model = add_model()
    (tmp_path / "m.bin").write_bytes(b"abc")
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, "length": str(length)}.items():
        tensor.external_data.add(key=key, value=value)

    refused(tenon, tmp_path, model, match)


def bad(change):
    model = add_model()
    change(model.graph)
    return model


BAD = {
    "cycle": (
        bad(
            lambda g: g.node.extend(
                [
                    helper.make_node("Add", ["b", "x"], ["a"], name="one"),
                    helper.make_node("Relu", ["a"], ["b"], name="two"),
                ]
            )
        ),
        "node one .Add.: it needs its own output",
    ),
    "missing input": (
        bad(lambda g: g.node[0].input.__setitem__(1, "nobody")),
        "node add .Add.: input 1: .* got nobody",
    ),
    "missing output": (bad(lambda g: g.output.append(info("nobody", [1]))), "output nobody"),
    "two of a name": (bad(lambda g: g.initializer.append(weight())), "two values have the name w"),
    "short raw_data": (
        bad(lambda g: setattr(g.initializer[0], "raw_data", b"abc")),
        "tensor w: raw_data at offset [0-9]+: expected 16 bytes, got 3",
    ),
    "overflow": (bad(lambda g: g.initializer[0].dims.extend([2**62, 2**62])), "size overflows"),
    "negative": (bad(lambda g: g.initializer[0].dims.__setitem__(0, -2)), "at least 0, got -2"),
    "strings": (
        bad(lambda g: g.initializer.append(numpy_helper.from_array(np.array(["a"], object), "s"))),
        "tensor s: .* got string",
    ),
    "string input": (
        bad(lambda g: g.input.append(info("s", [1], TensorProto.STRING))),
        "input s: expected numbers, got string",
    ),
    "sparse": (bad(lambda g: g.sparse_initializer.add()), "sparse tensor "),
    "shapes that disagree": (
        bad(lambda g: g.initializer[0].CopyFrom(weight(shape=(3, 5)))),
        "node add",
    ),
    "output of another type": (
        bad(lambda g: g.output[0].CopyFrom(info("y", [2, 2], TensorProto.INT32))),
        "output y: expected float32, got int32",
    ),
    "no opset": (
        model_of(
            [helper.make_node("Relu", ["x"], ["y"])],
            [info("x", [1])],
            [info("y", [1])],
            opset_imports=[helper.make_opsetid("a.b", 1)],
        ),
        "opset_import: expected a version",
    ),
    "empty": (b"", "got an empty file"),
    "truncated": (add_model().SerializeToString()[:-9], "expected|offset"),
    "text": (b"this is no model at all, just words\n", "offset|ONNX model"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused(name, tenon, tmp_path):
    refused(tenon, tmp_path, *BAD[name])


def varint(n):
    out = b""
    while n >= 0x80:
        out, n = out + bytes([n & 0x7F | 0x80]), n >> 7
    return out + bytes([n])


def test_files_over_2_gb_are_read(tenon, tmp_path):
    # A sparse file, so that the test costs no disk: the weight's raw_data ends the graph.
    n_bytes = 2_400_000_000
    tensor = TensorProto(name="w", data_type=F, dims=[n_bytes // 4000, 1000]).SerializeToString()
    tensor += b"\x4a" + varint(n_bytes)
    initializer = b"\x2a" + varint(len(tensor) + n_bytes) + tensor
    model = model_of(
        [helper.make_node("Gather", ["w", "i"], ["y"])],
        [info("i", [2], TensorProto.INT64)],
        [info("y", [2, 1000])],
    )
    graph = model.graph.SerializeToString() + initializer
    model.ClearField("graph")
    head = model.SerializeToString() + b"\x3a" + varint(len(graph) + n_bytes) + graph
    with open(tmp_path / "big.onnx", "wb") as file:
        file.write(head)
        file.truncate(len(head) + n_bytes)

    assert tenon.load(tmp_path / "big.onnx")

    with open(tmp_path / "big.onnx", "r+b") as file:
        file.truncate(len(head) + n_bytes - 1)
    with pytest.raises(TenonError, match="is the file cut short"):
        tenon.load(tmp_path / "big.onnx")


def test_a_list_that_a_body_takes_is_one_without_a_declaration(rewrite):
    """As PyTorch writes EmbeddingBag: the inputs of the body have names alone."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["x", "x"], ["twice"]),
            helper.make_node("SequenceInsert", ["list", "twice"], ["longer"]),
            helper.make_node("Identity", ["go"], ["again"]),
        ],
        "body",
        [onnx.ValueInfoProto(name=name) for name in ("i", "go", "list")],
        [onnx.ValueInfoProto(name=name) for name in ("again", "longer")],
    )
    model = model_of(
        [
            helper.make_node("SequenceEmpty", [], ["none"]),
            helper.make_node("Loop", ["n", "first", "none"], ["all"], body=body),
            helper.make_node("ConcatFromSequence", ["all"], ["y"], axis=0),
        ],
        [info("x", [2])],
        [info("y", None)],
        [
            numpy_helper.from_array(np.array(3), "n"),
            numpy_helper.from_array(np.array(True), "first"),
        ],
    )

    written = rewrite(model)

    loop = next(n for n in written.graph.node if n.op_type == "Loop")
    assert loop.attribute[0].g.input[2].type.HasField("sequence_type")
    got = ReferenceEvaluator(written).run(None, {"x": np.array([1, 2], np.float32)})
    np.testing.assert_array_equal(got[0], [2, 4, 2, 4, 2, 4])
