# SPDX-License-Identifier: Apache-2.0
"""One-operator models over many shapes, axes and attributes: what operators.py times."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper

IMAGE, TEXT, PIXELS = (1, 64, 56, 56), (16, 128, 384), (100000, 4)
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
UNARY = """Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid
HardSwish IsInf IsNaN LeakyRelu Log Mish Neg Reciprocal Relu Round Selu Sigmoid Sign Sin Sinh
Softplus Softsign Sqrt Tan Tanh ThresholdedRelu""".split()
BINARY = "Add Div Equal Greater Max Min Mul PRelu Pow Sub".split()
REDUCTIONS = """ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin
ReduceProd ReduceSum ReduceSumSquare""".split()


@dataclass
class Case:
    """shapes: of the inputs. constants: further inputs, None is an absent one. highest: integer
    inputs are below it. least: their smallest. order: of inputs and constants in the node."""

    op: str
    shapes: list[tuple]
    attributes: dict = field(default_factory=dict)
    constants: list = field(default_factory=list)
    types: list[int] | None = None
    outputs: int = 1
    highest: int = 100
    least: int = 0
    order: tuple[int, ...] | None = None

    def name(self) -> str:
        shapes = " ".join("x".join(map(str, shape)) for shape in self.shapes)
        numbers = [
            c.tolist() if c.size <= 8 else "x".join(map(str, c.shape))
            for c in self.constants
            if c is not None
        ]
        kinds = [TensorProto.DataType.Name(kind).lower() for kind in self.types or ()]
        return " ".join(
            [
                self.op,
                *kinds,
                shapes,
                *(f"{k}={v}" for k, v in self.attributes.items()),
                *map(str, numbers),
            ]
        )

    def model(self) -> bytes:
        types = self.types or [FLOAT] * len(self.shapes)
        inputs = [
            helper.make_tensor_value_info(f"x{i}", kind, shape)
            for i, (kind, shape) in enumerate(zip(types, self.shapes, strict=True))
        ]
        names = [one.name for one in inputs]
        stored = []
        for i, constant in enumerate(self.constants):
            names.append("" if constant is None else f"c{i}")
            if constant is not None:
                stored.append(onnx.numpy_helper.from_array(constant, f"c{i}"))
        if self.order:
            names = [names[i] for i in self.order]
        results = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, names, results, **self.attributes)
        outputs = [onnx.ValueInfoProto(name=name) for name in results]
        graph = helper.make_graph([node], "g", inputs, outputs, stored)
        opset = [helper.make_opsetid("", 20)]
        return helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString()

    def inputs(self, random: np.random.Generator) -> dict[str, np.ndarray]:
        made = {}
        for i, shape in enumerate(self.shapes):
            kind = helper.tensor_dtype_to_np_dtype((self.types or [FLOAT] * len(self.shapes))[i])
            is_float = np.issubdtype(kind, np.floating)
            data = (
                random.random(shape) + 0.1
                if is_float
                else random.integers(self.least, self.highest, shape)
            )
            made[f"x{i}"] = data.astype(kind)
        return made


def pointwise() -> Iterator[Case]:
    for shape in (IMAGE, TEXT):
        for op in UNARY:
            yield Case(op, [shape])
    for a, b in [(IMAGE, IMAGE), (IMAGE, (1, 64, 1, 1)), (TEXT, (384,)), (TEXT, (16, 128, 1))]:
        for op in BINARY:
            yield Case(op, [a, b])
    for kind in (TensorProto.UINT8, TensorProto.INT64, TensorProto.FLOAT16, TensorProto.BOOL):
        yield Case("Cast", [TEXT], {"to": kind})
        yield Case("Cast", [TEXT], {"to": FLOAT}, types=[kind], highest=2)


def rows() -> Iterator[Case]:
    """What goes over an axis: the last one, one in front of others, short and long ones."""
    axes = [(TEXT, 2), (TEXT, 1), (TEXT, 0), (IMAGE, 1), (PIXELS, 1), ((4, 100000), 1)]
    for shape, axis in [*axes, ((1, 21, 128, 128), 1), ((1, 2, 512, 512), 1)]:
        for op in ("Softmax", "LogSoftmax", "ArgMax", "LpNormalization"):
            yield Case(op, [shape], {"axis": axis})
        for op in REDUCTIONS:
            yield Case(op, [shape], {}, [np.array([axis])])
        yield Case("CumSum", [shape], {}, [np.array(axis)])
        for k in (1, 2):
            yield Case("TopK", [shape], {"axis": axis}, [np.array([k])], outputs=2)
    for shape in (TEXT, (4096, 16), PIXELS):
        yield Case("LayerNormalization", [shape], {}, [np.ones(shape[-1], "f")])


def moves() -> Iterator[Case]:
    for shape, order in [(IMAGE, (0, 2, 3, 1)), (TEXT, (1, 0, 2)), (TEXT, (2, 1, 0))]:
        yield Case("Transpose", [shape], {"perm": order})
    for shape, axis in [(IMAGE, 1), (IMAGE, 3), (TEXT, 0), (TEXT, 2)]:
        yield Case("Concat", [shape, shape], {"axis": axis})
        yield Case("Split", [shape], {"axis": axis, "num_outputs": 2}, outputs=2)
    for shape, n, axis in [
        ((30522, 384), 128, 0),
        ((1000, 64), 10000, 0),
        (IMAGE, 32, 1),
        (TEXT, 64, 2),
    ]:
        yield Case(
            "Gather", [shape, (n,)], {"axis": axis}, types=[FLOAT, INT64], highest=shape[axis]
        )
    for mode in ("constant", "reflect", "edge"):
        yield Case("Pad", [IMAGE], {"mode": mode}, [np.array([0, 0, 1, 1, 0, 0, 1, 1])])
    for mode in ("nearest", "linear", "cubic"):
        for rule in ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"):
            for factor in (0.5, 2):
                attributes = {"mode": mode, "coordinate_transformation_mode": rule}
                yield Case(
                    "Resize", [IMAGE], attributes, [None, np.array([1, 1, factor, factor], "f")]
                )
    yield Case("DepthToSpace", [IMAGE], {"blocksize": 2})
    yield Case("SpaceToDepth", [IMAGE], {"blocksize": 2})


def windows() -> Iterator[Case]:
    """What slides over pixels, or samples between them."""
    for mode in ("linear", "nearest", "cubic"):
        for image, grid in [(IMAGE, (1, 56, 56, 2)), ((1, 2, 240, 320), (1, 240, 320, 2))]:
            yield Case("GridSample", [image, grid], {"mode": mode})
    yield Case("GridSample", [(1, 8, 16, 28, 28), (1, 16, 28, 28, 3)])
    corners = np.random.default_rng(1).random((100, 2)) * 600
    sizes = np.random.default_rng(2).random((100, 2)) * 200 + 8
    boxes = [np.hstack([corners, corners + sizes]).astype("f"), np.zeros(100, np.int64)]
    for mode, ratio in [("avg", 0), ("avg", 2), ("max", 2)]:
        rules = {"mode": mode, "sampling_ratio": ratio, "spatial_scale": 1 / 16}
        rules |= {"output_height": 7, "output_width": 7}
        yield Case("RoiAlign", [(1, 256, 50, 50)], rules, boxes)
    for kernel, stride in [(2, 2), (3, 1), (3, 2)]:
        rules = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2}
        for outputs in (1, 2):
            yield Case("MaxPool", [IMAGE], rules, outputs=outputs)
        yield Case("AveragePool", [IMAGE], rules)
    filters = [((64, 64, 3, 3), 1), ((64, 1, 5, 5), 64), ((33, 64, 1, 1), 1), ((64, 8, 3, 3), 8)]
    for weights, group in filters:
        yield Case("Conv", [IMAGE], {"group": group}, [np.ones(weights, "f")])
    yield Case("Conv", [(1, 64, 4000)], {"group": 64}, [np.ones((64, 1, 31), "f")])
    yield Case("Conv", [(1, 16, 9, 28, 28)], {}, [np.ones((16, 16, 3, 3, 3), "f")])
    for weights in [(64, 3, 4, 4), (64, 32, 2, 2)]:
        yield Case("ConvTranspose", [IMAGE], {"strides": [2, 2]}, [np.ones(weights, "f")])
    for op, gates in [("LSTM", 4), ("GRU", 3), ("RNN", 1)]:
        weights = [np.full((1, 128 * gates, n), 0.01, "f") for n in (40, 128)]
        yield Case(op, [(100, 1, 40)], {"hidden_size": 128}, weights)


def found() -> Iterator[Case]:
    """Results whose sizes the data say."""
    for kind in (FLOAT, TensorProto.BOOL, INT64):
        yield Case("NonZero", [IMAGE], types=[kind], highest=2)
    limits = [np.array([200]), np.array([0.5], "f"), np.array([0.9], "f")]
    yield Case("NonMaxSuppression", [(1, 8400, 4), (1, 8, 8400)], {}, limits)


def products() -> Iterator[Case]:
    pairs = [
        ((1, 768), (768, 3072)),
        ((128, 384), (384, 384)),
        ((16, 12, 128, 64), (16, 12, 64, 128)),
    ]
    for a, b in [
        *pairs,
        ((64, 3, 3), (64, 3, 3)),
        ((100000, 3), (3, 3)),
        ((3, 100000), (100000, 3)),
    ]:
        yield Case("MatMul", [a, b])
    for equation, a, b in [
        ("bid,bjd->bij", (16, 128, 64), (16, 128, 64)),
        ("bij,bj->bi", (8, 16, 32), (8, 32)),
    ]:
        yield Case("Einsum", [a, b], {"equation": equation})


def filters(*shape: int) -> np.ndarray:
    return np.full(shape, 0.01, "f")


def convolutions() -> Iterator[Case]:
    """Of signals, images and volumes, with few and many channels, groups and filters."""
    wide, audio, volume = (1, 3, 224, 224), (1, 1, 16000), (1, 32, 16, 28, 28)
    for image, weights, group, more in [
        (IMAGE, (128, 1, 3, 3), 64, {}),
        (IMAGE, (64, 2, 3, 3), 32, {}),
        (IMAGE, (64, 1, 7, 7), 64, {"pads": [3] * 4}),
        (IMAGE, (64, 64, 3, 3), 1, {"dilations": [2, 2], "pads": [2] * 4}),
        (IMAGE, (1, 64, 3, 3), 1, {}),
        (wide, (24, 1, 3, 3), 3, {}),
        (wide, (64, 3, 7, 7), 1, {"strides": [2, 2], "pads": [3] * 4}),
        (wide, (768, 3, 16, 16), 1, {"strides": [16, 16]}),
        ((1, 240, 28, 28), (240, 30, 1, 1), 8, {}),
        (audio, (64, 1, 10), 1, {"strides": [5]}),
        (audio, (512, 1, 10), 1, {"strides": [5]}),
        ((1, 80, 1000), (256, 80, 5), 1, {}),
        ((1, 64, 1000), (1, 64, 7), 1, {"pads": [3, 3]}),
        (volume, (32, 1, 3, 3, 3), 32, {}),
        (volume, (32, 32, 1, 3, 3), 1, {}),
    ]:
        yield Case("Conv", [image], {"group": group, **more}, [filters(*weights)])
    for image, weights, stride, padding in [
        (IMAGE, (64, 3, 4, 4), 2, 1),
        (IMAGE, (64, 1, 2, 2), 2, 0),
        (IMAGE, (64, 3, 3, 3), 1, 1),
        ((1, 24, 160, 160), (24, 24, 2, 2), 2, 0),
        ((1, 512, 14, 14), (512, 256, 4, 4), 2, 1),
        ((1, 32, 8000), (32, 1, 4), 2, 0),
        ((1, 32, 16, 28, 28), (32, 16, 2, 2, 2), 2, 0),
    ]:
        axes = len(image) - 2
        rules = {"strides": [stride] * axes, "pads": [padding] * 2 * axes}
        yield Case("ConvTranspose", [image], rules, [filters(*weights)])


def kinds() -> Iterator[Case]:
    """What the other families have none of, or one form alone."""
    random = np.random.default_rng(3)
    for shape in [(1000, 1000), (8, 50257), (4096, 64), (16384, 10)]:
        yield Case("Softmax", [shape], {"axis": -1})
    for op, gates in [("LSTM", 4), ("GRU", 3), ("RNN", 1)]:
        for length, batch, width, hidden in [(50, 8, 64, 128), (20, 1, 256, 512), (200, 1, 8, 16)]:
            weights = [filters(1, gates * hidden, n) for n in (width, hidden)]
            yield Case(op, [(length, batch, width)], {"hidden_size": hidden}, weights)
    for equation, a, b in [
        ("bhid,bhjd->bhij", (2, 8, 128, 64), (2, 8, 128, 64)),
        ("bchw,bc->bhw", (2, 64, 32, 32), (2, 64)),
        ("nkctv,kvw->nctw", (1, 3, 64, 100, 25), (3, 25, 25)),
        ("bhwc,hkc->bhwk", (4, 14, 14, 64), (14, 14, 64)),
    ]:
        yield Case("Einsum", [a, b], {"equation": equation})
    for rule in ("none", "add", "mul", "max"):
        updates = [random.integers(0, 1000, (500, 64)), filters(500, 64)]
        yield Case("ScatterElements", [(1000, 64)], {"reduction": rule, "axis": 0}, updates)
        updates = [random.integers(0, 1000, (500, 1)), filters(500, 64)]
        yield Case("ScatterND", [(1000, 64)], {"reduction": rule}, updates)
    yield Case("GatherND", [(100, 100, 64)], {}, [random.integers(0, 100, (5000, 2))])
    yield Case("GatherElements", [(1000, 64)], {"axis": 0}, [random.integers(0, 1000, (500, 64))])
    for shape, k in [((1, 8400), 100), ((1, 50257), 50), ((1000, 64), 8), ((100, 1000), 1000)]:
        yield Case("TopK", [shape], {}, [np.array([k])], outputs=2)
    for a, b in [
        ((1, 4096), (4096, 4096)),
        ((12, 1, 64), (12, 64, 512)),
        ((4096,), (4096, 1000)),
        ((4000, 3), (3, 64)),
        ((2, 300, 77), (2, 77, 131)),
    ]:
        yield Case("MatMul", [a, b])
    yield Case("Gemm", [(1, 768), (3072, 768)], {"transB": 1})
    sizes = [np.array([56, 56]), np.array([3, 3])]
    yield Case("Col2Im", [(1, 576, 3136)], {"pads": [1] * 4}, sizes)
    yield Case("Transpose", [(100, 3, 1000)], {"perm": (2, 0, 1)})
    yield Case("Mod", [TEXT, TEXT], {"fmod": 1})
    yield Case("Hardmax", [TEXT])
    yield Case("Trilu", [(8, 256, 256)])
    yield Case("Tile", [TEXT], {}, [np.array([1, 1, 2])])
    yield Case("DFT", [(8, 400, 2)], {}, [None, np.array(1)])
    yield Case("InstanceNormalization", [IMAGE], {}, [filters(64), filters(64)])
    yield Case("BatchNormalization", [IMAGE], {}, [filters(64)] * 4)


FAMILIES = {"pointwise": pointwise, "rows": rows, "moves": moves, "products": products}
FAMILIES |= {"windows": windows, "found": found, "convolutions": convolutions, "kinds": kinds}
