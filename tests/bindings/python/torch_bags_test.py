# SPDX-License-Identifier: Apache-2.0
"""EmbeddingBag of PyTorch: bags of one size are exported as what can be trained."""

import numpy as np
import pytest
import tenon as tn

torch = pytest.importorskip("torch")
pytest.importorskip("onnxscript")
TOKEN = np.random.default_rng(0).integers(0, 7, (6, 5))


@pytest.mark.parametrize("padding", [None, 2, -1])
@pytest.mark.parametrize("mode", ["mean", "sum", "max"])
def test_bags_of_one_size_have_the_numbers_and_the_gradient_of_pytorch(mode, padding):
    token = TOKEN.copy()
    token[0] = 2  # all of it padding
    bag = torch.nn.EmbeddingBag(7, 3, mode=mode, padding_idx=padding)
    model = tn.nn.from_torch(bag, {"token": tn.nn.Input(("N", 5), "int64")})
    want = bag(torch.from_numpy(token))
    np.testing.assert_allclose(model.compile()(token)[0], want.detach(), atol=1e-6)
    (want**2).sum().backward()
    slope = tn.grad(lambda p: (model(token, parameters=p) ** 2).sum())(model.parameters())
    np.testing.assert_allclose(slope["weight"], bag.weight.grad, atol=1e-5)


def test_weights_of_samples_count_in_a_bag():
    class Weighed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bag = torch.nn.EmbeddingBag(7, 3, mode="sum")

        def forward(self, token, weight):
            return self.bag(token, per_sample_weights=weight)

    module = Weighed()
    inputs = {"token": tn.nn.Input(("N", 5), "int64"), "weight": ("N", 5)}
    model = tn.nn.from_torch(module, inputs)
    weight = np.random.default_rng(1).random((6, 5), "float32")
    want = module(torch.from_numpy(TOKEN), torch.from_numpy(weight)).detach()
    np.testing.assert_allclose(model.compile()(TOKEN, weight)[0], want, atol=1e-6)
