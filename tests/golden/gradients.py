# SPDX-License-Identifier: Apache-2.0
"""Writes gradients.json: gradients by PyTorch's autograd, in fp64.

    python tests/golden/gradients.py > tests/golden/gradients.json      # needs torch

Every case is a graph in Tenon's text form and what PyTorch computes of the same function: for each
input the norm of its gradient and the products with two seeded vectors, and how far PyTorch's own
fp32 is from its fp64, over all gradients together. Inputs come from a formula that the test has,
so that no numbers need to be stored; they are numbers of fp32, so that both start from the same.
"""

import json
import math

import numpy as np
import torch
import torch.nn.functional as F


def uniform(n, seed):
    """Numbers of [-1, 1) for elements 0..n-1: splitmix64 of seed and place (Steele, 2014)."""
    with np.errstate(over="ignore"):
        z = np.arange(1, n + 1, dtype=np.uint64) + np.uint64(seed << 40)
        z *= np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return (z >> np.uint64(11)) * 2.0**-52 - 1


def numbers(n, seed, scale=1.0, shift=0.0):
    rounded = (scale * uniform(n, seed) + shift).astype(np.float32)
    return torch.from_numpy(rounded).to(torch.get_default_dtype())


class Case:
    """A graph that is written down and computed at once."""

    def __init__(self, name):
        self.name, self.lines, self.inputs, self.count = name, [], [], 0

    def input(self, shape, scale=1.0, shift=0.0):
        seed = len(self.inputs) + 1
        value = numbers(math.prod(shape), seed, scale, shift).reshape(shape).requires_grad_()
        return self._declare(value, {"seed": seed, "scale": scale, "shift": shift}, "f64")

    def labels(self, shape, classes):
        n = math.prod(shape)
        value = (torch.arange(n) * 7 % classes).reshape(shape)
        return self._declare(value, {"classes": classes}, "i64")

    def _declare(self, value, how, dtype):
        value.label = f"in{len(self.inputs)}"
        self.inputs.append((value, how))
        self.lines.append(f"input %{value.label}: {dtype}[{', '.join(map(str, value.shape))}]")
        return value

    def ints(self, values, shape=None):
        """An integer constant."""
        label = f"c{len(self.lines)}"
        dims = len(values) if shape is None else ", ".join(map(str, shape))
        self.lines.append(f"constant %{label}: i64[{dims}] = [{', '.join(map(str, values))}]")
        return label

    def number(self, value):
        label = f"c{len(self.lines)}"
        self.lines.append(f"constant %{label}: f64[] = [{value!r}]")
        return label

    def op(self, op, inputs, result, attrs=""):
        """One node; inputs are tensors, labels of constants, or None; results are tensors."""
        results = result if isinstance(result, tuple) else (result,)
        self.count += 1
        named = []
        for i, value in enumerate(results):
            value.label = f"v{self.count}_{i}"
            named.append(f"%{value.label}: f64[{', '.join(map(str, value.shape))}]")
        args = ["_" if x is None else "%" + (x if isinstance(x, str) else x.label) for x in inputs]
        attrs = f" {{{attrs}}}" if attrs else ""
        self.lines.append(f"{', '.join(named)} = {op}({', '.join(args)}){attrs} @n{self.count}")
        return result

    # Operators that several cases use.
    def conv(self, x, w, b=None, stride=1, pad=0, dilation=1, group=1):
        y = F.conv2d(x, w, b, stride, pad, dilation, group)
        attrs = (
            f"strides = ints [{stride}, {stride}], pads = ints [{pad}, {pad}, {pad}, {pad}], "
            f"dilations = ints [{dilation}, {dilation}], group = {group}"
        )
        return self.op("Conv", [x, w] + ([] if b is None else [b]), y, attrs)

    def batch_norm(self, x):
        c = x.shape[1]
        scale, bias = self.input([c], 0.3, 1.0), self.input([c], 0.2)
        mean, var = self.input([c], 0.1), self.input([c], 0.2, 1.0)
        y = F.batch_norm(x, None, None, scale, bias, training=True, eps=1e-5)
        spare = (mean.detach() * 1, var.detach() * 1)
        mean.requires_grad_(False), var.requires_grad_(False)
        return self.op(
            "BatchNormalization", [x, scale, bias, mean, var], (y, *spare), "training_mode = 1"
        )[0]

    def layer_norm(self, x):
        d = x.shape[-1]
        scale, bias = self.input([d], 0.3, 1.0), self.input([d], 0.2)
        y = F.layer_norm(x, [d], scale, bias)
        return self.op("LayerNormalization", [x, scale, bias], y, "axis = -1")

    def linear(self, x, n, scale):
        w, b = self.input([x.shape[-1], n], scale), self.input([n], 0.1)
        return self.add(self.op("MatMul", [x, w], x @ w), b)

    def add(self, a, b):
        return self.op("Add", [a, b], a + b)

    def cross_entropy(self, x, labels, attrs="", **options):
        y = F.cross_entropy(x, labels, **options)
        return self.op("SoftmaxCrossEntropyLoss", [x, labels], y, attrs)

    def weighted(self, y):
        """A scalar of y that is not flat: the mean of y * tanh(y) + y."""
        bent = self.op("Tanh", [y], torch.tanh(y))
        both = self.add(self.op("Mul", [y, bent], y * bent), y)
        return self.op("ReduceMean", [both], both.mean(), "keepdims = 0")

    def done(self, loss):
        self.lines.append(f"output loss = %{loss.label}")
        wrt = [value for value, how in self.inputs if value.requires_grad]
        self.gradients = [g.reshape(-1) for g in torch.autograd.grad(loss, wrt)]
        expected = []
        for value, flat in zip(wrt, self.gradients):
            n = flat.numel()
            products = [float(flat @ numbers(n, seed) / math.sqrt(n)) for seed in (101, 102)]
            expected.append({"name": value.label, "norm": float(flat.norm()), "products": products})
        inputs = [dict(how, name=value.label) for value, how in self.inputs]
        text = "graph {\n" + "\n".join("  " + line for line in self.lines) + "\n}\n"
        return {
            "name": self.name,
            "loss": float(loss),
            "text": text,
            "inputs": inputs,
            "gradients": expected,
        }, self.gradients


