# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F811
"""Normalizations of PyTorch modules in training: which statistics they use and keep."""

import numpy as np
import pytest
import tenon as tn
from tenon import nn
from torch_modules_test import torch  # noqa: F401

X = np.random.default_rng(0).standard_normal((6, 3, 8, 8)).astype("f")
TARGET = np.random.default_rng(1).standard_normal((6, 3)).astype("f")


def network(torch, forward):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = torch.nn.Conv2d(3, 3, 3), torch.nn.BatchNorm2d(3)
            self.drop, self.head = torch.nn.Dropout(0.5), torch.nn.Linear(3, 3)

        def forward(self, x):
            return self.head(forward(self, x).mean((2, 3)))

    torch.manual_seed(0)
    net = Net()
    net.norm.running_mean.fill_(0.5)
    net.drop.eval()
    return net


def losses_of_both(torch, net):
    """Of three steps, ours and PyTorch's, and the model after them."""
    model, ours, theirs = nn.from_torch(net, {"x": ("N", 3, 8, 8)}), [], []
    trained = tn.train(
        model, {"x": X, "t": TARGET}, loss="mse", target="t", epochs=3, rate=0.1,
        callbacks=[tn.callback(step=lambda point: ours.append(point["loss"]))],
    )  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(torch.tensor(X)), torch.tensor(TARGET))
        loss.backward()
        optimizer.step()
        theirs.append(loss.item())
    return ours, theirs, {name: np.asarray(one) for name, one in trained.constants().items()}


@pytest.mark.parametrize("frozen", [False, True])
def test_parts_in_evaluation_mode_stay_in_it(torch, frozen):
    net = network(torch, lambda self, x: self.drop(self.norm(self.conv(x)).tanh()))
    net.norm.train(not frozen)
    ours, theirs, after = losses_of_both(torch, net)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    np.testing.assert_allclose(after["norm.running_mean"], net.norm.running_mean, atol=1e-5)
    np.testing.assert_allclose(after["norm.running_var"], net.norm.running_var, rtol=1e-5)
    assert (after["norm.running_mean"] == 0.5).all() == frozen


def test_a_norm_that_is_applied_twice_follows_both_batches(torch):
    net = network(torch, lambda self, x: self.norm(self.conv(self.norm(x) * 2 + 1)))
    ours, theirs, after = losses_of_both(torch, net)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    np.testing.assert_allclose(after["norm.running_mean"], net.norm.running_mean, atol=1e-5)
    np.testing.assert_allclose(after["norm.running_var"], net.norm.running_var, rtol=1e-5)


def test_a_module_in_evaluation_mode_is_trained_as_a_whole(torch):
    net = network(torch, lambda self, x: self.drop(self.norm(self.conv(x)))).eval()
    model = nn.from_torch(net, {"x": ("N", 3, 8, 8)})
    after = tn.train(model, {"x": X, "t": TARGET}, loss="mse", target="t").constants()
    assert (np.asarray(after["norm.running_mean"]) != 0.5).all()
    assert "Dropout" in model.text() and not net.norm.training


def test_statistics_that_a_function_fixes_stay(torch):
    def fixed(self, x):
        norm = self.norm
        return torch.nn.functional.batch_norm(
            self.conv(x), norm.running_mean, norm.running_var, norm.weight, norm.bias
        )

    net = network(torch, fixed)
    ours, theirs, after = losses_of_both(torch, net)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)
    assert (after["norm.running_mean"] == 0.5).all()
