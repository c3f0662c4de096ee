# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F811
"""Modules of PyTorch as models: what of them is trained, and what of their gradients stays."""

import numpy as np
import pytest
import tenon as tn
from tenon import nn
from torch_modules_test import count_of, torch  # noqa: F401


def trained_names(model):
    return sorted(model.parameters())


def test_what_requires_a_gradient_is_trained_and_nothing_else(torch, tmp_path):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.frozen = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
            self.frozen.requires_grad_(False)
            self.register_buffer("mean", torch.ones(3))
            self.register_buffer("scale", torch.ones(3), persistent=False)
            self.gain, self.plain = torch.nn.Parameter(torch.tensor(2.0)), torch.full((3,), 0.5)

        def forward(self, x):
            return self.frozen(self.fc((x - self.mean) * self.scale) * self.gain + self.plain)

    model = nn.from_torch(Net(), {"x": ("N", 3)})
    assert trained_names(model) == ["fc.bias", "fc.weight", "gain"]
    x = np.random.default_rng(0).standard_normal((8, 3)).astype("f")
    trained = tn.train(model, {"x": x, "t": x}, loss="mse", target="t", rate=0.1)
    before, after = model.constants(), trained.constants()
    moved = [n for n in before if not np.array_equal(np.asarray(before[n]), np.asarray(after[n]))]
    assert sorted(moved) == ["fc.bias", "fc.weight", "gain"]
    trained.save(tmp_path / "model.onnx")
    assert trained_names(tn.load(tmp_path / "model.onnx")) == ["fc.bias", "fc.weight", "gain"]


def test_statistics_of_every_kind_are_not_trained(torch):
    norm = torch.nn.InstanceNorm2d(4, affine=True, track_running_stats=True)
    model = nn.from_torch(torch.nn.Sequential(norm), {"x": ("N", 4, 6, 6)})
    assert trained_names(model) == ["0.bias", "0.weight"]


def gradients(torch, module, model):
    """By the weight of the layer fc, of the mean square: ours and PyTorch's."""
    x = np.random.default_rng(0).standard_normal((4, 6)).astype("f")
    x, target = x, x * 3
    trained = tn.train(model, {"x": x, "t": target}, loss="mse", target="t", rate=1.0, batch=4)
    made = model.parameters()["fc.weight"] - trained.parameters()["fc.weight"]
    torch.nn.functional.mse_loss(module(torch.tensor(x)), torch.tensor(target)).backward()
    return made, module.fc.weight.grad.numpy()


def layer(torch, f):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(6, 6)

        def forward(self, x):
            return f(self, self.fc(x))

    torch.manual_seed(0)
    return Net()


DETACHED = {
    "factor": lambda net, h: h * h.detach(),
    "straight_through": lambda net, h: h + (h.round() - h).detach(),
    "weight": lambda net, h: h @ net.fc.weight.detach(),
}


@pytest.mark.parametrize("name", DETACHED)
def test_what_is_detached_has_no_gradient(torch, name):
    module = layer(torch, DETACHED[name])
    made, wanted = gradients(torch, module, nn.from_torch(module, {"x": ("N", 6)}))
    np.testing.assert_allclose(made, wanted, atol=1e-5)


CHUNKS = {
    "chunk": lambda net, h: h.chunk(2, -1)[0] * h.chunk(2, -1)[1].sigmoid(),
    "split": lambda net, h: h.split([2, 4], -1)[1][..., :2] * h.split([2, 4], -1)[0],
    "split_by": lambda net, h: sum(h.split(2, -1)),
}


@pytest.mark.parametrize("name", CHUNKS)
def test_what_is_split_can_be_trained(torch, name):
    module = layer(torch, CHUNKS[name])
    model = nn.from_torch(module, {"x": ("N", 6)})
    assert count_of("Sequence", model) == 0
    x = np.random.default_rng(0).standard_normal((4, 6)).astype("f")
    want = module(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(model.compile()(x)[0], want, atol=1e-5)
    tn.train(model, {"x": x, "t": want}, loss="mse", target="t")


def test_gradients_that_a_file_cannot_hold_are_named(torch):
    class Straight(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.sign(x)

        @staticmethod
        def backward(ctx, g):
            return g

    def without(net, h):
        with torch.no_grad():
            other = h * 2
        return h * other

    with pytest.warns(UserWarning, match=r"left out of training: torch.no_grad\(\).*detach"):
        nn.from_torch(layer(torch, without), {"x": ("N", 6)})
    with pytest.warns(UserWarning, match="the gradient of Straight"):
        nn.from_torch(layer(torch, lambda net, h: Straight.apply(h)), {"x": ("N", 6)})


def test_what_layers_do_in_training_alone_is_named(torch):
    net = torch.nn.Sequential(torch.nn.BatchNorm1d(3, momentum=None), torch.nn.Linear(3, 2))
    with pytest.warns(UserWarning, match=r"running statistics of 0 \(BatchNorm1d\)"):
        nn.from_torch(net, {"x": ("N", 3)})
    table = torch.nn.Embedding(9, 4, padding_idx=2, max_norm=1.0)
    with pytest.warns(UserWarning, match=r"padding_idx, max_norm of 0 \(Embedding\)"):
        nn.from_torch(torch.nn.Sequential(table), {"x": nn.Input(("N", 5), "int64")})


def test_a_state_dict_has_all_names_of_tied_weights(torch):
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.o = torch.nn.Embedding(9, 4), torch.nn.Linear(4, 9, bias=False)
            self.norm, self.o.weight = torch.nn.BatchNorm1d(4), self.e.weight

        def forward(self, x):
            return self.o(self.norm(self.e(x).mean(1)))

    module, other = Tied(), Tied()
    model = nn.from_torch(module, {"x": nn.Input(("N", 5), "int64")})
    x = np.random.default_rng(0).integers(0, 9, (6, 5))
    trained = tn.train(model, {"x": x, "label": x[:, 0]}, rate=0.5)
    other.load_state_dict(nn.state_dict(trained, other))
    assert other.o.weight is other.e.weight
    want = other.eval()(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(trained.compile()(x)[0], want, atol=1e-5)
    back = nn.load(model, other)
    np.testing.assert_allclose(back.compile()(x)[0], want, atol=1e-5)


@pytest.mark.parametrize("bounds", [(-1, 1), (0, None), (None, 1.0), (-1, 1e6), (2, 1)])
def test_clamps_have_the_slope_of_pytorch_at_their_bounds(torch, bounds):
    class Clamped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.at = torch.nn.Parameter(torch.tensor([-2.0, -1, 0, 0.5, 1, 3]))

        def forward(self, x):
            return self.at.clamp(*bounds) * x

    module, x = Clamped(), np.arange(1, 7, dtype="f")
    model = nn.from_torch(module, {"x": (6,)})
    made = module(torch.tensor(x))
    np.testing.assert_array_equal(model(x), made.detach())
    made.sum().backward()
    slope = tn.grad(lambda p: model(x, parameters=p).sum())(model.parameters())
    np.testing.assert_array_equal(slope["at"], module.at.grad)