def losses():
    for reduction in ("mean", "sum"):
        c = Case(f"cross_entropy_{reduction}")
        x, labels = c.input([5, 4]), c.labels([5], 4)
        attrs = f'reduction = "{reduction}", ignore_index = 1'
        yield c.done(c.cross_entropy(x, labels, attrs, reduction=reduction, ignore_index=1))
    c = Case("mse")
    a, b = c.input([3, 4]), c.input([3, 4])
    away = c.op("Sub", [a, b], a - b)
    square = c.op("Mul", [away, away], away * away)
    assert torch.allclose(square.mean(), F.mse_loss(a, b))
    yield c.done(c.op("ReduceMean", [square], square.mean(), "keepdims = 0"))
    c = Case("log_softmax_nll")
    x, labels = c.input([4, 3, 2]), c.labels([4, 2], 3)
    logs = c.op("LogSoftmax", [x], F.log_softmax(x, 1), "axis = 1")
    yield c.done(c.op("NegativeLogLikelihoodLoss", [logs, labels], F.nll_loss(logs, labels)))


def norms():
    c = Case("layer_norm")
    yield c.done(c.weighted(c.layer_norm(c.input([3, 5]))))
    c = Case("batch_norm")
    yield c.done(c.weighted(c.batch_norm(c.input([3, 2, 4, 3]))))
    c = Case("group_norm")
    x, scale, bias = c.input([2, 4, 3]), c.input([4], 0.3, 1.0), c.input([4])
    y = F.group_norm(x, 2, scale, bias)
    yield c.done(c.weighted(c.op("GroupNormalization", [x, scale, bias], y, "num_groups = 2")))
    c = Case("rms_norm")
    x, scale = c.input([3, 6]), c.input([6], 0.3, 1.0)
    y = F.rms_norm(x, [6], scale, eps=1e-5)
    yield c.done(c.weighted(c.op("RMSNormalization", [x, scale], y, "axis = -1")))


