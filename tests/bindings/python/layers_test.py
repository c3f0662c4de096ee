# SPDX-License-Identifier: Apache-2.0
"""Layers of `tenon.nn` against PyTorch's (tests/golden/layers.py), names, and what begins there."""

import json
from pathlib import Path

import numpy as np
import pytest
import tenon as tn
from tenon import nn

GOLDEN = Path(__file__).parent.parent.parent / "golden"
LAYERS = json.loads((GOLDEN / "layers.json").read_text())


def array(kept: dict) -> np.ndarray:
    return np.array(kept["data"], kept["dtype"]).reshape(kept["shape"])


def weights(arrays: dict[str, np.ndarray]) -> tn.Model:
    """A model that is nothing but constants."""
    graph = tn.Graph()
    for name, one in arrays.items():
        graph.add_output(name, graph.add_constant(one, name))
    return graph.build()


def constants(model: tn.Model) -> dict[str, np.ndarray]:
    return {name: np.asarray(value) for name, value in model.constants().items()}


def trained(model: tn.Model) -> set[str]:
    return {name for name, x in constants(model).items() if x.dtype == np.float32 and x.ndim > 0}


@pytest.mark.parametrize("case", LAYERS["cases"], ids=lambda c: f"{c['layer']}{c['options']}")
@pytest.mark.parametrize("backend", ["reference", "onednn"])
def test_layers_are_pytorchs(case, backend):
    inputs = [array(one) for one in case["inputs"]]
    ports = {f"x{i}": nn.Input(x.shape, x.dtype.name) for i, x in enumerate(inputs)}
    layer = getattr(nn, case["layer"])(**case["options"])
    n_outputs = len(case["outputs"])
    model = nn.build(lambda *x: layer(*x, outputs=n_outputs), ports)
    prefix = layer.id.removeprefix("layers.") + "1."
    state = {prefix + name: array(kept) for name, kept in case["state"].items()}
    assert set(state) == trained(model)
    model = nn.load(model, weights(state))
    made = model.compile(backend=backend)(*inputs)
    wrt = [prefix + name for name in case["gradients"]] + ["x0"] * bool(case["input_gradient"])
    wanted = [*map(array, case["outputs"]), *map(array, case["gradients"].values())]
    wanted += [array(case["input_gradient"])] if case["input_gradient"] else []
    step = model.apply("autodiff.vjp", wrt=wrt) if wrt else model
    cotangents = [array(one) for one in case["cotangents"]] if wrt else []
    plan = step.compile(backend=backend)
    for port in step.states:  # a constant that has a gradient is a state, which starts as zeros
        plan.set_state(port.name, state[port.name])
    both = plan(*inputs, *cotangents)
    for got, want in [*zip(made, wanted), *zip(both, wanted, strict=True)]:
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-4 * max(1, abs(want).max()))


