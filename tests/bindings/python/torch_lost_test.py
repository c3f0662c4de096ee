# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F811
"""What a model of a PyTorch module cannot have of it is named, and what it can is not."""

import copy
import warnings

import numpy as np
import pytest
from tenon import nn
from torch_modules_test import torch  # noqa: F401


def part(torch, forward, **buffers):
    class Part(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(3, 3)
            for name, numbers in buffers.items():
                self.register_buffer(name, torch.tensor(numbers))

        def forward(self, x):
            return forward(self, self.fc(x))

    torch.manual_seed(0)
    return Part()


def said(torch, module, shape=("N", 3)):
    """The warnings, and the model, whose results are the module's."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = nn.from_torch(module, {"x": shape})
    sizes = [4 if isinstance(size, str) else size for size in shape]
    x = np.random.default_rng(0).standard_normal(sizes).astype("f")
    want = copy.deepcopy(module).eval()(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(model.compile()(x)[0], want, atol=1e-5)
    return " ".join(str(one.message) for one in caught if "from_torch" in str(one.message))


def dropped_paths(net, h):
    if not net.training:
        return h
    return h * h.new_empty((h.shape[0], 1)).bernoulli_(0.8) / 0.8


def test_random_numbers_of_training_are_named_by_the_part_that_draws_them(torch):
    functional = torch.nn.functional
    paths = torch.nn.Sequential(part(torch, dropped_paths), torch.nn.Dropout(0.5))
    assert "random numbers left out of training: 0 (Part); only" in said(torch, paths)
    dropped = part(torch, lambda net, h: functional.dropout(h, 0.1, net.training))
    assert "left out of training: the module itself (Part)" in said(torch, dropped)
    assert said(torch, part(torch, lambda net, h: functional.dropout(h, 0.0, net.training))) == ""


def test_buffers_that_training_changes_are_named(torch):
    def moving(net, h):
        if net.training:
            net.mean = 0.9 * net.mean + 0.1 * h.mean(0).detach()
        return h - net.mean

    module = torch.nn.Sequential(part(torch, moving, mean=[1.0, 2.0, 3.0]))
    assert "left out of training: the changes of 0.mean, which" in said(torch, module)
    assert module[0].mean.tolist() == [1, 2, 3] and type(module[0].mean) is torch.Tensor
    spectral = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(3, 3))
    before = copy.deepcopy(spectral.state_dict())
    assert "weight.0._u, parametrizations.weight.0._v" in said(torch, spectral)
    assert all(torch.equal(one, before[name]) for name, one in spectral.state_dict().items())


def test_an_instance_norm_with_running_statistics_is_named(torch):
    norm = torch.nn.InstanceNorm2d(2, track_running_stats=True)
    warning = said(torch, torch.nn.Sequential(norm), ("N", 2, 8, 8))
    assert "the statistics of each sample of 0 (InstanceNorm2d)" in warning
    assert said(torch, torch.nn.Sequential(torch.nn.InstanceNorm2d(2)), ("N", 2, 8, 8)) == ""


def test_what_is_there_is_not_named(torch):
    norms = [torch.nn.Conv2d(2, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Dropout(0.5)]
    assert said(torch, torch.nn.Sequential(*norms), ("N", 2, 8, 8)) == ""
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)
    assert said(torch, layer, ("N", 5, 8)) == ""


def test_weights_that_a_branch_reads_are_named_and_its_gradient_is_not(torch):
    def branches(net, h):
        return torch.cond(h.sum() > 0, lambda y: net.other(y), lambda y: y * 2, (h,))

    module = part(torch, branches)
    module.other = torch.nn.Linear(3, 3)
    warning = said(torch, module)
    assert "other.bias, other.weight, which a branch or a loop reads" in warning
    assert "autograd.Function" not in warning


def test_buffers_may_be_called_as_a_result(torch):
    module = part(torch, lambda net, h: h[:, net.index] + net.add, index=[2, 0, 1], add=[1.0, 2, 3])
    assert said(torch, module) == ""


def test_modules_may_take_their_inputs_as_one_tuple(torch):
    class Wrapped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = torch.nn.Bilinear(3, 2, 4)

        def forward(self, *inputs, **more):
            return self.module(*inputs, **more)

    net = Wrapped()
    model = nn.from_torch(net, {"x": ("N", 3), "y": ("N", 2)})
    x, y = np.ones((5, 3), "f"), np.ones((5, 2), "f")
    want = net(torch.tensor(x), torch.tensor(y)).detach().numpy()
    np.testing.assert_allclose(model.compile()(x, y)[0], want, atol=1e-5)


def test_a_divisor_that_the_exporter_leaves_out_is_refused(torch):
    with pytest.raises(ValueError, match="divisor_override of an average pool is not exported"):
        nn.from_torch(torch.nn.AvgPool2d(2, divisor_override=3), {"x": ("N", 2, 8, 8)})


def test_a_mean_that_the_exporter_leaves_out_is_refused(torch):
    at = torch.tensor([[0, 1, 0]])
    module = part(torch, lambda self, y: y.scatter_reduce(0, at, y, "mean"))
    with pytest.raises(ValueError, match="scatter_reduce by mean is not exported"):
        nn.from_torch(module, {"x": (2, 3)})


@pytest.mark.parametrize("mode", ["linear", "bilinear", "bicubic", "trilinear"])
def test_aligned_corners_are_those_of_the_rounded_size(torch, mode):
    sizes = [7] * {"linear": 1, "trilinear": 3}.get(mode, 2)
    module = torch.nn.Upsample(scale_factor=1.5, mode=mode, align_corners=True)
    x = torch.randn(2, 3, *sizes, generator=torch.Generator().manual_seed(0))
    (got,) = nn.from_torch(module, {"x": ("N", 3, *sizes)}).compile()(x.numpy())
    np.testing.assert_allclose(got, module(x), atol=1e-5)


def test_aligned_corners_of_an_open_size_want_a_whole_factor(torch):
    def module(factor):
        return torch.nn.Upsample(scale_factor=factor, mode="bilinear", align_corners=True)

    assert nn.from_torch(module(2), {"x": (1, 3, "H", 8)}).outputs[0].shape[3] == 16
    with pytest.raises(ValueError, match="exported for sizes that are numbers"):
        nn.from_torch(module(1.5), {"x": (1, 3, "H", 8)})


def test_modules_that_take_more_inputs_may_be_given_none(torch):
    class Open(torch.nn.Linear):
        def forward(self, x, *more):
            return super().forward(x) + sum(more)

    model = nn.from_torch(Open(3, 2), {"x": ("N", 3)})
    assert model.inputs[0].shape == ("N", 3)


def test_hooks_on_gradients_are_named(torch):
    def reversed_below(net, h):
        if h.requires_grad:
            h.register_hook(lambda slope: -slope)
        return h * 2

    assert "left out of training: hooks on gradients" in said(torch, part(torch, reversed_below))
    module = part(torch, lambda net, h: h * 2)
    module.fc.weight.register_hook(lambda slope: slope * 0.5)
    module.fc.register_full_backward_hook(lambda *_: None)
    warning = said(torch, module)
    assert "the hooks on the gradient of fc.weight" in warning
    assert "the backward hooks of fc (Linear)" in warning


def test_other_results_in_training_are_named(torch):
    def two(net, h):
        return (h, h * 2) if net.training else h

    assert "the results of training mode, of shapes [(64, 3), (64, 3)]: those of evaluation" in (
        said(torch, part(torch, two))
    )
    assert "of shapes [(64, 1)]" in said(
        torch, part(torch, lambda n, h: h[:, : 3 - 2 * n.training])
    )


def test_inference_mode_is_named(torch):
    def inside(net, h):
        with torch.inference_mode():
            other = h * 2
        return h * other.clone()

    assert "torch.inference_mode(), which gradients pass" in said(torch, part(torch, inside))


@pytest.mark.parametrize(
    "forward, match",
    [
        ("F.cross_entropy(h, n.y, label_smoothing=0.1)", "label_smoothing of a cross entropy"),
        ("F.batch_norm(h, n.mean, n.mean, training=True)", "batch_norm with training=True"),
    ],
)
def test_what_the_exporter_leaves_out_is_refused(torch, forward, match):
    made = eval(f"lambda n, h: {forward}", {"F": torch.nn.functional})
    with pytest.raises(ValueError, match=match):
        nn.from_torch(part(torch, made, y=[0, 2], mean=[1.0, 2, 3]), {"x": (2, 3)})


def test_inputs_in_another_order_than_the_arguments_are_refused(torch):
    class Net(torch.nn.Module):
        def forward(self, x, mask=None, kind=None):
            return x * (1 if mask is None else mask) + (0 if kind is None else kind)

    with pytest.raises(ValueError, match=r"\(x, mask, kind\), got kind as input 2; wrap"):
        nn.from_torch(Net(), {"x": ("N", 3), "kind": ("N", 3)})
    assert len(nn.from_torch(Net(), {"x": ("N", 3), "other": ("N", 3)}).inputs) == 2
