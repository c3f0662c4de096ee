# SPDX-License-Identifier: Apache-2.0
"""Random graphs whose inputs grow: caches, masks and positions as decoders have them."""

from dataclasses import dataclass, field

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


@dataclass(frozen=True)
class Size:
    """known + grown * t, where t is what grows from run to run."""

    known: int
    grown: int = 0

    def __add__(self, other):
        return Size(self.known + other.known, self.grown + other.grown)

    def times(self, n: int):
        return Size(self.known * n, self.grown * n)

    def at(self, t: int) -> int:
        return self.known + self.grown * t


@dataclass(frozen=True)
class Tensor:
    name: str
    type: int
    dims: tuple[Size, ...]


ONE, LENGTH, NEXT = Size(1), Size(0, 1), Size(1, 1)
INPUTS = [
    (FLOAT, (ONE, Size(2), LENGTH, Size(8))),
    (FLOAT, (ONE, Size(2), LENGTH, Size(8))),
    (FLOAT, (ONE, Size(2), ONE, Size(8))),
    (FLOAT, (ONE, ONE, Size(16))),
    (FLOAT, (ONE, Size(3), Size(16))),
    (INT, (ONE, NEXT)),
    (FLOAT, (LENGTH, Size(4))),
]


@dataclass
class Grower:
    rng: np.random.Generator
    tensors: list[Tensor] = field(default_factory=list)
    numbers: list[tuple[str, Size]] = field(default_factory=list)  # i64[1]
    nodes: list = field(default_factory=list)
    constants: list = field(default_factory=list)

    def constant(self, value) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, op: str, *inputs: str, **attributes) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"n{name}", **attributes))
        return name

    def put(self, name: str, kind: int, dims) -> Tensor:
        self.tensors.append(Tensor(name, kind, tuple(dims)))
        return self.tensors[-1]

    def pick(self, accepts=lambda _: True, kind: int = FLOAT) -> Tensor | None:
        found = [x for x in self.tensors if x.type == kind and accepts(x)]
        recent = found[-6:] if found and self.rng.random() < 0.6 else found
        return recent[self.rng.integers(len(recent))] if recent else None

    def size(self, size: Size) -> str:
        """A number that is that size: a constant, or computed from a shape."""
        if size.grown == 0 and self.rng.random() < 0.7:
            return self.constant(np.array([size.known]))
        known = [name for name, each in self.numbers if each == size]
        if known and self.rng.random() < 0.8:
            return known[self.rng.integers(len(known))]
        x, axis = next((x, i) for x in self.tensors for i, d in enumerate(x.dims) if d.grown == 1)
        at = self.node("Gather", self.node("Shape", x.name), self.constant(np.array([axis])))
        scaled = self.node("Mul", at, self.constant(np.array([size.grown])))
        less = size.known - x.dims[axis].known * size.grown
        name = self.node("Add", scaled, self.constant(np.array([less])))
        self.numbers.append((name, size))
        return name

    def shape(self, dims) -> str:
        return self.node("Concat", *(self.size(d) for d in dims), axis=0)


def measure(g: Grower) -> None:
    x = g.pick() or g.tensors[0]
    axis = int(g.rng.integers(len(x.dims)))
    name = g.node("Shape", x.name, start=axis, end=axis + 1)
    g.numbers.append((name, x.dims[axis]))


def unary(g: Grower) -> None:
    x = g.pick()
    g.put(g.node(g.rng.choice(["Relu", "Tanh", "Neg", "Sigmoid"]), x.name), FLOAT, x.dims)


def binary(g: Grower) -> None:
    x = g.pick()
    y = g.pick(lambda y: y.dims == x.dims)
    g.put(g.node(g.rng.choice(["Add", "Mul", "Sub"]), x.name, y.name), FLOAT, x.dims)


def append(g: Grower) -> None:
    x = g.pick()
    axis = int(g.rng.integers(len(x.dims)))

    def fits(y):
        return len(y.dims) == len(x.dims) and all(
            a == b or i == axis for i, (a, b) in enumerate(zip(x.dims, y.dims, strict=True))
        )

    y = g.pick(fits)
    dims = [*x.dims]
    dims[axis] = x.dims[axis] + y.dims[axis]
    if dims[axis].grown <= 3:
        g.put(g.node("Concat", x.name, y.name, axis=axis), FLOAT, dims)


def flatten(g: Grower) -> None:
    """Two neighbouring axes become one, or one of 8 or 16 becomes two."""
    x = g.pick(lambda x: len(x.dims) >= 2)
    if x is None:
        return
    i = int(g.rng.integers(len(x.dims) - 1))
    a, b = x.dims[i : i + 2]
    if a.grown == 0 or b.grown == 0:
        joined = b.times(a.known) if a.grown == 0 else a.times(b.known)
        dims = [*x.dims[:i], joined, *x.dims[i + 2 :]]
        if joined.grown <= 48:
            g.put(g.node("Reshape", x.name, g.shape(dims)), FLOAT, dims)


