# SPDX-License-Identifier: Apache-2.0
"""Writes a decoder as exporters of language models write them, with random 4-bit weights.

  decoder_model.py FILE [--room N] [--layers 8] [--width 512] [--heads 8] [--shared 2]
                   [--vocabulary 8192]

input_ids, attention_mask and past.I.key/value -> logits and present.I.key/value, with
GroupQueryAttention, rotary positions and MatMulNBits in groups of 32. Caches grow with each step;
with --room they have N rows from the beginning, of which the mask says how many are filled.
"""

import argparse

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OURS = "com.microsoft"
BLOCK = 32


class Writer:
    def __init__(self, args):
        self.args = args
        self.random = np.random.default_rng(0)
        self.size = args.width // args.heads
        self.nodes, self.constants, self.inputs, self.outputs = [], [], [], []

    def constant(self, name: str, value: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(value, name))
        return name

    def node(self, op: str, inputs: str, outputs: str, domain: str = "", **attributes) -> str:
        made = helper.make_node(op, inputs.split(), outputs.split(), domain=domain, **attributes)
        self.nodes.append(made)
        return outputs.split()[0]

    def product(self, x: str, name: str, n_in: int, n_out: int) -> str:
        """x [1, s, n_in] times 4-bit weights: [1, s, n_out]."""
        blocks = n_in // BLOCK
        packed = self.random.integers(0, 256, (n_out, blocks, BLOCK // 2), "u1")
        scales = self.random.uniform(0.5, 1.5, n_out * blocks).astype("f") / (4 * n_in**0.5)
        self.constant(f"{name}.q", packed)
        self.constant(f"{name}.s", scales)
        return self.node(
            "MatMulNBits", f"{x} {name}.q {name}.s", f"{name}.y", OURS,
            K=n_in, N=n_out, bits=4, block_size=BLOCK,
        )  # fmt: skip

    def norm(self, x: str, name: str) -> str:
        self.constant(f"{name}.w", np.ones(self.args.width, "f"))
        return self.node("SimplifiedLayerNormalization", f"{x} {name}.w", f"{name}.y", axis=-1)

    def layer(self, i: int, x: str) -> str:
        width, kept = self.args.width, self.args.shared * self.size
        h = self.norm(x, f"{i}.before")
        q = self.product(h, f"{i}.query", width, width)
        k, v = (self.product(h, f"{i}.{part}", width, kept) for part in ("key", "value"))
        caches = f"past.{i}.key past.{i}.value"
        y = self.node(
            "GroupQueryAttention", f"{q} {k} {v} {caches} last total cosines sines",
            f"{i}.attended present.{i}.key present.{i}.value", OURS,
            num_heads=self.args.heads, kv_num_heads=self.args.shared, do_rotary=1,
        )  # fmt: skip
        x = self.node("Add", f"{x} {self.product(y, f'{i}.out', width, width)}", f"{i}.sum")
        h = self.norm(x, f"{i}.behind")
        gate, up = (self.product(h, f"{i}.{part}", width, 3 * width) for part in ("gate", "up"))
        self.node("Sigmoid", gate, f"{i}.open")
        self.node("Mul", f"{gate} {i}.open", f"{i}.silu")
        self.node("Mul", f"{i}.silu {up}", f"{i}.inner")
        down = self.product(f"{i}.inner", f"{i}.down", 3 * width, width)
        shape = [1, self.args.shared, self.args.room or f"past_{i}", self.size]
        after = [*shape[:2], self.args.room or "total", self.size]
        for part in ("key", "value"):
            self.inputs.append((f"past.{i}.{part}", TensorProto.FLOAT, shape))
            self.outputs.append((f"present.{i}.{part}", TensorProto.FLOAT, after))
        return self.node("Add", f"{x} {down}", f"{i}.y")

    def graph(self):
        length = self.args.room or "total"
        self.inputs.append(("input_ids", TensorProto.INT64, [1, "new"]))
        self.inputs.append(("attention_mask", TensorProto.INT64, [1, length]))
        self.outputs.insert(0, ("logits", TensorProto.FLOAT, [1, "new", self.args.vocabulary]))
        self.constant("one", np.array([1]))
        angles = np.outer(np.arange(4096), 10000.0 ** -np.linspace(0, 1, self.size // 2))
        self.constant("cosines", np.cos(angles).astype("f"))
        self.constant("sines", np.sin(angles).astype("f"))
        self.node("ReduceSum", "attention_mask one", "filled", keepdims=0)
        self.node("Sub", "filled one", "last64")
        self.node("Cast", "last64", "last", to=TensorProto.INT32)
        self.node("Shape", "attention_mask", "sizes", start=1, end=2)
        self.node("Squeeze", "sizes", "size")
        self.node("Cast", "size", "total", to=TensorProto.INT32)
        table = self.random.standard_normal((self.args.vocabulary, self.args.width)).astype("f")
        x = self.node("Gather", f"{self.constant('table', table)} input_ids", "embedded")
        for i in range(self.args.layers):
            x = self.layer(i, x)
        h = self.norm(x, "last_norm")
        logits = self.product(h, "head", self.args.width, self.args.vocabulary)
        self.node("Identity", logits, "logits")
        ports = [
            [helper.make_tensor_value_info(*port) for port in ports]
            for ports in (self.inputs, self.outputs)
        ]
        return helper.make_graph(self.nodes, "decoder", *ports, self.constants)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("--room", type=int, default=0)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--shared", type=int, default=2)
    parser.add_argument("--vocabulary", type=int, default=8192)
    args = parser.parse_args()
    imports = [helper.make_opsetid("", 17), helper.make_opsetid(OURS, 1)]
    model = helper.make_model(Writer(args).graph(), opset_imports=imports)
    model.ir_version = 9
    onnx.save(model, args.file)


if __name__ == "__main__":
    main()
