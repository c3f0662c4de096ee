# SPDX-License-Identifier: Apache-2.0
"""`precision.autocast` and `precision.widen` around operators that have fewer types than others."""

import numpy as np
import pytest
import tenon as tn

BOXES = np.array([[[0, 0, 1, 1], [0, 0, 1, 1.01], [2, 2, 3, 3]]], "f")
LEVELS = ["O1", "O2", "O3"]


def bit_cast(g, y):
    return g.add_node("BitCast", [y], to="int32")


def dynamic(g, y):
    return g.add_node("DynamicQuantizeLinear", [y], outputs=3)[0]


def suppressed(g, y):
    scores = g.add_constant(np.array([[[0.9, 0.8, 0.7]]], "f"))
    most, overlap = g.add_constant(np.array([3])), g.add_constant(np.array([0.5], "f"))
    return g.add_node("NonMaxSuppression", [y, scores, most, overlap])


def resized(g, y):
    """By factors that the product gives, all of them 1."""
    factors = g.add_node("ReduceMax", [y, g.add_constant(np.array([0, 1]))], keepdims=0)
    factors = g.add_node("Slice", [factors, *(g.add_constant(np.array([n])) for n in (1, 4))])
    factors = g.add_node("Round", [g.add_node("Div", [factors, factors])])
    return g.add_node("Resize", [y, None, factors], mode="linear")


def scaled(g, y):
    quantized = g.add_constant(np.arange(4, dtype="int8"))
    return g.add_node("DequantizeLinear", [quantized, g.add_node("ReduceMax", [y], keepdims=0)])


def listed(g, y):
    both = g.add_node("SequenceConstruct", [y, g.add_node("Softmax", [y])])
    return g.add_node("SequenceAt", [both, g.add_constant(np.array(1))])


def optional(g, y):
    return g.add_node("OptionalGetElement", [g.add_node("Optional", [y])])


NARROW = [bit_cast, dynamic, suppressed, resized]


def behind_a_product(build):
    g = tn.Graph()
    x = g.add_input("x", "float32", [1, 3, 4])
    y = g.add_node("MatMul", [x, g.add_constant(np.eye(4, dtype="f"), "w")])
    g.add_output("z", build(g, y))
    return g.build()


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("build", [*NARROW, scaled, listed, optional])
def test_outputs_keep_their_types_whatever_the_level(build, dtype, level):
    model = behind_a_product(build)
    cast = model.apply("precision.autocast", dtype=dtype, level=level)
    assert [one.dtype for one in cast.outputs] == [one.dtype for one in model.outputs]
    wanted, got = model.compile()(BOXES)[0], cast.compile()(BOXES)[0]
    assert got.dtype == wanted.dtype
    if build is not bit_cast:  # whose bits are other ones where the product is rounded
        np.testing.assert_allclose(got, wanted, atol=0.02)


def test_a_cast_that_is_not_needed_after_all_is_not_there():
    cast = behind_a_product(suppressed).apply("precision.autocast", level="O2")
    types = [node["dtype"] for node in cast.report["nodes"] if node["op"] == "NonMaxSuppression"]
    assert types == ["int64"] and cast.report["casts"] == 3  # of x and w, and back


def test_a_low_type_that_is_asked_for_by_name_is_an_error():
    with pytest.raises(tn.InvalidArgument, match="expected float32, got bfloat16"):
        behind_a_product(suppressed).apply("precision.autocast", low=["NonMaxSuppression"])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("build", [*NARROW, scaled, listed, optional])
def test_the_second_time_changes_nothing(build, level):
    once = behind_a_product(build).apply("precision.autocast", level=level)
    assert once.apply("precision.autocast", level=level).text() == once.text()


def test_all_nodes_may_be_asked_for_where_some_are_casts():
    once = behind_a_product(scaled).apply("precision.autocast")
    assert once.apply("precision.autocast", low=["*"]).compile()(BOXES)[0].dtype == "float32"


@pytest.mark.parametrize("level", LEVELS)
def test_integers_that_a_cast_makes_of_an_input_are_exact(level):
    g = tn.Graph()
    x = g.add_input("x", "float32", [3])
    g.add_output("y", g.add_node("Cast", [x], to="int64"))
    cast = g.build().apply("precision.autocast", level=level)
    assert cast.compile()(np.array([257, 301, 4099], "f"))[0].tolist() == [257, 301, 4099]


@pytest.mark.parametrize("number", [-3.4028235e38, 1e30, -np.inf])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_numbers_of_a_mask_are_finite_in_the_low_type_where_they_were(dtype, number):
    g = tn.Graph()
    x, seen = g.add_input("x", "float32", [2, 4]), g.add_input("seen", "bool", [2, 4])
    y = g.add_node("MatMul", [x, g.add_constant(np.eye(4, dtype="f"), "w")])
    number = np.array(number, "f")
    y = g.add_node("Where", [seen, y, g.add_constant(number, "hidden")])
    g.add_output("y", g.add_node("Softmax", [y]))
    model = g.build()
    rows = np.array([[True, True, False, False], [False] * 4])
    wanted = model.compile()(np.zeros((2, 4), "f"), rows)[0]
    for level in LEVELS:
        cast = model.apply("precision.autocast", dtype=dtype, level=level)
        np.testing.assert_array_equal(cast.compile()(np.zeros((2, 4), "f"), rows)[0], wanted)


@pytest.mark.parametrize("interface", ["keep", "float64"])
@pytest.mark.parametrize("build", NARROW)
def test_operators_without_float64_read_float32_in_a_model_that_is_widened(build, interface):
    model = behind_a_product(build)
    wide = model.apply("precision.widen", to="float64", interface=interface)
    x = BOXES if interface == "keep" else BOXES.astype("float64")
    np.testing.assert_array_equal(wide.compile()(x)[0], model.compile()(BOXES)[0])
