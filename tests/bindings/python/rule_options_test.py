# SPDX-License-Identifier: Apache-2.0
"""Gradients of operators with options and inputs that their rows' samples do not have, in float64,
against differences; and vmap of them where there is nothing in a batch."""

import numpy as np
import pytest
import tenon as tn


def numbers(*shape):
    return np.random.default_rng(3).standard_normal(shape)


def model_of(op, inputs, constants=(), outputs=1, which=0, **attributes):
    """One node. Inputs, then constants in their places; None: an absent one."""
    graph = tn.Graph()
    made = [graph.add_input(f"x{i}", str(x.dtype), x.shape) for i, x in enumerate(inputs)]
    made += [None if c is None else graph.add_constant(c) for c in constants]
    values = graph.add_node(op, made, outputs, **attributes)
    graph.add_output("y", values[which] if outputs > 1 else values)
    return graph.build()


def run(model, *arrays):
    return [np.asarray(y) for y in model.compile(backend="reference", threads=1)(*arrays)]


def check_gradients(model, inputs, step=1e-5):
    random = np.random.default_rng(5)
    floats = [i for i, x in enumerate(inputs) if x.dtype == np.float64]
    before = run(model, *inputs)[0]
    weight = random.standard_normal(before.shape)
    joint = model.apply("autodiff.vjp", argnums=floats)
    value, *gradients = run(joint, *inputs, weight)
    np.testing.assert_allclose(value, before, rtol=1e-12, atol=1e-12)
    for i, gradient in zip(floats, gradients):
        way = random.standard_normal(inputs[i].shape)
        ends = [
            run(model, *inputs[:i], inputs[i] + side * way, *inputs[i + 1 :])[0]
            for side in (-step, step)
        ]
        slope = (weight * (ends[1] - ends[0])).sum() / (2 * step)
        np.testing.assert_allclose((gradient * way).sum(), slope, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("number", ["int64", "int32"])
def test_exponents_may_be_integers(number):
    x = numbers(4)
    check_gradients(model_of("Pow", [x], [np.array([2, 3, 0, 1], number)]), [x])


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize_of_a_region(mode):
    x = numbers(1, 2, 4, 5)
    region = np.array([0, 0, -0.2, 0.1, 1, 1, 0.8, 1.3])
    model = model_of(
        "Resize",
        [x],
        [region, None, np.array([1, 2, 4, 7])],
        mode=mode,
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=0.7,
    )
    check_gradients(model, [x])


@pytest.mark.parametrize("pads", [[-1, 2], [2, -1], [-2, -1], [-6, 4], [5, -7]])
def test_the_value_of_pads_that_cut(pads):
    x, value = numbers(4), numbers()
    graph = tn.Graph()
    made = [graph.add_input("x", "float64", x.shape), graph.add_constant(np.array(pads))]
    made.append(graph.add_input("value", "float64", ()))
    graph.add_output("y", graph.add_node("Pad", made))
    check_gradients(graph.build(), [x, value])


@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("sizes", [[], [6, 8], [9, 3], [12, 13]])
def test_transposed_convolutions_to_stated_sizes(auto_pad, sizes):
    x, w, bias = numbers(2, 4, 3, 4), numbers(4, 1, 2, 3), numbers(2)
    options = {"output_shape": sizes} if sizes else {}
    model = model_of(
        "ConvTranspose",
        [x, w, bias],
        group=2,
        strides=[2, 3],
        dilations=[2, 1],
        output_padding=[1, 0],
        auto_pad=auto_pad,
        **options,
    )
    check_gradients(model, [x, w, bias])


@pytest.mark.parametrize("which", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_statistics_of_a_layer_norm(which, axis):
    x = numbers(2, 3, 4)
    scale = numbers(*x.shape[axis:])
    options = {"axis": axis, "epsilon": 0.1, "stash_type": tn.float64}
    model = model_of("LayerNormalization", [x, scale], outputs=3, which=which, **options)
    check_gradients(model, [x, scale])


@pytest.mark.parametrize("time", [0, 1])
def test_sequences_in_reverse(time):
    x = numbers(3, 3, 2)
    model = model_of(
        "ReverseSequence", [x], [np.array([3, 1, 2])], time_axis=time, batch_axis=1 - time
    )
    check_gradients(model, [x])


@pytest.mark.parametrize("options", [{}, {"axis": 0}, {"axis": -1}])
def test_slices_that_a_condition_chooses(options):
    x = numbers(3, 4)
    check_gradients(model_of("Compress", [x], [np.array([True, False, True])], **options), [x])


def test_largest_numbers_without_their_indices():
    x = numbers(3, 4)
    check_gradients(model_of("TopK", [x], [np.array([2])], axis=0), [x])


NORMS = [
    ("ReduceL2", {}),
    ("LpPool", {"kernel_shape": [2, 2]}),
    ("LpPool", {"kernel_shape": [2, 2], "p": 3}),
    ("GlobalLpPool", {}),
]


@pytest.mark.parametrize(("op", "options"), NORMS)
def test_norms_of_zeros_have_no_slope(op, options):
    x = np.zeros((1, 2, 4, 4))
    model = model_of(op, [x], **options)
    y, gradient = run(model.apply("autodiff.vjp"), x, np.ones_like(run(model, x)[0]))
    assert not y.any()
    assert not gradient.any()
    check_gradients(model, [numbers(1, 2, 4, 4)])


def test_the_norm_of_nothing_has_a_slope():
    x = np.zeros((0, 2))
    model = model_of("ReduceL2", [x], keepdims=0).apply("autodiff.jvp")
    assert run(model, x, x)[1] == 0


def test_a_channel_of_one_number_has_no_slope():
    x = numbers(1, 3, 1, 1)
    model = model_of("MeanVarianceNormalization", [x]).apply("autodiff.vjp")
    assert not run(model, x, np.ones_like(x))[1].any()
    x = numbers(2, 3, 2, 2)
    check_gradients(model_of("MeanVarianceNormalization", [x]), [x])


def test_logarithms_of_infinite_sums_keep_their_value():
    x = np.array([[-np.inf, -np.inf], [1, np.inf], [1, -np.inf]])
    model = model_of("ReduceLogSumExp", [x], [np.array([1])], keepdims=0)
    y, gradient = run(model.apply("autodiff.vjp"), x, np.ones(3))
    np.testing.assert_array_equal(y, [-np.inf, np.inf, 1])
    np.testing.assert_array_equal(gradient[2], [1, 0])


EMPTY = [
    ("Conv", [(0, 2, 5, 5), (2, 2, 2, 2)], "0, none", {}),
    ("Conv", [(0, 2, 5, 5), (2, 2, 2, 2)], "0, 0", {}),
    ("Conv", [(0, 2, 5, 5), (2, 2, 2, 2)], "none, 0", {}),
    ("ConvTranspose", [(0, 2, 3, 3), (2, 2, 2, 2)], "0, none", {}),
    ("SpaceToDepth", [(0, 2, 4, 2)], "0", {"blocksize": 2}),
    ("DepthToSpace", [(0, 8, 2, 3)], "0", {"blocksize": 2}),
]


@pytest.mark.parametrize(("op", "shapes", "axes", "options"), EMPTY)
def test_vmap_of_batches_of_nothing(op, shapes, axes, options):
    inputs = [numbers(*shape) for shape in shapes]
    model = model_of(op, inputs, **options)
    expected = run(model, *inputs)[0].shape
    mapped = [axis == "0" for axis in axes.split(", ")]
    wide = [np.stack([x] * 3) if has_axis else x for x, has_axis in zip(inputs, mapped)]
    assert run(model.apply("autodiff.vmap", in_axes=axes), *wide)[0].shape == (3, *expected)