class Block(nn.Module):
    def __init__(self, width, stride=1):
        self.conv1 = nn.Conv(width, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm()
        self.conv2 = nn.Conv(width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm()
        if stride > 1:
            shrink = nn.Conv(width, 1, stride=stride, bias=False)
            self.downsample = nn.Sequential(shrink, nn.BatchNorm())

    def forward(self, x):
        y = self.bn2(self.conv2(tn.relu(self.bn1(self.conv1(x)))))
        return tn.relu(y + (self.downsample(x) if hasattr(self, "downsample") else x))


class Network(nn.Module):
    def __init__(self):
        self.conv1, self.bn1 = nn.Conv(8, 3, padding=1, bias=False), nn.BatchNorm()
        self.layer1 = nn.Sequential(Block(8))
        self.layer2 = nn.Sequential(Block(16, 2))
        self.fc = nn.Linear(5)

    def forward(self, x):
        x = tn.relu(self.bn1(self.conv1(x)))
        return self.fc(self.layer2(self.layer1(x)).mean((2, 3)))


@pytest.fixture(scope="module")
def resnet() -> tn.Model:
    return nn.build(Network(), {"image": ("N", 3, 12, 12)})


def test_a_state_dict_of_pytorch_goes_on_training(resnet, tmp_path):
    golden = LAYERS["network"]
    model = nn.load(resnet, str(GOLDEN / "state_dict.safetensors"))
    image, label = array(golden["image"]), array(golden["label"])
    np.testing.assert_allclose(model.compile()(image)[0], array(golden["logits"]), atol=2e-4)
    np.savez(tmp_path / "data.npz", image=image, label=label)
    losses = []
    tn.train(
        model,
        tn.data.npz(tmp_path / "data.npz"),
        epochs=6,
        batch=8,
        shuffle=False,
        optimizer=tn.optim.sgd(lr=0.1, momentum=0.9),
        callbacks=[tn.callback(step=lambda point: losses.append(point["loss"]))],
    )
    np.testing.assert_allclose(losses, golden["losses"], rtol=2e-3)


def test_what_is_missing_or_too_much_is_named(resnet):
    state = {name: x for name, x in constants(resnet).items() if name in trained(resnet)}
    fewer = {name: x for name, x in state.items() if name != "fc.bias"}
    with pytest.raises(tn.InvalidArgument, match="expected fc.bias among"):
        nn.load(resnet, weights(fewer))
    assert nn.load(resnet, weights(fewer), partial=True).report["missing"] == 1
    with pytest.raises(tn.InvalidArgument, match="fc.more: the model has no constant"):
        nn.load(resnet, weights(state | {"fc.more": np.zeros(1, "f")}))
    wrong = state | {"fc.bias": np.zeros(4, "f")}
    with pytest.raises(tn.InvalidArgument, match=r"fc.bias: expected float32\[5\], got float"):
        nn.load(resnet, weights(wrong))
    other = {"net." + name: x + 1 for name, x in state.items()}
    loaded = constants(nn.load(resnet, weights(other), prefix="net."))
    assert all((loaded[name] == state[name] + 1).all() for name in state)


class Weights:
    """What `nn.load` needs of a PyTorch module: its state dict."""

    def __init__(self, state):
        self._state = state

    def state_dict(self):
        return self._state


@pytest.mark.parametrize("form", [dict, Weights])
def test_weights_come_from_arrays_by_name_or_from_a_module(resnet, form):
    state = {name: x + 1 for name, x in constants(resnet).items() if name in trained(resnet)}
    state["bn1.num_batches_tracked"] = np.array(7)  # a count that nothing needs
    loaded = constants(nn.load(resnet, form(state)))
    assert all((loaded[name] == x).all() for name, x in state.items() if x.ndim)
    with pytest.raises(tn.InvalidArgument, match="expected fc.bias among"):
        nn.load(resnet, form({name: x for name, x in state.items() if name != "fc.bias"}))


@pytest.mark.parametrize("wrong", [7, [np.zeros(3, "f")], None])
def test_what_holds_no_weights_is_refused(resnet, wrong):
    with pytest.raises(TypeError, match=f"or a module with state_dict, got {type(wrong).__name__}"):
        nn.load(resnet, wrong)


def test_a_state_in_16_bits_comes_back(resnet, tmp_path):
    special = np.array([1 + 2**-8, 1 + 3 * 2**-8, -(2.0**-130), 3.3895e38, np.nan], "f")
    state = {name: x for name, x in constants(resnet).items() if name in trained(resnet)}
    state["fc.bias"] = special
    weights(state).save(tmp_path / "half.safetensors", dtype="bfloat16")
    wide = sum(x.nbytes for x in state.values())
    assert (tmp_path / "half.safetensors").stat().st_size < 0.65 * wide
    loaded = constants(nn.load(resnet, str(tmp_path / "half.safetensors")))
    for name, x in state.items():
        np.testing.assert_allclose(loaded[name], x, rtol=2**-8, atol=2**-134)
        assert not (loaded[name].view("u4") & 0x7FFF)[~np.isnan(x)].any()  # each is a bfloat16
    # Halfway goes to even, NaN stays NaN.
    assert loaded["fc.bias"][0] == 1 and loaded["fc.bias"][1] == 1 + 2**-6
    assert np.isnan(loaded["fc.bias"][4])


def test_initial_values_are_a_function_of_seed_and_name(resnet):
    again = nn.build(Network(), {"image": ("N", 3, 12, 12)}, seed=0)
    other = nn.build(Network(), {"image": ("N", 3, 12, 12)}, seed=1)
    first, second, third = constants(resnet), constants(again), constants(other)
    assert all((first[name] == second[name]).all() for name in trained(resnet))
    assert (first["fc.weight"] != third["fc.weight"]).all()
    assert (first["layer1.0.conv1.weight"] != first["layer1.0.conv2.weight"]).all()
    # One layer more elsewhere changes nothing of the others.
    longer = nn.build(nn.Sequential(nn.Linear(4), nn.Linear(3), nn.Linear(9)), {"x": ("N", 5)})
    shorter = nn.build(nn.Sequential(nn.Linear(4), nn.Linear(3)), {"x": ("N", 5)})
    assert (constants(longer)["1.weight"] == constants(shorter)["1.weight"]).all()


def drawn(init, shape=(200, 300)) -> np.ndarray:
    model = nn.build(lambda: nn.Parameter(list(shape), init=init)(), {}, seed=3)
    return constants(model)["parameter1"].astype("d")


# Of a weight [200, 300]: fan_in 300, fan_out 200. Deviation, and bounds where there are some.
DISTRIBUTIONS = [
    (lambda: "he", (2 / 300) ** 0.5, None),
    (lambda: nn.init.he(mode="fan_out", slope=0.5), (2 / 1.25 / 200) ** 0.5, None),
    (lambda: nn.init.he(distribution="uniform"), (2 / 300) ** 0.5, (6 / 300) ** 0.5),
    (lambda: "xavier", (2 / 500) ** 0.5, (6 / 500) ** 0.5),
    (lambda: nn.init.xavier(distribution="normal", gain=2), 2 * (2 / 500) ** 0.5, None),
    (lambda: "fan_uniform", (1 / 900) ** 0.5, 300**-0.5),
    (lambda: nn.init.normal(deviation=0.5), 0.5, None),
    (lambda: nn.init.uniform(low=-3, high=3), 3**0.5, 3),
    # Variance of the normal distribution cut at 2: 1 - 4 pdf(2) / (2 cdf(2) - 1).
    (lambda: nn.init.truncated_normal(deviation=1), 0.7737413**0.5, 2),
]


@pytest.mark.parametrize(("init", "deviation", "bound"), DISTRIBUTIONS)
def test_distributions(init, deviation, bound):
    x = drawn(init()).reshape(-1)
    error = 5 / len(x) ** 0.5
    assert abs(x.mean()) < error * deviation
    assert abs(x.std() / deviation - 1) < error
    quarters = np.quantile(x, [0.25, 0.75]) / deviation
    normal = bound is None
    cut = bound == 2
    wanted = 0.6745 if normal else 0.642 / 0.8796 if cut else 0.5 * 3**0.5
    np.testing.assert_allclose(quarters, [-wanted, wanted], atol=0.02)
    if bound:
        assert bound * 0.99 < abs(x).max() <= bound * (1 + 1e-6)
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < error


@pytest.mark.parametrize("shape", [(20, 50), (50, 20), (16, 4, 3, 3), (1, 7)])
def test_orthogonal(shape):
    x = drawn(nn.init.orthogonal(gain=1.5), shape).reshape(shape[0], -1)
    product = x @ x.T if x.shape[0] <= x.shape[1] else x.T @ x
    np.testing.assert_allclose(product, 2.25 * np.eye(len(product)), atol=1e-5)


def test_zeros_ones_and_constants():
    assert (drawn("zeros", (2, 3)) == 0).all()
    assert (drawn("ones", (2, 3)) == 1).all()
    assert (drawn(nn.init.constant(value=0.25), (2, 3)) == 0.25).all()


def test_zero_gamma_makes_a_residual_branch_nothing():
    branch = nn.Sequential(nn.Conv(4, 3, padding=1), nn.BatchNorm(init="zeros"))
    model = nn.build(nn.Residual(branch), {"x": ("N", 4, 5, 5)})
    x = np.random.default_rng(0).standard_normal((2, 4, 5, 5)).astype("f")
    assert (model.compile()(x)[0] == x).all()
    assert trained(model) >= {"body.0.weight", "body.1.weight", "body.1.running_var"}


def test_a_layer_used_twice_has_one_set_of_parameters():
    layer = nn.Linear(4)
    model = nn.build(nn.Sequential(layer, tn.tanh, layer), {"x": ("N", 4)})
    assert trained(model) == {"0.weight", "0.bias"}


def test_modules_in_lists_and_dicts_have_names():
    class Net(nn.Module):
        def __init__(self):
            self.steps = [nn.Linear(3), nn.Linear(3)]
            self.heads = {"a": nn.Linear(1, bias=False)}

        def forward(self, x):
            for step in self.steps:
                x = step(x)
            return self.heads["a"](x)

    names = {"steps.0.weight", "steps.0.bias", "steps.1.weight", "steps.1.bias", "heads.a.weight"}
    assert trained(nn.build(Net(), {"x": ("N", 2)})) == names


def test_every_layer_has_help_and_refuses_what_does_not_fit():
    layers = [name for name in dir(nn) if name[0].isupper()]
    assert {"Linear", "Conv", "RMSNorm", "LSTM", "GRU", "GlobalAvgPool"} <= set(layers)
    assert "stride: step between windows (default 1)" in nn.Conv.__doc__
    with pytest.raises(AttributeError, match="expected one of .*Linear.*, got 'Linaer'"):
        _ = nn.Linaer
    with pytest.raises(TypeError, match="expected out, kernel in order and options by name, got 3"):
        nn.Conv(1, 2, 3)
    with pytest.raises(tn.InvalidArgument, match="option out"):
        nn.Linear(0)
    with pytest.raises(tn.InvalidArgument, match="output_padding: expected it with transposed"):
        nn.Conv(1, 2, output_padding=1)
    with pytest.raises(tn.NotFound, match="option init: .*did you mean 'layers.he'"):
        nn.Linear(4, init="hee")
    with pytest.raises(TypeError, match="expected to be called inside nn.build"):
        nn.Linear(4)(np.zeros((1, 2), "f"))


@pytest.mark.parametrize(
    ("make", "shape", "dtype", "message"),
    [
        (lambda: nn.Linear(4), ("N", None), "float32", "known number of features on axis -1"),
        (lambda: nn.Linear(4), ("N", 3), "int64", "expected floats of rank at least 2, got int64"),
        (lambda: nn.Conv(6, 3, groups=4), ("N", 4, 8), "float32", "option groups"),
        (lambda: nn.Conv(6, [3, 3]), ("N", 4, 8), "float32", "option kernel: expected one number"),
        (lambda: nn.GroupNorm(3), ("N", 4, 8), "float32", "option groups: expected a divisor"),
        (lambda: nn.MultiHeadAttention(3), ("N", 5, 8), "float32", "option heads"),
        (lambda: nn.LSTM(3), ("N", 5), "float32", r"\[batch, steps, features\]"),
        (lambda: nn.Embedding(3, 2), ("N", 5), "float32", "int32 or int64"),
        (lambda: nn.Linear(4, init="orthogonal", bias_init="orthogonal"), ("N", 3), "float32",
         "parameter 0.bias: layers.orthogonal: expected a parameter of rank 2"),
    ],
)  # fmt: skip
def test_inputs_that_do_not_fit_are_named(make, shape, dtype, message):
    with pytest.raises(tn.InvalidArgument, match=message):
        nn.build(nn.Sequential(make()), {"x": nn.Input(shape, dtype)})


def test_attention_drops_some_of_its_weights_while_training():
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("f")
    plain, dropping = (
        nn.build(nn.MultiHeadAttention(2, dropout=ratio), {"x": ("N", 5, 8)}) for ratio in (0, 0.25)
    )
    wanted = plain(x)
    np.testing.assert_allclose(dropping(x), wanted, rtol=1e-5, atol=1e-6)
    parameters = dict(dropping.parameters())

    def trained(seed):
        return dropping(x, parameters=parameters, training=True, key=[0, seed])

    draws = np.stack([trained(seed) for seed in range(400)])
    np.testing.assert_array_equal(draws[3], trained(3))
    assert all(np.abs(draws[0] - draws[1]).max((1, 2)) > 1e-3)
    error = draws.std(0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(0) - wanted) < 5 * error).all()


def test_attention_drops_weights_where_the_steps_are_known():
    with pytest.raises(tn.Unimplemented, match="option dropout.*known sizes"):
        nn.build(nn.MultiHeadAttention(2, dropout=0.1), {"x": ("N", "T", 8)})


def test_training_differs_from_inference_where_it_should(tmp_path):
    """Dropout draws, BatchNorm uses the batch and renews its figures; inference does neither."""
    net = nn.Sequential(nn.Linear(8), nn.BatchNorm(), nn.Dropout(0.5), nn.Linear(2))
    model = nn.build(net, {"x": ("N", 4)})
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((64, 4)) * 3 + 1).astype("f")
    np.savez(tmp_path / "d.npz", x=x, label=rng.integers(0, 2, 64))
    plan = model.compile()
    assert (plan(x)[0] == plan(x)[0]).all()
    after = tn.train(model, tn.data.npz(tmp_path / "d.npz"), epochs=3, batch=16, rate=0.0)
    before, now = constants(model), constants(after)
    assert (before["0.weight"] == now["0.weight"]).all()
    h = x @ before["0.weight"].T + before["0.bias"]
    share = 1 - 0.9**12  # of twelve batches in the running figures
    np.testing.assert_allclose(now["1.running_mean"] / share, h.mean(0), atol=0.5)
    assert {"1.running_mean", "1.running_var"} <= trained(model)
    losses = [record["loss"] for record in after.report["history"]]
    assert len(set(losses)) == 3  # with a rate of 0 it is the masks and batches that differ


