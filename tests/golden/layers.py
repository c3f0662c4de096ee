# SPDX-License-Identifier: Apache-2.0
"""Writes layers.json and state_dict.safetensors: layers, and a network, by PyTorch.

    python tests/golden/layers.py          # needs torch and safetensors

layers.json, "cases": a layer of `tenon.nn`, the state dict of PyTorch's own, its inputs, what comes
out, and the gradients of sum(outputs * cotangent) by parameters and the first input, in float64.
Numbers are multiples of 1/64, so that they are the same in float32.

"network": what the small residual network in state_dict.safetensors gives for an image, and its
losses over steps of gradient descent from there.
"""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn

HERE = Path(__file__).parent
SOURCE = f"torch {torch.__version__}, torch/nn, by layers.py beside this file"


def numbers(shape, seed):
    made = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return (made * 64).round() / 64


def rows(count, shape, seed):
    return torch.randint(count, shape, generator=torch.Generator().manual_seed(seed))


def filled(module, seed=100):
    """The module with numbers of this file, running variances among them above 0."""
    module = module.double().eval()
    for i, (name, tensor) in enumerate(module.state_dict().items()):
        if tensor.is_floating_point():
            drawn = numbers(tensor.shape, seed + i)
            tensor.copy_(drawn.abs() + 0.5 if name.endswith("running_var") else drawn)
    return module


class RMSNorm(nn.RMSNorm):
    def __init__(self, width):
        super().__init__(width, eps=1e-6)


def attention(module, *inputs, keep=None, causal=False):
    """PyTorch's masks say what is left out."""
    query, key, value = inputs if len(inputs) == 3 else inputs * 3
    mask = None if keep is None else ~keep
    if causal:
        mask = torch.ones(query.shape[1], key.shape[1]).triu(1).bool()
    return module(query, key, value, attn_mask=mask, need_weights=False)[0]


def recurrent(module, x, *state):
    y, end = module(x, tuple(state) if len(state) == 2 else state[0] if state else None)
    return (y, *end) if isinstance(end, tuple) else (y, end)


def case(layer, options, module, inputs, call=None, extra=None):
    module = filled(module)
    inputs = [x.requires_grad_() if x.is_floating_point() else x for x in inputs]
    made = call(module, *inputs) if call else module(*inputs)
    outputs = list(made) if isinstance(made, tuple) else [made]
    cotangents = [numbers(y.shape, 200 + i) for i, y in enumerate(outputs)]
    total = sum((y * c).sum() for y, c in zip(outputs, cotangents))
    total.backward()
    return {
        "layer": layer,
        "options": options,
        "state": {n: tensor(t) for n, t in module.state_dict().items() if t.is_floating_point()},
        "inputs": [tensor(x) for x in [*inputs, *(extra or [])]],
        "outputs": [tensor(y) for y in outputs],
        "cotangents": [tensor(c) for c in cotangents],
        "gradients": {n: tensor(p.grad) for n, p in module.named_parameters()},
        "input_gradient": tensor(inputs[0].grad) if inputs[0].is_floating_point() else None,
    }


def tensor(x):
    flat = x.detach().reshape(-1).tolist()
    if x.is_floating_point():
        flat = [float(f"{number:.9g}") for number in flat]
    kind = "bool" if x.dtype == torch.bool else "float32" if x.is_floating_point() else "int64"
    return {"dtype": kind, "shape": list(x.shape), "data": flat}


KEEP = torch.tensor([[1, 0, 1, 1], [1, 1, 0, 0], [0, 1, 1, 1]]).bool()


def heads():
    return nn.MultiheadAttention(8, 2, batch_first=True)


