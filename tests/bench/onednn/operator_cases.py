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
        numbers = [c.tolist() for c in self.constants if c is not None and c.size <= 8]
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


FAMILIES = {"pointwise": pointwise, "rows": rows, "moves": moves, "products": products}
FAMILIES |= {"windows": windows, "found": found}