def test_stochastic_depth_drops_whole_samples_while_training(tmp_path):
    """Branches of ones, half of which are dropped: what is left of a sample is 2 everywhere."""
    x = np.zeros((96, 4), "f")

    def losses(over, stored=False):
        net = nn.Sequential(
            nn.Linear(8, init="zeros", bias_init="ones"), nn.StochasticDepth(0.5, over=over)
        )
        model = nn.build(net, {"x": ("N", 4)})
        assert (model.compile()(x)[0] == 1).all()
        if stored:
            model.save(tmp_path / "model.onnx")
            model = tn.load(tmp_path / "model.onnx")
        seen = []
        data = {"x": x, "y": np.zeros((96, 8), "f")}
        step = tn.callback(step=lambda point: seen.append(point["loss"]))
        tn.train(model, data, loss="mse", rate=0.0, batch=16, epochs=4, callbacks=step)
        return np.array(seen)

    rows = losses("sample") / 4 * 16  # how many of 16 samples were kept
    np.testing.assert_allclose(rows, rows.round(), atol=1e-4)
    assert 4 < rows.mean() < 12 and len(set(rows.round())) > 2
    assert set(losses("batch")) == {0.0, 4.0}
    assert set(losses("batch", stored=True)) == {0.0, 4.0}


def test_stochastic_depth_of_all_samples_adds_zero_not_nan():
    data = {"x": np.ones((32, 4), "f"), "y": np.zeros((32, 3), "f")}

    def trained_with(*more):
        model = nn.build(nn.Sequential(nn.Linear(3), *more), {"x": ("N", 4)}, seed=1)
        return constants(tn.train(model, data, loss="mse", rate=0.1, batch=8))

    plain, dropped = trained_with(), trained_with(nn.Residual(nn.StochasticDepth(1.0)))
    for name in ("0.weight", "0.bias"):
        np.testing.assert_allclose(dropped[name], plain[name], rtol=1e-6)