def cases():
    x2, x3, x4 = numbers((3, 4), 1), numbers((2, 4, 7), 2), numbers((2, 4, 6, 5), 3)
    steps = numbers((2, 3, 8), 4)
    yield case("Linear", {"out": 5}, nn.Linear(4, 5), [x2])
    yield case(
        "Linear", {"out": 2, "bias": False}, nn.Linear(7, 2, bias=False), [numbers((2, 4, 7), 2)]
    )
    yield case("Conv", {"out": 6, "kernel": 3, "padding": 1, "stride": 2},
               nn.Conv1d(4, 6, 3, padding=1, stride=2), [x3])  # fmt: skip
    yield case("Conv", {"out": 6, "kernel": [3, 2], "groups": 2, "dilation": [2, 1], "bias": False},
               nn.Conv2d(4, 6, (3, 2), groups=2, dilation=(2, 1), bias=False), [x4])  # fmt: skip
    yield case("Conv", {"out": 4, "kernel": 3, "padding": "same"},
               nn.Conv2d(4, 4, 3, padding="same"), [numbers((1, 4, 5, 4), 5)])  # fmt: skip
    yield case("Conv", {"out": 6, "kernel": 3, "stride": 2, "padding": 1, "output_padding": 1,
                        "groups": 2, "transposed": True},
               nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
               [numbers((1, 4, 3, 3), 6)])  # fmt: skip
    yield case("BatchNorm", {}, nn.BatchNorm2d(4), [numbers((2, 4, 3, 3), 7)])
    yield case("LayerNorm", {}, nn.LayerNorm(8), [numbers((2, 3, 8), 8)])
    yield case(
        "LayerNorm",
        {"axes": 2, "epsilon": 0.01},
        nn.LayerNorm((3, 8), 0.01),
        [numbers((2, 3, 8), 9)],
    )
    yield case("RMSNorm", {}, RMSNorm(8), [numbers((2, 3, 8), 10)])
    yield case("GroupNorm", {"groups": 2}, nn.GroupNorm(2, 4), [numbers((2, 4, 3, 2), 11)])
    yield case("Embedding", {"count": 6, "width": 3}, nn.Embedding(6, 3), [rows(6, (2, 4), 12)])
    yield case("MultiHeadAttention", {"heads": 2}, heads(), [steps], attention)
    yield case("MultiHeadAttention", {"heads": 4, "causal": True, "bias": False},
               nn.MultiheadAttention(8, 4, bias=False, batch_first=True), [numbers((2, 3, 8), 13)],
               lambda m, x: attention(m, x, causal=True))  # fmt: skip
    cross = [numbers((2, 3, 8), 14), numbers((2, 4, 8), 15), numbers((2, 4, 8), 16)]
    yield case("MultiHeadAttention", {"heads": 2}, heads(), cross,
               lambda m, *x: attention(m, *x, keep=KEEP), [KEEP])  # fmt: skip
    yield case(
        "LSTM", {"hidden": 3}, nn.LSTM(4, 3, batch_first=True), [numbers((2, 5, 4), 17)], recurrent
    )
    yield case("LSTM", {"hidden": 3, "layers": 2, "bidirectional": True},
               nn.LSTM(4, 3, 2, batch_first=True, bidirectional=True),
               [numbers((2, 3, 4), 18), numbers((4, 2, 3), 19), numbers((4, 2, 3), 20)],
               recurrent)  # fmt: skip
    yield case("GRU", {"hidden": 3, "bias": False}, nn.GRU(4, 3, bias=False, batch_first=True),
               [numbers((2, 5, 4), 21)], recurrent)  # fmt: skip
    yield case("GRU", {"hidden": 3, "layers": 2, "bidirectional": True},
               nn.GRU(4, 3, 2, batch_first=True, bidirectional=True), [numbers((2, 3, 4), 22)],
               recurrent)  # fmt: skip
    yield case(
        "MaxPool",
        {"window": 3, "stride": 2, "padding": 1},
        nn.MaxPool2d(3, 2, 1),
        [numbers((1, 2, 6, 5), 23)],
    )
    yield case("AvgPool", {"window": 2}, nn.AvgPool2d(2), [numbers((1, 2, 6, 4), 24)])
    yield case("AvgPool", {"window": 3, "stride": 1, "padding": 1},
               nn.AvgPool2d(3, 1, 1, count_include_pad=False),
               [numbers((1, 2, 4, 4), 25)])  # fmt: skip
    yield case(
        "GlobalAvgPool",
        {},
        nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        [numbers((2, 3, 4, 4), 26)],
    )
    yield case("Dropout", {"ratio": 0.25}, nn.Dropout(0.25), [numbers((2, 3), 27)])
    yield case("Flatten", {}, nn.Flatten(), [numbers((2, 3, 2), 28)])


class Block(nn.Module):
    def __init__(self, of, width, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(of, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride > 1:
            self.downsample = nn.Sequential(
                nn.Conv2d(of, width, 1, stride, bias=False), nn.BatchNorm2d(width)
            )

    def forward(self, x):
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (y + (self.downsample(x) if self.downsample else x)).relu()


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8)
        self.layer1 = nn.Sequential(Block(8, 8))
        self.layer2 = nn.Sequential(Block(8, 16, 2))
        self.fc = nn.Linear(16, 5)

    def forward(self, x):
        x = self.bn1(self.conv1(x)).relu()
        return self.fc(self.layer2(self.layer1(x)).mean((2, 3)))


def network():
    torch.manual_seed(1)
    net = Network()
    x, y = numbers((8, 3, 12, 12), 30).float(), rows(5, (8,), 31)
    for _ in range(3):  # so that the running figures are not those of the beginning
        net(x)
    save_file(
        {k: v.contiguous() for k, v in net.state_dict().items()}, HERE / "state_dict.safetensors"
    )
    net = net.double()
    logits = net.eval()(x.double())
    net.train()
    optimizer, losses = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9), []
    for _ in range(6):
        loss = nn.functional.cross_entropy(net(x.double()), y)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {"image": tensor(x), "label": tensor(y), "logits": tensor(logits), "losses": losses}


if __name__ == "__main__":
    made = {"source": SOURCE, "cases": list(cases()), "network": network()}
    (HERE / "layers.json").write_text(json.dumps(made) + "\n")