def attention():
    c = Case("attention")
    q, k, v = c.input([2, 3, 4, 6]), c.input([2, 3, 5, 6]), c.input([2, 3, 5, 4])
    y = F.scaled_dot_product_attention(q, k, v)
    yield c.done(c.weighted(c.op("Attention", [q, k, v], y)))
    c = Case("attention_causal")
    q, k, v = c.input([2, 2, 5, 4]), c.input([2, 2, 5, 4]), c.input([2, 2, 5, 4])
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    yield c.done(c.weighted(c.op("Attention", [q, k, v], y, "is_causal = 1")))


def recurrent():
    """ONNX's gates are in another order than PyTorch's: i, o, f, c and z, r, h."""
    steps, batch, width, hidden = 5, 3, 4, 6
    for kind, gates, order in (("LSTM", 4, (0, 2, 3, 1)), ("GRU", 3, (1, 0, 2)), ("RNN", 1, (0,))):
        c = Case(kind.lower())
        x = c.input([steps, batch, width])
        w, r = c.input([2, gates * hidden, width], 0.4), c.input([2, gates * hidden, hidden], 0.4)
        b, h = c.input([2, 2 * gates * hidden], 0.2), c.input([2, batch, hidden], 0.5)
        states = [h] + ([c.input([2, batch, hidden], 0.5)] if kind == "LSTM" else [])

        def ordered(rows, order=order):
            return torch.cat([rows[g * hidden : (g + 1) * hidden] for g in order])

        weights = []
        for d in range(2):
            half = gates * hidden
            weights += [ordered(w[d]), ordered(r[d]), ordered(b[d][:half]), ordered(b[d][half:])]
        function = {"LSTM": torch.lstm, "GRU": torch.gru, "RNN": torch.rnn_tanh}[kind]
        state = states if kind == "LSTM" else h
        out = function(x, state, weights, True, 1, 0.0, True, True, False)
        y = out[0].reshape(steps, batch, 2, hidden).permute(0, 2, 1, 3) * 1
        ends = tuple(e * 1 for e in out[1:])
        attrs = f'hidden_size = {hidden}, direction = "bidirectional"'
        if kind == "GRU":
            attrs += ", linear_before_reset = 1"
        inputs = [x, w, r, b, None] + states
        results = c.op(kind, inputs, (y, *ends), attrs)
        loss = c.weighted(results[0])
        for end in results[1:]:
            loss = c.add(loss, c.weighted(end))
        yield c.done(loss)


