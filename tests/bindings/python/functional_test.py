# SPDX-License-Identifier: Apache-2.0
"""Models as functions of their parameters, judged by `tn.train`, NumPy and finite differences."""

import numpy as np
import pytest
import tenon as tn
from same_sums import assert_same
from tenon import nn

X = np.random.default_rng(0).standard_normal((8, 3)).astype("f")
Y = X.sum(1, keepdims=True)


@pytest.fixture(scope="module")
def model():
    net = nn.Sequential(nn.Linear(16), tn.tanh, nn.Linear(1))
    return nn.build(net, {"x": ("N", 3)}, seed=0)


def error(model):
    return lambda params, x, y: ((model(x, parameters=params) - y) ** 2).mean()


def test_parameters_are_what_is_trained(model):
    assert set(model.parameters()) == {"0.weight", "0.bias", "2.weight", "2.bias"}
    assert set(model.parameters("2.*")) == {"2.weight", "2.bias"}
    model.parameters()["0.bias"][:] = 7  # copies
    assert np.asarray(model.constants()["0.bias"]).max() != 7


def test_some_of_the_parameters(model):
    moved = {"2.bias": model.parameters()["2.bias"] + 1}
    np.testing.assert_allclose(model(X, parameters=moved), model(X) + 1, rtol=1e-5)
    loaded = nn.load(model, moved, update=True)
    assert_same(loaded(X), model(X, parameters=moved))  # weights that are constants are packed
    with pytest.raises(tn.InvalidArgument, match="update = true keeps the model's own"):
        nn.load(model, moved)


def test_a_loop_of_ones_own_is_the_trainer(model):
    step = tn.Step(error(model), model.parameters(), tn.optim.sgd(lr=0.1))
    for _ in range(5):
        step(X, Y)
    trained = tn.train(model, {"x": X, "label": Y}, epochs=5, batch=8, shuffle=False,
                       loss="mse", optimizer=tn.optim.sgd(lr=0.1), restore_best=False)  # fmt: skip
    for name, value in trained.parameters().items():
        np.testing.assert_allclose(step.parameters[name], value, rtol=1e-5, atol=1e-6)


def test_an_ensemble_by_vmap(model):
    own = model.parameters()
    many = {name: np.stack([value, 2 * value, 3 * value]) for name, value in own.items()}
    results = tn.vmap(lambda p, x: model(x, parameters=p), in_axes=(0, None))(many, X)
    for i, result in enumerate(results):
        one = {name: value[i] for name, value in many.items()}
        np.testing.assert_allclose(result, model(X, parameters=one), rtol=1e-5, atol=1e-6)


def test_a_gradient_through_an_update(model):
    """One step of MAML (Finn et al. 2017)."""

    def after_update(p, x, y):
        slopes = tn.grad(error(model))(p, x, y)
        return error(model)({name: p[name] - 0.1 * slopes[name] for name in p}, x, y)

    own, rng = model.parameters(), np.random.default_rng(1)
    way = {name: rng.standard_normal(value.shape).astype("f") for name, value in own.items()}
    ends = [{name: own[name] + h * way[name] for name in own} for h in (-1e-2, 1e-2)]
    low, high = (float(tn.jit(after_update)(p, X, Y)) for p in ends)
    slopes = tn.grad(after_update)(own, X, Y)
    slope = sum(float((slopes[name] * way[name]).sum()) for name in own)
    assert (high - low) / 2e-2 == pytest.approx(slope, rel=1e-2)


def test_dropout_draws_by_the_key():
    ones = np.ones((2, 1000), "f")
    assert nn.build(nn.Dropout(0.25), {"x": ("N", 1000)}).parameters() == {}
    net = nn.Sequential(nn.Dropout(0.25), nn.Linear(1000))
    model = nn.build(net, {"x": ("N", 1000)})
    eye = {"1.weight": np.eye(1000, dtype="f"), "1.bias": np.zeros(1000, "f")}

    def drawn(key):
        return model(ones, parameters=eye, training=True, key=key)

    first = drawn([0, 1])
    np.testing.assert_array_equal(first, drawn(np.array([0, 1])))
    assert (first != drawn([0, 2])).any() and (first != drawn([1, 1])).any()
    assert set(np.unique(first)) == {np.float32(0), np.float32(1 / 0.75)}
    assert 0.2 < (first == 0).mean() < 0.3
    np.testing.assert_array_equal(model(ones, parameters=eye), ones)


def test_batch_norm_uses_the_batch_and_keeps_its_running_statistics():
    model = nn.build(nn.BatchNorm(), {"x": ("N", 3)})
    x = X * 3 + 1
    wanted = (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5)
    np.testing.assert_allclose(model(x, training=True), wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model(x), x / np.sqrt(1 + 1e-5), rtol=1e-5)
    slope = tn.grad(lambda p: (model(x, parameters=p, training=True) * X).sum())(
        {"weight": np.ones(3, "f")}
    )
    np.testing.assert_allclose(slope["weight"], (wanted * X).sum(0), rtol=1e-3)


