# SPDX-License-Identifier: Apache-2.0
"""One-operator models of integers and masks: what transformers and detectors do beside floats."""

from collections.abc import Iterator

import numpy as np
from onnx import TensorProto
from operator_cases import FLOAT, IMAGE, INT64, TEXT, Case

INT32, INT16, INT8 = TensorProto.INT32, TensorProto.INT16, TensorProto.INT8
UINT8, BOOL, HALF = TensorProto.UINT8, TensorProto.BOOL, TensorProto.FLOAT16
TYPES = (INT64, INT32, INT8, UINT8)
MASK = (16, 1, 384, 384)


def arithmetic() -> Iterator[Case]:
    """Operands of one size, one that is broadcast, and a constant."""
    for kind in TYPES:
        dtype = np.dtype({INT64: "i8", INT32: "i4", INT8: "i1", UINT8: "u1"}[kind])
        for op in ("Add", "Sub", "Mul", "Min", "Max", "Div", "Mod"):
            for b in (TEXT, (384,), (16, 128, 1)):
                yield Case(op, [TEXT, b], types=[kind] * 2, highest=100, least=1)
            yield Case(op, [TEXT], {}, [np.array(7, dtype)], types=[kind])
        for op in ("Equal", "Less", "GreaterOrEqual"):
            for b in (TEXT, (16, 128, 1)):
                yield Case(op, [TEXT, b], types=[kind] * 2)
            yield Case(op, [TEXT], {}, [np.array(7, dtype)], types=[kind])
        for op in ("Abs", "Sign", "Neg"):
            if kind != UINT8 or op == "Abs":
                yield Case(op, [TEXT], types=[kind])
        yield Case("Clip", [TEXT], {}, [np.array(3, dtype), np.array(90, dtype)], types=[kind])
        for b in (TEXT, (384,)):
            yield Case("Where", [b, TEXT, TEXT], types=[BOOL, kind, kind], highest=2)
    for kind in (TensorProto.UINT64, TensorProto.UINT32, UINT8):
        for op in ("BitwiseAnd", "BitwiseXor"):
            yield Case(op, [TEXT, TEXT], types=[kind] * 2)
        yield Case("BitwiseNot", [TEXT], types=[kind])
        yield Case("BitShift", [TEXT, TEXT], {"direction": "LEFT"}, types=[kind] * 2, highest=8)
    for op in ("And", "Or", "Xor", "Equal"):
        for b in (TEXT, (16, 1, 384), (384,)):
            yield Case(op, [TEXT, b], types=[BOOL] * 2, highest=2)
    yield Case("Not", [TEXT], types=[BOOL], highest=2)
    for b in (TEXT, (16, 1, 384)):
        yield Case("Where", [b, TEXT, TEXT], types=[BOOL, FLOAT, FLOAT], highest=2)
        yield Case("Where", [b, TEXT], {}, [np.array(-1e9, "f")], types=[BOOL, FLOAT], highest=2)


def casts() -> Iterator[Case]:
    kinds = (FLOAT, HALF, TensorProto.DOUBLE, INT64, INT32, INT16, INT8, UINT8, BOOL)
    for a in kinds:
        for b in kinds:
            if a != b:
                yield Case("Cast", [TEXT], {"to": b}, types=[a], highest=2)


def integer_rows() -> Iterator[Case]:
    for kind in TYPES:
        for axis in (0, 1, 2):
            yield Case("ArgMax", [TEXT], {"axis": axis}, types=[kind])
            for op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceMean"):
                if kind in (INT64, INT32) or op in ("ReduceMax", "ReduceMin"):
                    yield Case(op, [TEXT], {}, [np.array([axis])], types=[kind])
            if kind in (INT64, INT32):
                yield Case("CumSum", [TEXT], {}, [np.array(axis)], types=[kind])
            yield Case("TopK", [TEXT], {"axis": axis}, [np.array([2])], types=[kind], outputs=2)
        whole = Case("ReduceMax", [TEXT], {"keepdims": 0}, types=[kind])
        yield whole
    yield Case("TopK", [(16, 8400)], {"axis": 1}, [np.array([300])], types=[INT64], outputs=2)
    for a, b in [((128, 384), (384, 384)), ((1, 768), (768, 3072)), ((12, 128, 64), (12, 64, 128))]:
        for kind in (INT64, INT32):
            yield Case("MatMul", [a, b], types=[kind] * 2)
        yield Case("MatMulInteger", [a, b], types=[UINT8, INT8])
    yield Case("DynamicQuantizeLinear", [TEXT], outputs=3)