def convolutions():
    forms = {
        "conv": {"stride": 1, "pad": 1},
        "conv_strided": {"stride": 2, "pad": 1},
        "conv_dilated": {"dilation": 2, "pad": 2},
        "conv_grouped": {"group": 2, "pad": 1},
    }
    for name, form in forms.items():
        c = Case(name)
        x, b = c.input([2, 4, 7, 6]), c.input([6], 0.3)
        w = c.input([6, 4 // form.get("group", 1), 3, 3], 0.5)
        yield c.done(c.weighted(c.conv(x, w, b, **form)))
    c = Case("conv_transposed")
    x, w, b = c.input([2, 4, 5, 4]), c.input([4, 3, 3, 3], 0.5), c.input([6], 0.3)
    y = F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1, groups=2)
    attrs = (
        "strides = ints [2, 2], pads = ints [1, 1, 1, 1], output_padding = ints [1, 1], group = 2"
    )
    yield c.done(c.weighted(c.op("ConvTranspose", [x, w, b], y, attrs)))


def sampling():
    c = Case("max_pool")
    x = c.input([2, 3, 7, 7])
    attrs = "kernel_shape = ints [3, 3], strides = ints [2, 2], pads = ints [1, 1, 1, 1]"
    yield c.done(c.weighted(c.op("MaxPool", [x], F.max_pool2d(x, 3, 2, 1), attrs)))
    c = Case("average_pool")
    x = c.input([2, 3, 6, 6])
    y = F.avg_pool2d(x, 3, 2, 1, count_include_pad=False)
    yield c.done(c.weighted(c.op("AveragePool", [x], y, attrs)))
    for mode in ("bilinear", "bicubic"):
        c = Case(f"resize_{mode}")
        x = c.input([1, 2, 4, 5])
        y = F.interpolate(x, size=(7, 9), mode=mode, align_corners=False)
        sizes = c.ints([1, 2, 7, 9])
        kind = {"bilinear": "linear", "bicubic": "cubic"}[mode]
        yield c.done(c.weighted(c.op("Resize", [x, None, None, sizes], y, f'mode = "{kind}"')))
        for padding in ("zeros", "border", "reflection"):
            if mode == "bicubic" and padding == "border":
                continue  # ONNX clamps the place, PyTorch the pixels around it
            c = Case(f"grid_sample_{mode}_{padding}")
            x, grid = c.input([2, 2, 5, 4]), c.input([2, 3, 3, 2], 1.2)
            y = F.grid_sample(x, grid, mode, padding, align_corners=False)
            attrs = f'mode = "{kind}", padding_mode = "{padding}"'
            yield c.done(c.weighted(c.op("GridSample", [x, grid], y, attrs)))


def resnet18():
    """He et al. (2015) at 48x48, with batch statistics."""
    c = Case("resnet18")

    def conv(x, out, k, stride):
        fan = x.shape[1] * k * k
        w = c.input([out, x.shape[1], k, k], math.sqrt(4.0 / fan))
        return c.batch_norm(c.conv(x, w, None, stride, k // 2))

    def relu(x):
        return c.op("Relu", [x], torch.relu(x))

    x = relu(conv(c.input([4, 3, 48, 48]), 64, 7, 2))
    attrs = "kernel_shape = ints [3, 3], strides = ints [2, 2], pads = ints [1, 1, 1, 1]"
    x = c.op("MaxPool", [x], F.max_pool2d(x, 3, 2, 1), attrs)
    for out, first in ((64, 1), (128, 2), (256, 2), (512, 2)):
        for stride in (first, 1):
            y = conv(relu(conv(x, out, 3, stride)), out, 3, 1)
            x = relu(c.add(y, conv(x, out, 1, stride) if x.shape[1] != out else x))
    axes = c.ints([2, 3])
    x = c.op("ReduceMean", [x, axes], x.mean((2, 3)), "keepdims = 0")
    return c.done(c.cross_entropy(c.linear(x, 10, 0.05), c.labels([4], 10)))


def heads_apart(c, x, batch, length, heads):
    """[batch, length, width] as [batch, heads, length, width of a head]."""
    y = x.reshape(batch, length, heads, -1)
    y = c.op("Reshape", [x, c.ints(y.shape)], y)
    return c.op("Transpose", [y], y.transpose(1, 2) * 1, "perm = ints [0, 2, 1, 3]")


def heads_together(c, y, batch, length, width):
    y = c.op("Transpose", [y], y.transpose(1, 2) * 1, "perm = ints [0, 2, 1, 3]")
    return c.op("Reshape", [y, c.ints([batch, length, width])], y.reshape(batch, length, width))


def gpt2(name, batch, length, width, heads, vocabulary, layers, scale):
    """Radford et al. (2019): norms first, causal attention, a tied vocabulary."""
    c = Case(name)
    tokens = c.labels([batch, length], vocabulary)
    table, places = c.input([vocabulary, width], 3 * scale), c.input([length, width], 2 * scale)
    x = c.op("Gather", [table, tokens], F.embedding(tokens, table), "axis = 0")
    x = c.add(x, places)
    for _ in range(layers):
        packed = c.linear(c.layer_norm(x), 3 * width, 2 * scale)
        parts = tuple(p * 1 for p in packed.split(width, -1))
        parts = c.op("Split", [packed], parts, "axis = -1, num_outputs = 3")
        q, k, v = (heads_apart(c, p, batch, length, heads) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = c.op("Attention", [q, k, v], y, "is_causal = 1")
        x = c.add(x, c.linear(heads_together(c, y, batch, length, width), width, scale))
        h = c.linear(c.layer_norm(x), 4 * width, scale)
        h = c.op("Gelu", [h], F.gelu(h, approximate="tanh"), 'approximate = "tanh"')
        x = c.add(x, c.linear(h, width, scale))
    transposed = c.op("Transpose", [table], table.t() * 1, "perm = ints [1, 0]")
    x = c.layer_norm(x)
    logits = c.op("MatMul", [x, transposed], x @ transposed)
    flat = logits.reshape(-1, vocabulary)
    flat = c.op("Reshape", [logits, c.ints(flat.shape)], flat)
    return c.done(c.cross_entropy(flat, c.labels([batch * length], vocabulary)))


def minilm():
    """Wang et al. (2020), six layers of 384: BERT's encoder, then the mean over tokens; of two
    sentences the cosine is to be 0.5, as sentence transformers are trained."""
    c = Case("minilm")
    batch, length, width, heads, scale = 2, 8, 384, 12, 0.06
    tokens = c.labels([batch, length], 30522)
    table, places = c.input([30522, width], scale), c.input([length, width], scale)
    kinds = c.input([width], scale)
    x = c.op("Gather", [table, tokens], F.embedding(tokens, table), "axis = 0")
    x = c.layer_norm(c.add(c.add(x, places), kinds))
    for _ in range(6):
        q, k, v = (
            heads_apart(c, c.linear(x, width, scale), batch, length, heads) for _ in range(3)
        )
        y = c.op("Attention", [q, k, v], F.scaled_dot_product_attention(q, k, v))
        y = c.linear(heads_together(c, y, batch, length, width), width, scale)
        x = c.layer_norm(c.add(x, y))
        h = c.linear(x, 4 * width, scale)
        h = c.op("Gelu", [h], F.gelu(h))
        x = c.layer_norm(c.add(x, c.linear(h, width, scale)))
    x = c.op("ReduceMean", [x, c.ints([1])], x.mean(1), "keepdims = 0")
    norm = x.norm(dim=1, keepdim=True)
    unit = c.op("Div", [x, c.op("ReduceL2", [x, c.ints([1])], norm)], x / norm)
    cosine = c.op("ReduceProd", [unit, c.ints([0])], unit.prod(0), "keepdims = 0")
    cosine = c.op("ReduceSum", [cosine], cosine.sum(), "keepdims = 0")
    away = c.op("Sub", [cosine, c.number(0.5)], cosine - 0.5)
    return c.done(c.op("Mul", [away, away], away * away))


def cases():
    for group in (losses, norms, attention, recurrent, convolutions, sampling):
        yield from group()
    yield resnet18()
    yield gpt2("transformer", 2, 9, 24, 4, 31, layers=2, scale=0.2)
    yield minilm()
    yield gpt2("gpt2_small", 1, 6, 768, 12, 50257, layers=12, scale=0.035)


def distance(near, far):
    """Of two lists of gradients, relative to the norm of the second."""
    away = sum(float((a.double() - b).square().sum()) for a, b in zip(near, far))
    return math.sqrt(away / sum(float(b.square().sum()) for b in far))


def main():
    made = []
    for kind in (torch.float64, torch.float32):
        torch.set_default_dtype(kind)
        made.append(cases())
    out = []
    while True:
        torch.set_default_dtype(torch.float64)
        wide = next(made[0], None)
        if wide is None:
            break
        torch.set_default_dtype(torch.float32)
        narrow = next(made[1])
        case, gradients = wide
        case["fp32"] = distance(narrow[1], gradients)
        out.append(case)
    source = f"PyTorch {torch.__version__.split('+')[0]}, fp64, by gradients.py"
    print(json.dumps({"source": source, "cases": out}, indent=1))


if __name__ == "__main__":
    main()