def split_heads(g: Grower) -> None:
    x = g.pick(lambda x: x.dims[-1].grown == 0 and x.dims[-1].known in (8, 16))
    if x is None:
        return
    dims = [*x.dims[:-1], Size(x.dims[-1].known // 4), Size(4)]
    y = g.put(g.node("Reshape", x.name, g.shape(dims)), FLOAT, dims)
    order = [*range(len(dims) - 3), len(dims) - 2, len(dims) - 3, len(dims) - 1]
    if len(dims) >= 3:
        g.put(g.node("Transpose", y.name, perm=order), FLOAT, [dims[i] for i in order])


def cut(g: Grower) -> None:
    x = g.pick(lambda x: any(d.grown == 1 and d.known > 0 for d in x.dims))
    if x is None:
        return
    axis = next(i for i, d in enumerate(x.dims) if d.grown == 1 and d.known > 0)
    less = Size(x.dims[axis].known - int(g.rng.integers(1, 4)), 1)  # at least -2
    zero = g.constant(np.array([0]))
    name = g.node("Slice", x.name, zero, g.size(less), g.constant(np.array([axis])))
    g.put(name, FLOAT, [*x.dims[:axis], less, *x.dims[axis + 1 :]])


def positions(g: Grower) -> None:
    if not g.numbers:
        return measure(g)
    number, size = g.numbers[g.rng.integers(len(g.numbers))]
    if size.grown > 2 or size.known < 0:
        return None
    zero, one = g.constant(np.int64(0)), g.constant(np.int64(1))
    end = g.node("Squeeze", number, g.constant(np.array([0])))
    g.put(g.node("Range", zero, end, one), INT, [size])
    return None


def mask(g: Grower) -> None:
    """Which positions one sees, added to what has as many columns."""
    at = g.pick(lambda x: len(x.dims) == 1, INT)
    if at is None:
        return positions(g)
    x = g.pick(lambda x: x.dims[-1] == at.dims[0])
    limit = g.constant(np.int64(int(g.rng.integers(1, 9))))
    seen = g.node(g.rng.choice(["LessOrEqual", "Greater"]), at.name, limit)
    low, zero = g.constant(np.float32(-9)), g.constant(np.float32(0))
    added = g.node("Where", seen, zero, low)
    rank = 1
    if g.rng.random() < 0.5:
        added, rank = g.node("Expand", added, g.shape([ONE, at.dims[0]])), 2
    if x is not None and len(x.dims) >= rank:  # else nothing reads it
        g.put(g.node("Add", x.name, added), FLOAT, x.dims)
    return None


def attend(g: Grower) -> None:
    k = g.pick(lambda x: len(x.dims) == 4 and x.dims[-1].grown == 0)
    if k is None:
        return
    q = g.pick(lambda x: len(x.dims) == 4 and x.dims[-1] == k.dims[-1] and x.dims[:2] == k.dims[:2])
    if q is None:
        return
    scores = g.node("MatMul", q.name, g.node("Transpose", k.name, perm=[0, 1, 3, 2]))
    g.put(scores, FLOAT, [*q.dims[:3], k.dims[2]])
    weights = g.node("Softmax", scores, axis=-1)
    g.put(g.node("MatMul", weights, k.name), FLOAT, [*q.dims[:3], k.dims[3]])


def project(g: Grower) -> None:
    x = g.pick(lambda x: x.dims[-1].grown == 0 and x.dims[-1].known > 0)
    if x is None:
        return
    n = int(g.rng.choice([4, 8, 16]))
    weights = g.rng.standard_normal((x.dims[-1].known, n)).astype("f") / 4
    g.put(g.node("MatMul", x.name, g.constant(weights)), FLOAT, [*x.dims[:-1], Size(n)])


def add_up(g: Grower) -> None:
    x = g.pick()
    axis = int(g.rng.integers(len(x.dims)))
    name = g.node("ReduceMax", x.name, g.constant(np.array([axis])), keepdims=1)
    if x.dims[axis].known > 0 or x.dims[axis].grown == 0:
        g.put(name, FLOAT, [*x.dims[:axis], ONE, *x.dims[axis + 1 :]])


def look_up(g: Grower) -> None:
    at = g.pick(kind=INT)
    table = g.constant(g.rng.standard_normal((64, 8)).astype("f"))
    bounded = g.node("Mod", at.name, g.constant(np.int64(64)))
    g.put(g.node("Gather", table, bounded), FLOAT, [*at.dims, Size(8)])


STEPS = [measure, unary, unary, binary, binary, append, append, flatten, split_heads, cut,
         positions, mask, mask, attend, attend, project, project, project, add_up,
         look_up]  # fmt: skip


def grown(seed: int, steps: int):
    """A model, and what makes its inputs for a t."""
    g = Grower(np.random.default_rng(seed))
    for i, (kind, dims) in enumerate(INPUTS):
        g.put(f"x{i}", kind, dims)
    inputs = list(g.tensors)
    for _ in range(steps):
        STEPS[g.rng.integers(len(STEPS))](g)
    read = {name for node in g.nodes for name in node.input}
    made = [
        x for x in g.tensors if x not in inputs and (x.name not in read or g.rng.random() < 0.1)
    ]

    def info(x):
        sizes = [d.known if d.grown == 0 else f"{d.known}+{d.grown}t" for d in x.dims]
        return helper.make_tensor_value_info(x.name, x.type, sizes)

    outputs = [helper.make_tensor_value_info(x.name, x.type, None) for x in made]
    graph = helper.make_graph(g.nodes, "grown", [info(x) for x in inputs], outputs, g.constants)

    def feed(t, seed):
        rng = np.random.default_rng(seed)
        return {
            x.name: rng.integers(0, 64, [d.at(t) for d in x.dims])
            if x.type == INT
            else rng.standard_normal([d.at(t) for d in x.dims]).astype("f")
            for x in inputs
        }

    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), feed