def integer_moves() -> Iterator[Case]:
    for kind in (INT64, HALF, UINT8, BOOL):
        for shape, order in [(IMAGE, (0, 2, 3, 1)), (IMAGE, (0, 1, 3, 2)), (TEXT, (1, 0, 2))]:
            yield Case("Transpose", [shape], {"perm": order}, types=[kind], highest=2)
        for shape, axis in [(IMAGE, 1), (IMAGE, 3), (TEXT, 2)]:
            two = [kind] * 2
            yield Case("Concat", [shape, shape], {"axis": axis}, types=two, highest=2)
            halves = {"axis": axis, "num_outputs": 2}
            yield Case("Split", [shape], halves, types=[kind], outputs=2, highest=2)
        for starts, ends, axes, steps in [
            ([1], [56], [3], [1]),
            ([0, 0], [56, 56], [2, 3], [2, 2]),
            ([55], [-57], [3], [-1]),
        ]:
            numbers = [np.array(one) for one in (starts, ends, axes, steps)]
            yield Case("Slice", [IMAGE], {}, numbers, types=[kind], highest=2)
        for mode in ("constant", "reflect", "edge"):
            pads = [np.array([0, 0, 1, 1, 0, 0, 1, 1])]
            yield Case("Pad", [IMAGE], {"mode": mode}, pads, types=[kind], highest=2)
        yield Case("Tile", [IMAGE], {}, [np.array([1, 2, 1, 1])], types=[kind], highest=2)
        yield Case("Tile", [IMAGE], {}, [np.array([1, 1, 1, 3])], types=[kind], highest=2)
        yield Case("Expand", [(16, 1, 1, 384)], {}, [np.array(MASK)], types=[kind], highest=2)
        yield Case("Expand", [(16, 1, 384, 1)], {}, [np.array(MASK)], types=[kind], highest=2)
        for shape, n, axis in [((30522, 64), 1000, 0), (IMAGE, 32, 1), (TEXT, 64, 2)]:
            chosen = np.random.default_rng(3).integers(0, shape[axis], n)
            yield Case("Gather", [shape], {"axis": axis}, [chosen], types=[kind], highest=2)
        chosen = np.random.default_rng(3).integers(0, 384, (16, 128, 64))
        yield Case("GatherElements", [TEXT], {"axis": 2}, [chosen], types=[kind], highest=2)
        places = np.stack([np.random.default_rng(3).integers(0, n, 20000) for n in TEXT], 1)
        yield Case("GatherND", [TEXT], {}, [places], types=[kind], highest=2)
        order = (0, 2, 1)
        yield Case("ScatterND", [TEXT, (20000,)], {}, [places], [kind] * 2, highest=2, order=order)
        along = {"axis": 2}
        two = [kind] * 2
        yield Case(
            "ScatterElements", [TEXT, chosen.shape], along, [chosen], two, highest=2, order=order
        )
        if kind != HALF:
            yield Case("Trilu", [(16, 384, 384)], {"upper": 0}, types=[kind], highest=2)
    yield Case("OneHot", [(16, 512)], {}, [np.array(100), np.array([0, 1])], types=[INT64])
    yield Case("ConstantOfShape", [(2,)], types=[INT64], highest=400, least=399)
    ends = [np.array(0), np.array(1)]
    yield Case("Range", [()], {}, ends, [INT64], highest=100001, least=100000, order=(1, 0, 2))


def integer_found() -> Iterator[Case]:
    """Results whose sizes the data say."""
    for kind in (FLOAT, BOOL, INT64, UINT8):
        for shape in ((64,), (1, 8400), (16, 128), IMAGE):
            yield Case("NonZero", [shape], types=[kind], highest=2)
    for kind in (FLOAT, INT64, INT32):
        for shape in ((64,), (8400,)):
            yield Case("Unique", [shape], types=[kind], outputs=4)
        for shape in ((64, 4), (8400, 4), (8400, 85)):
            yield Case("Compress", [shape, shape[:1]], {"axis": 0}, types=[kind, BOOL], highest=2)


FAMILIES = {"arithmetic": arithmetic, "casts": casts, "integer_rows": integer_rows}
FAMILIES |= {"integer_moves": integer_moves, "integer_found": integer_found}