class TwoBranches(nn.Module):
    """Two normalizations of one value, each with a Relu whose mask is its own."""

    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv(channels, 3, padding=1)
        self.norms = [nn.BatchNorm(), nn.BatchNorm()]
        self.convs = [nn.Conv(channels, 3, padding=1), nn.Conv(channels, 1)]

    def forward(self, x):
        x = self.first(x)
        parts = [conv(tn.relu(norm(x))) for norm, conv in zip(self.norms, self.convs)]
        return (parts[0] + parts[1]).mean((2, 3))


@pytest.mark.parametrize("channels", [16, 24])
def test_two_norms_of_one_value_have_masks_of_their_own(channels):
    model = nn.build(TwoBranches(channels), {"x": ("N", 3, 8, 8)}, seed=1)
    random = np.random.default_rng(0)
    parameters = dict(model.parameters())
    for name in parameters:
        if name.startswith("norms") and name.endswith("bias"):
            parameters[name] = random.normal(size=channels).astype("f")
    x = random.normal(size=(16, 3, 8, 8)).astype("f")

    def loss(p, x):
        return (model(x, parameters=p, training=True) ** 2).sum()

    got, wanted = (tn.grad(loss, backend=b)(parameters, x) for b in ("onednn", "reference"))
    for name in parameters:
        largest = np.abs(wanted["norms.0.weight"]).max()
        np.testing.assert_allclose(got[name], wanted[name], atol=1e-4 * largest, err_msg=name)


@pytest.mark.parametrize("channels", [8, 24, 32])
def test_two_gates_whose_weights_are_arguments(channels):
    random = np.random.default_rng(0)
    x, y, z = (random.normal(size=(1, channels, 1, 1)).astype("f") for _ in range(3))
    v, w = (random.normal(size=(channels, channels, 1, 1)).astype("f") for _ in range(2))

    def gated(x, y, z, v, w):
        return z * tn.sigmoid(tn.conv(x, v)) * tn.sigmoid(tn.conv(y, w))

    got, wanted = (tn.jit(gated, backend=b)(x, y, z, v, w) for b in ("onednn", "reference"))
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "given, message",
    [
        ({"parameters": {"0.wieght": X}}, r"that Model.parameters\(\) gives \(0.weight"),
        ({"parameters": {"0.bias": X}}, r"0.bias: expected the shape \[16\], got \[8, 3\]"),
        ({"key": [0, 1]}, "key: expected none where nothing is drawn: training=True draws"),
        ({"key": [0, 1], "training": True}, "the model has no Dropout"),
    ],
)
def test_what_does_not_fit_is_refused(model, given, message):
    with pytest.raises(tn.InvalidArgument, match=message):
        model(X, **given)


def test_dropout_without_a_key():
    model = nn.build(nn.Sequential(nn.Linear(2), nn.Dropout(0.5)), {"x": ("N", 3)})
    with pytest.raises(tn.InvalidArgument, match=r"expected key=\[seed, step\]"):
        model(X, training=True)


def test_a_model_without_weights_has_no_parameters():
    model = tn.nn.build(lambda x: x * 2.0, {"x": ("N", 3)})
    assert model.parameters() == {}
    np.testing.assert_array_equal(model(np.ones((1, 3), "f"), parameters={}), [[2, 2, 2]])
    with pytest.raises(tn.InvalidArgument, match="no float32 constant of the model fits 'w'"):
        model.parameters("w")


def test_factors_of_sizes_are_no_parameters():
    graph = tn.Graph()
    x = graph.add_input("x", "float32", [1, 1, 2, 2])
    w = graph.add_constant(np.ones((1, 1, 1, 1), "f"), "w")
    scales = graph.add_constant(np.array([1, 1, 2, 2], "f"), "scales")
    product = graph.add_node("Mul", [x, w])
    graph.add_output("y", graph.add_node("Resize", [product, None, scales], mode="nearest"))
    assert list(graph.build().parameters()) == ["w"]


@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 2, 1, 2], [0, 3, 0, 3]])
def test_a_transposed_convolution_with_more_output_padding_than_stride_has_a_gradient(pads):
    """It is linear in either operand, so that differences of any length are its slopes."""
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((1, 2, 3, 4)), rng.standard_normal((2, 3, 2, 2))
    graph = tn.Graph()
    ports = [graph.add_input("x", "float64", x.shape), graph.add_input("w", "float64", w.shape)]
    more = {"strides": [1, 2], "dilations": [3, 3], "output_padding": [2, 2], "pads": pads}
    graph.add_output("y", graph.add_node("ConvTranspose", ports, **more))
    model = graph.build()
    plan = model.compile(backend="reference")
    weights = rng.standard_normal(plan(x, w)[0].shape)
    made = tn.grad(lambda x, w: (model(x, w) * weights).sum(), argnums=(0, 1))(x, w)
    for at, (slopes, operand) in enumerate(zip(made, (x, w))):
        for i in np.ndindex(operand.shape):
            step = [np.zeros_like(x), np.zeros_like(w)]
            step[at][i] = 1
            ends = [(plan(x + s * step[0], w + s * step[1])[0] * weights).sum() for s in (1, -1)]
            assert abs(slopes[i] - (ends[0] - ends[1]) / 2) < 1e-9
