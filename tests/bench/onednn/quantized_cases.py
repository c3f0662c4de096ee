# SPDX-License-Identifier: Apache-2.0
"""Quantized operators and short chains: the models that quantized_operators.py times."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
STORED = {"u8": (np.uint8, 128), "s8": (np.int8, 0), "u16": (np.uint16, 32768)}
SCALE, WEIGHT_SCALE = 0.02, 0.01
IMAGE, TEXT = (1, 64, 56, 56), (1, 128, 384)
OPSETS = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]


class Net:
    """Emits one model: with form f32 in float32, otherwise with QDQ pairs around its values."""

    def __init__(self, form: str, random: np.random.Generator) -> None:
        self.form, self.random = form, random
        self.nodes: list[onnx.NodeProto] = []
        self.stored: list[onnx.TensorProto] = []

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.stored)}"
        self.stored.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op: str, *inputs: str, n: int = 1, **attributes: object) -> list[str]:
        outputs = [f"v{len(self.nodes)}_{i}" for i in range(n)]
        self.nodes.append(helper.make_node(op, list(inputs), outputs, **attributes))
        return outputs

    def grid(self) -> list[str]:
        kind, zero = STORED[self.form]
        return [self.constant(np.float32(SCALE)), self.constant(kind(zero))]

    def quantize(self, name: str) -> str:
        if self.form == "f32":
            return name
        return self.node("QuantizeLinear", name, *self.grid())[0]

    def dequantize(self, name: str) -> str:
        if self.form == "f32":
            return name
        return self.node("DequantizeLinear", name, *self.grid())[0]

    def op(self, op: str, *inputs: str, **attributes: object) -> str:
        """One operator between a DequantizeLinear and a QuantizeLinear."""
        return self.dequantize(self.quantize(self.node(op, *inputs, **attributes)[0]))

    def inside(self, op: str, *inputs: str, **attributes: object) -> str:
        """One operator with nothing around it."""
        return self.node(op, *inputs, **attributes)[0]

    def weight(self, shape: tuple, axis: int = 0, bits: int = 8, block: int = 0) -> str:
        """bits: of the stored integers; block: numbers of axis 0 that have one scale."""
        limit = 2 ** (bits - 1) - 1
        whole = self.random.integers(-limit, limit + 1, shape)
        if self.form == "f32":
            return self.constant((whole * WEIGHT_SCALE).astype("f"))
        attributes: dict[str, int] = {"axis": axis}
        scale = np.full(shape[axis], WEIGHT_SCALE, "f")
        if block:
            attributes = {"axis": 0, "block_size": block}
            scale = np.full((shape[0] // block, *shape[1:]), WEIGHT_SCALE, "f")
        kind = TensorProto.INT4 if bits == 4 else TensorProto.INT8
        name = f"c{len(self.stored)}"
        if bits == 4:
            self.stored.append(helper.make_tensor(name, kind, shape, whole.reshape(-1).tolist()))
        else:
            self.constant(whole.astype(np.int8))
        return self.node("DequantizeLinear", name, self.constant(scale), **attributes)[0]

    def bias(self, size: int) -> str:
        whole = self.random.integers(-1000, 1000, size)
        if self.form == "f32":
            return self.constant((whole * SCALE * WEIGHT_SCALE).astype("f"))
        scale = self.constant(np.full(size, SCALE * WEIGHT_SCALE, "f"))
        stored = self.constant(whole.astype(np.int32))
        return self.node("DequantizeLinear", stored, scale, axis=0)[0]

    def conv(self, x: str, shape: tuple, **attributes: object) -> str:
        return self.inside("Conv", x, self.weight(shape), self.bias(shape[0]), **attributes)

    def between(self, x: str) -> str:
        return self.dequantize(self.quantize(x))


@dataclass
class Case:
    """build: from the dequantized inputs to the float results. whole: inputs that are indices,
    below `highest`. forms: those in which it is timed."""

    name: str
    shapes: list[tuple]
    build: Callable[..., str | list[str]]
    whole: tuple[int, ...] = ()
    highest: int = 100
    forms: tuple[str, ...] = ("u8", "s8")
    extra: dict = field(default_factory=dict)

    def model(self, form: str) -> bytes:
        net = Net(form, np.random.default_rng(1))
        kind = (
            FLOAT if form == "f32" else helper.np_dtype_to_tensor_dtype(np.dtype(STORED[form][0]))
        )
        inputs, names = [], []
        for i, shape in enumerate(self.shapes):
            is_index = i in self.whole
            inputs.append(
                helper.make_tensor_value_info(f"x{i}", INT64 if is_index else kind, shape)
            )
            names.append(f"x{i}" if is_index else net.dequantize(f"x{i}"))
        results = self.build(net, *names)
        results = [results] if isinstance(results, str) else results
        results = [net.quantize(name) for name in results]
        return packed(net, inputs, results)

    def inputs(self, form: str, random: np.random.Generator) -> dict[str, np.ndarray]:
        made = {}
        for i, shape in enumerate(self.shapes):
            if i in self.whole:
                made[f"x{i}"] = random.integers(0, self.highest, shape)
            elif form == "f32":
                made[f"x{i}"] = random.standard_normal(shape).astype("f")
            else:
                kind, zero = STORED[form]
                steps = zero + random.standard_normal(shape) / SCALE
                made[f"x{i}"] = steps.clip(np.iinfo(kind).min, np.iinfo(kind).max).astype(kind)
        return made


@dataclass
class Stored(Case):
    """A model of operators on integers (QOperator, MatMulInteger): build makes all of it; the form
    f32 is another function."""

    floats: Callable[..., str] | None = None

    def model(self, form: str) -> bytes:
        net = Net(form, np.random.default_rng(1))
        is_float = form == "f32" or self.extra.get("dynamic")
        kind = FLOAT if is_float else helper.np_dtype_to_tensor_dtype(np.dtype(STORED[form][0]))
        inputs = [
            helper.make_tensor_value_info(f"x{i}", kind, shape)
            for i, shape in enumerate(self.shapes)
        ]
        names = [one.name for one in inputs]
        build = self.floats if form == "f32" else self.build
        return packed(net, inputs, [build(net, *names)])

    def inputs(self, form: str, random: np.random.Generator) -> dict[str, np.ndarray]:
        return super().inputs("f32" if self.extra.get("dynamic") else form, random)


def packed(net: Net, inputs: list, results: list[str]) -> bytes:
    outputs = [onnx.ValueInfoProto(name=name) for name in results]
    graph = helper.make_graph(net.nodes, "g", inputs, outputs, net.stored)
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=10).SerializeToString()


def convolution(name: str, x: tuple, w: tuple, **attributes: object) -> Case:
    shapes = "x".join(map(str, x)) + " " + "x".join(map(str, w))
    marks = " ".join(f"{k}={v}" for k, v in attributes.items())
    return Case(
        f"{name} {shapes} {marks}".strip(), [x], lambda net, a: net.conv(a, w, **attributes)
    )


def convolutions() -> Iterator[Case]:
    same = {"pads": [1, 1, 1, 1]}
    yield convolution("Conv", (1, 64, 56, 56), (64, 64, 3, 3), **same)
    yield convolution("Conv", (1, 64, 56, 56), (64, 64, 3, 3), strides=[2, 2], **same)
    yield convolution("Conv", (1, 64, 56, 56), (64, 64, 3, 3), dilations=[2, 2])
    yield convolution("Conv", (1, 64, 56, 56), (256, 64, 1, 1))
    yield convolution("Conv", (1, 256, 56, 56), (64, 256, 1, 1))
    yield convolution("Conv", (1, 256, 28, 28), (512, 256, 1, 1), strides=[2, 2])
    yield convolution("Conv", (1, 512, 7, 7), (512, 512, 3, 3), **same)
    yield convolution("Conv", (1, 256, 1, 1), (64, 256, 1, 1))
    yield convolution("Conv", (1, 3, 224, 224), (64, 3, 7, 7), strides=[2, 2], pads=[3] * 4)
    yield convolution("Conv", (1, 3, 224, 224), (32, 3, 3, 3), strides=[2, 2], **same)
    yield convolution("Conv", (1, 3, 224, 224), (768, 3, 16, 16), strides=[16, 16])
    yield convolution("Conv", (1, 1, 128, 128), (16, 1, 5, 5))
    yield convolution("Conv", (1, 8, 64, 64), (8, 8, 3, 3), **same)
    yield convolution("Conv", (1, 24, 57, 55), (40, 24, 3, 3), **same)
    yield convolution("Conv", (1, 17, 33, 31), (19, 17, 3, 3), **same)
    yield convolution("Conv", (1, 64, 56, 56), (3, 64, 3, 3), **same)
    yield convolution("Conv", (1, 64, 56, 56), (1, 64, 1, 1))
    yield convolution("Conv", (1, 128, 28, 28), (128, 4, 3, 3), group=32, **same)
    yield convolution("Conv", (1, 128, 28, 28), (128, 32, 3, 3), group=4, **same)
    yield convolution("Conv", (1, 60, 28, 28), (60, 20, 1, 1), group=3)
    for k in (3, 5, 7):
        for s in (1, 2):
            pads = [k // 2] * 4
            yield convolution(
                "Depthwise", (1, 96, 56, 56), (96, 1, k, k), group=96, strides=[s, s], pads=pads
            )
    yield convolution("Depthwise", (1, 20, 33, 33), (20, 1, 3, 3), group=20, **same)
    yield convolution("Depthwise", (1, 32, 28, 28), (64, 1, 3, 3), group=32, **same)
    yield convolution(
        "Depthwise", (1, 96, 28, 28), (96, 1, 3, 3), group=96, dilations=[2, 2], pads=[2] * 4
    )
    yield convolution("Conv1d", (1, 80, 1000), (256, 80, 3), pads=[1, 1])
    yield convolution("Conv1d", (1, 1, 16000), (64, 1, 10), strides=[5])
    yield convolution("Conv1d", (1, 256, 200), (256, 1, 31), group=256, pads=[15, 15])
    yield convolution("Conv3d", (1, 16, 16, 28, 28), (32, 16, 3, 3, 3), pads=[1] * 6)
    yield convolution("Conv3d", (1, 3, 16, 56, 56), (16, 3, 3, 3, 3), pads=[1] * 6)
    yield convolution("Conv3d", (1, 32, 8, 14, 14), (32, 1, 3, 3, 3), group=32, pads=[1] * 6)
    for w, group in (((64, 32, 2, 2), 1), ((64, 32, 4, 4), 1), ((64, 1, 4, 4), 64)):

        def transposed(net: Net, a: str, w: tuple = w, group: int = group) -> str:
            weight = net.weight(w, 1 if group == 1 else 0)
            return net.inside("ConvTranspose", a, weight, strides=[2, 2], group=group)

        yield Case(f"ConvTranspose 64x28x28 {w} group={group}", [(1, 64, 28, 28)], transposed)


def products() -> Iterator[Case]:
    for m in (1, 7, 64, 1000):
        for k, n in ((384, 1536), (1536, 384), (64, 10), (100, 101)):
            yield Case(
                f"MatMul {m}x{k} {k}x{n}",
                [(m, k)],
                lambda net, a, k=k, n=n: net.inside("MatMul", a, net.weight((k, n), 1)),
            )
        yield Case(
            f"Gemm {m}x512 1000x512 transposed",
            [(m, 512)],
            lambda net, a: net.inside(
                "Gemm", a, net.weight((1000, 512), 0), net.bias(1000), transB=1
            ),
        )
        for bits in (4, 8):
            yield Case(
                f"MatMul {m}x1024 1024x1024 bits={bits} block=32",
                [(m, 1024)],
                lambda net, a, bits=bits: net.inside(
                    "MatMul", a, net.weight((1024, 1024), 1, bits, 32)
                ),
                forms=("u8",),
            )
    for a, b in [
        ((12, 128, 64), (12, 64, 128)),
        ((12, 128, 128), (12, 128, 64)),
        ((12, 1, 64), (12, 64, 128)),
        ((4, 33, 17), (4, 17, 29)),
        ((64, 64), (64, 64)),
        ((1000, 256), (256, 256)),
    ]:
        name = "x".join(map(str, a)) + " " + "x".join(map(str, b))
        yield Case(f"MatMul computed {name}", [a, b], lambda net, x, y: net.inside("MatMul", x, y))
    for op, gates in (("LSTM", 4), ("GRU", 3)):

        def recurrent(net: Net, a: str, op: str = op, gates: int = gates) -> str:
            w = net.weight((1, gates * 128, 64), 1)
            r = net.weight((1, gates * 128, 128), 1)
            return net.node(op, a, w, r, n=1, hidden_size=128)[0]

        yield Case(f"{op} 50x1x64 128", [(50, 1, 64)], recurrent)


def moves() -> Iterator[Case]:
    def one(op: str, shape: tuple, *constants: np.ndarray | None, **attributes: object) -> Case:
        def build(net: Net, a: str) -> str:
            names = [net.constant(c) if c is not None else "" for c in constants]
            return net.inside(op, a, *names, **attributes)

        marks = " ".join(f"{k}={v}" for k, v in attributes.items())
        numbers = " ".join(str(c.tolist()) for c in constants if c is not None)
        return Case(f"{op} {'x'.join(map(str, shape))} {marks} {numbers}", [shape], build)

    for axis in (1, 3):
        yield Case(
            f"Concat IMAGE axis={axis}",
            [IMAGE, IMAGE],
            lambda net, a, b, axis=axis: net.inside("Concat", a, b, axis=axis),
        )
        yield Case(
            f"Split IMAGE axis={axis}",
            [IMAGE],
            lambda net, a, axis=axis: net.node("Split", a, n=2, axis=axis, num_outputs=2),
        )
    yield one("Slice", IMAGE, *map(np.array, ([0, 1], [56, 55], [1, 3])))
    yield one("Slice", IMAGE, *map(np.array, ([0, 0], [56, 56], [2, 3], [2, 2])))
    yield one("Pad", IMAGE, np.array([0, 0, 1, 1, 0, 0, 1, 1]))
    yield one("Pad", IMAGE, np.array([0, 0, 1, 1, 0, 0, 1, 1]), mode="reflect")
    for perm in ([0, 2, 3, 1], [0, 3, 1, 2], [0, 1, 3, 2]):
        yield one("Transpose", IMAGE, perm=perm)
    yield one("Transpose", (1, 128, 12, 64), perm=[0, 2, 1, 3])
    for mode in ("nearest", "linear", "cubic"):
        for factor in (0.5, 2):
            yield one("Resize", IMAGE, None, np.array([1, 1, factor, factor], "f"), mode=mode)
    yield one("DepthToSpace", IMAGE, blocksize=2)
    yield one("SpaceToDepth", IMAGE, blocksize=2)
    yield one("Tile", IMAGE, np.array([1, 2, 1, 1]))
    yield one("Expand", (1, 64, 1, 1), np.array([1, 64, 56, 56]))
    yield one("Gather", TEXT, np.arange(0, 128, 2), axis=1)
    yield one("Gather", TEXT, np.array(0), axis=1)
    yield Case(
        "Gather table 30522x384 by 128",
        [(128,)],
        lambda net, a: net.inside("Gather", net.weight((30522, 384), 0), a),
        whole=(0,),
        highest=30522,
    )
    for op in ("MaxPool", "AveragePool"):
        for k, s in ((2, 2), (3, 2), (3, 1), (7, 7)):
            pads = [k // 2 if k == 3 else 0] * 4
            yield one(op, IMAGE, kernel_shape=[k, k], strides=[s, s], pads=pads)
        yield one(op, (1, 64, 1000), kernel_shape=[2], strides=[2])
        yield one(op, (1, 16, 16, 28, 28), kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    yield one("GlobalAveragePool", IMAGE)
    yield one("GlobalAveragePool", (1, 2048, 7, 7))
    yield one("GlobalMaxPool", IMAGE)
    for axes, keep in (([2, 3], 1), ([1], 0), ([-1], 1)):
        for op in ("ReduceMean", "ReduceMax", "ReduceSum"):
            yield one(op, IMAGE, np.array(axes), keepdims=keep)
    yield one("ReduceMean", TEXT, np.array([1]))
    yield one("Flatten", IMAGE)


def pointwise() -> Iterator[Case]:
    for op in """Relu LeakyRelu Sigmoid Tanh HardSwish HardSigmoid Gelu Elu Softplus Erf Exp Sqrt
        Abs Neg Mish Sin Round""".split():
        yield Case(f"{op} IMAGE", [IMAGE], lambda net, a, op=op: net.inside(op, a))
    yield Case(
        "Clip IMAGE",
        [IMAGE],
        lambda net, a: net.inside(
            "Clip", a, net.constant(np.float32(0)), net.constant(np.float32(1))
        ),
    )
    yield Case("Swish IMAGE", [IMAGE], lambda net, a: net.inside("Mul", a, net.op("Sigmoid", a)))
    shapes = [(IMAGE, IMAGE), (IMAGE, (1, 64, 1, 1)), (IMAGE, (1, 1, 56, 56)), (TEXT, (384,))]
    shapes += [(TEXT, (1, 128, 1)), (TEXT, (1,)), ((64, 1), (1, 4096))]
    for op in ("Add", "Mul", "Sub", "Div", "Max"):
        for a, b in shapes:
            name = "x".join(map(str, a)) + " " + "x".join(map(str, b))
            yield Case(f"{op} {name}", [a, b], lambda net, x, y, op=op: net.inside(op, x, y))
    yield Case(
        "Add constant",
        [IMAGE],
        lambda net, a: net.inside("Add", a, net.between(net.constant(np.float32(0.5)))),
    )
    for shape, axis in ((TEXT, -1), ((12, 128, 128), -1), ((1, 21, 128, 128), 1), ((1, 1000), -1)):
        for op in ("Softmax", "LogSoftmax"):
            name = f"{op} {'x'.join(map(str, shape))} axis={axis}"
            yield Case(name, [shape], lambda net, a, op=op, axis=axis: net.inside(op, a, axis=axis))
    yield Case(
        "LayerNormalization TEXT",
        [TEXT],
        lambda net, a: net.inside("LayerNormalization", a, net.constant(np.ones(384, "f"))),
    )
    yield Case(
        "InstanceNormalization IMAGE",
        [IMAGE],
        lambda net, a: net.inside(
            "InstanceNormalization", a, *[net.constant(np.ones(64, "f"))] * 2
        ),
    )
    yield Case(
        "BatchNormalization IMAGE",
        [IMAGE],
        lambda net, a: net.inside("BatchNormalization", a, *[net.constant(np.ones(64, "f"))] * 4),
    )
    yield Case(
        "Where IMAGE",
        [IMAGE, IMAGE],
        lambda net, a, b: net.inside("Where", net.constant(np.arange(56) % 2 == 0), a, b),
    )
