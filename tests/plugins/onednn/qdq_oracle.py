# SPDX-License-Identifier: Apache-2.0
"""Models with QuantizeLinear and DequantizeLinear, and what ONNX's formulas say they compute.

Each method adds a node and computes its result in double, as bounds: where a quotient lies so near
to the middle between two quantized values that float32 may round it either way, both are right,
and so is what follows from either. Elsewhere both bounds are the same number.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LIMITS = {"uint8": (0, 255), "int8": (-128, 127)}
TYPES = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8, "float32": TensorProto.FLOAT}
NEAR = 1e-3  # of a step: sums of integers are exact, what follows is a few float32 operations


class Value:
    def __init__(self, name, low, high=None, quant=None):
        self.name = name
        self.low = np.asarray(low)
        self.high = self.low if high is None else np.asarray(high)
        self.quant = quant  # of quantized values: scale, zero point, type

    @property
    def exact(self):
        assert np.array_equal(self.low, self.high), f"{self.name} may be rounded in two ways"
        return self.low


class Program:
    def __init__(self, seed, weight_type="int8", weight_zero=0):
        self.weight_type, self.weight_zero = weight_type, weight_zero
        self.random = np.random.default_rng(seed)
        self.nodes, self.inputs, self.constants, self.feeds = [], [], [], {}
        self.saturated = {}  # share of each QuantizeLinear's quantized values that are at an end

    def fresh(self, stem):
        return f"{stem}_{len(self.nodes) + len(self.constants) + len(self.inputs)}"

    def constant(self, stem, array):
        name = self.fresh(stem)
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, inputs, stem=None, **attributes):
        name = self.fresh(stem or op.lower())
        self.nodes.append(helper.make_node(op, inputs, [name], name=name, **attributes))
        return name

    def given(self, stem, array):
        name = self.fresh(stem)
        element = TYPES[str(array.dtype)]
        self.inputs.append(helper.make_tensor_value_info(name, element, array.shape))
        self.feeds[name] = array
        return name

    def real(self, shape, deviation=1.0):
        """A float input."""
        numbers = (deviation * self.random.standard_normal(shape)).astype(np.float32)
        return Value(self.given("real", numbers), numbers.astype(np.float64))

    def quantized(self, shape, dtype, scale=None, zero=None):
        """An 8-bit input behind DequantizeLinear."""
        low, high = LIMITS[dtype]
        array = self.random.integers(low, high + 1, shape).astype(dtype)
        scale = np.float32(self.random.uniform(0.01, 0.03) if scale is None else scale)
        zero = int(self.random.integers(low // 2, high // 2 + 1) if zero is None else zero)
        return self.dequantize(
            Value(self.given("quantized", array), array, quant=(scale, zero, dtype))
        )

    def parameters(self, quant):
        scale, zero, dtype = quant
        return [self.constant("scale", scale), self.constant("zero", np.asarray(zero, dtype))]

    def dequantize(self, quantized):
        scale, zero, _ = quantized.quant
        name = self.node("DequantizeLinear", [quantized.name, *self.parameters(quantized.quant)])
        reals = [
            (ends.astype(np.float64) - zero) * float(scale)
            for ends in (quantized.low, quantized.high)
        ]
        return Value(name, *reals)

    def quantize(self, x, quant):
        scale, zero, dtype = quant
        name = self.node("QuantizeLinear", [x.name, *self.parameters(quant)])
        least, most = LIMITS[dtype]

        def rounded(reals, side):
            return np.clip(np.rint(reals / float(scale) + side * NEAR) + zero, least, most)

        low, high = rounded(x.low, -1).astype(dtype), rounded(x.high, 1).astype(dtype)
        self.saturated[name] = np.isin(low, [least, most]).mean()
        return Value(name, low, high, quant)

    def stored(self, x, dtype, saturating=False):
        """QuantizeLinear and DequantizeLinear; `saturating`: a fifth of the numbers or more."""
        least, most = LIMITS[dtype]
        reach = np.quantile(np.abs(x.low), 0.6) if saturating else np.abs(x.low).max()
        quant = (np.float32(max(reach, 1e-3) / 120), (least + most + 1) // 2 - 5, dtype)
        return self.dequantize(self.quantize(x, quant))

    def weights(self, shape, axis, per_channel):
        """A constant behind DequantizeLinear: its name, its numbers."""
        low, high = LIMITS[self.weight_type]
        quantized = self.random.integers(low, high + 1, shape).astype(self.weight_type)
        count = shape[axis] if per_channel else 1
        scales = self.random.uniform(0.5, 2, count).astype(np.float32) / 1000
        zeros = np.full(count, (low + high + 1) // 2 + self.weight_zero, self.weight_type)
        along = [1] * len(shape)
        along[axis] = count
        stated = [scales, zeros] if per_channel else [scales[0], zeros[0]]
        name = self.node(
            "DequantizeLinear",
            [self.constant("w", quantized), *(self.constant("parameter", one) for one in stated)],
            **({"axis": axis} if per_channel else {}),
        )
        steps = quantized.astype(np.float64) - zeros.astype(np.float64).reshape(along)
        return name, steps * scales.astype(np.float64).reshape(along)

    def row(self, count, dtype):
        """A constant of one number each channel, in 8 bits or not."""
        if dtype == "float32":
            return Value(*self.bias(count))
        low, high = LIMITS[dtype]
        array = self.random.integers(low, high + 1, count).astype(dtype)
        quant = (np.float32(0.02), 1, dtype)
        return self.dequantize(Value(self.constant("row", array), array, quant=quant))

    def bias(self, count):
        numbers = self.random.standard_normal(count).astype(np.float32)
        return self.constant("bias", numbers), numbers.astype(np.float64)

    def conv(self, x, channels, kernel, per_channel, group=1, stride=1, has_bias=True):
        n, c, height, width = x.exact.shape
        w_name, w = self.weights((channels, c // group, kernel, kernel), 0, per_channel)
        b_name, b = self.bias(channels) if has_bias else ("", np.zeros(channels))
        pad = kernel // 2
        name = self.node(
            "Conv", [x.name, w_name, b_name], group=group, strides=[stride] * 2, pads=[pad] * 4
        )
        padded = np.pad(x.exact, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))
        windows = windows[:, :, ::stride, ::stride]
        windows = windows.reshape(n, group, c // group, *windows.shape[2:])
        w = w.reshape(group, channels // group, c // group, kernel, kernel)
        sums = np.einsum("ngcyxab,gocab->ngoyx", windows, w, optimize=True)
        return Value(name, sums.reshape(n, channels, *sums.shape[3:]) + b[:, None, None])

    def norm(self, x):
        """BatchNormalization of known statistics; every third factor is negative."""
        count = x.low.shape[1]
        gamma = self.random.uniform(0.5, 2, count) * np.where(np.arange(count) % 3 == 0, -1, 1)
        beta, mean = self.random.standard_normal((2, count))
        numbers = [gamma, beta, mean, self.random.uniform(0.2, 3, count)]
        numbers = [each.astype(np.float32) for each in numbers]
        name = self.node(
            "BatchNormalization", [x.name, *(self.constant("norm", each) for each in numbers)]
        )
        gamma, beta, mean, variance = (each.astype(np.float64)[:, None, None] for each in numbers)
        factor = gamma / np.sqrt(variance + 1e-5)
        ends = [(side - mean) * factor + beta for side in (x.low, x.high)]
        return Value(name, np.minimum(*ends), np.maximum(*ends))

    def matmul(self, x, columns, per_channel):
        w_name, w = self.weights((x.exact.shape[-1], columns), 1, per_channel)
        return Value(self.node("MatMul", [x.name, w_name]), x.exact @ w)

    def gemm(self, x, columns, per_channel):
        w_name, w = self.weights((columns, x.exact.shape[-1]), 0, per_channel)
        b_name, b = self.bias(columns)
        name = self.node("Gemm", [x.name, w_name, b_name], transB=1)
        return Value(name, x.exact @ w.T + b)

    def product(self, a, b):
        return Value(self.node("MatMul", [a.name, b.name]), a.exact @ b.exact)

    def rising(self, op, x, function, **attributes):
        """An operator that never falls where its argument grows."""
        return Value(self.node(op, [x.name], **attributes), function(x.low), function(x.high))

    def relu(self, x):
        return self.rising("Relu", x, lambda v: np.maximum(v, 0))

    def add(self, a, b):
        return Value(self.node("Add", [a.name, b.name]), a.low + b.low, a.high + b.high)

    def mul(self, a, b):
        ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        return Value(self.node("Mul", [a.name, b.name]), np.min(ends, 0), np.max(ends, 0))

    def concat(self, parts, axis):
        lows, highs = [p.low for p in parts], [p.high for p in parts]
        name = self.node("Concat", [p.name for p in parts], axis=axis)
        return Value(name, np.concatenate(lows, axis), np.concatenate(highs, axis))

    def pool(self, x, op, kernel, stride):
        def reduced(reals):
            windows = np.lib.stride_tricks.sliding_window_view(reals, (kernel, kernel), (2, 3))
            windows = windows[:, :, ::stride, ::stride]
            return windows.max((4, 5)) if op == "MaxPool" else windows.mean((4, 5))

        return self.rising(op, x, reduced, kernel_shape=[kernel] * 2, strides=[stride] * 2)

    def model(self, results):
        outputs = [onnx.ValueInfoProto(name=value.name) for value in results]
        graph = helper.make_graph(self.nodes, "qdq", self.inputs, outputs, self.constants)
        opset = helper.make_opsetid("", 17)
        return helper.make_model(graph, ir_version=8, opset_imports=[opset])
