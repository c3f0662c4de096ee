# SPDX-License-Identifier: Apache-2.0
"""BERT encoders as ONNX graphs (Devlin et al., 2019, post-norm as in the paper).

Batch and sequence are dynamic. GELU is written out with Erf, as exporters do, so that a reader
has to put it together again; LayerNormalization is the operator of opset 17.
"""

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from models.graph import Graph


@dataclass(frozen=True)
class BertShape:
    n_layers: int
    n_heads: int
    hidden: int
    intermediate: int
    vocabulary: int = 30522
    positions: int = 512
    types: int = 2
    epsilon: float = 1e-12


MINILM_L6 = BertShape(n_layers=6, n_heads=12, hidden=384, intermediate=1536)
BERT_BASE = BertShape(n_layers=12, n_heads=12, hidden=768, intermediate=3072)

INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def random_weights(shape: BertShape, seed: int) -> dict[str, np.ndarray]:
    """Weights under the names of the published checkpoints, normal with deviation 0.02."""
    rng = np.random.default_rng(seed)
    weights = {}

    def normal(name, *dims):
        weights[name] = rng.standard_normal(dims, dtype=np.float32) * np.float32(0.02)

    def norm(name):
        weights[name + ".weight"] = np.ones(shape.hidden, np.float32)
        weights[name + ".bias"] = np.zeros(shape.hidden, np.float32)

    def dense(name, n_out, n_in):
        normal(name + ".weight", n_out, n_in)
        normal(name + ".bias", n_out)

    normal("embeddings.word_embeddings.weight", shape.vocabulary, shape.hidden)
    normal("embeddings.position_embeddings.weight", shape.positions, shape.hidden)
    normal("embeddings.token_type_embeddings.weight", shape.types, shape.hidden)
    norm("embeddings.LayerNorm")
    for index in range(shape.n_layers):
        layer = f"encoder.layer.{index}."
        for part in ("query", "key", "value"):
            dense(f"{layer}attention.self.{part}", shape.hidden, shape.hidden)
        dense(f"{layer}attention.output.dense", shape.hidden, shape.hidden)
        norm(f"{layer}attention.output.LayerNorm")
        dense(f"{layer}intermediate.dense", shape.intermediate, shape.hidden)
        dense(f"{layer}output.dense", shape.hidden, shape.intermediate)
        norm(f"{layer}output.LayerNorm")
    return weights


class Encoder:
    """Adds one encoder to a graph; node names follow the checkpoint's parameter names."""

    def __init__(self, graph: Graph, shape: BertShape, weights: dict[str, np.ndarray]):
        self.graph = graph
        self.shape = shape
        self.weights = weights
        head_dim = shape.hidden // shape.n_heads
        self.scale = graph.constant("attention_scale", np.float32(np.sqrt(head_dim)))
        self.split = graph.constant(
            "split_heads_shape", np.array([0, 0, shape.n_heads, head_dim], np.int64)
        )
        self.join = graph.constant("join_heads_shape", np.array([0, 0, shape.hidden], np.int64))
        self.one = graph.constant("one", np.float32(1))
        self.half = graph.constant("half", np.float32(0.5))
        self.sqrt2 = graph.constant("sqrt_2", np.float32(np.sqrt(2)))

    def parameter(self, name: str) -> str:
        return self.graph.constant(name, self.weights[name])

    def dense(self, x: str, name: str) -> str:
        # Checkpoints store [n_out, n_in]; MatMul wants [n_in, n_out].
        weight = self.graph.constant(name + ".weight", self.weights[name + ".weight"].T)
        product = self.graph.node("MatMul", [x, weight], name + ".matmul")
        return self.graph.node("Add", [product, self.parameter(name + ".bias")], name)

    def norm(self, x: str, name: str) -> str:
        inputs = [x, self.parameter(name + ".weight"), self.parameter(name + ".bias")]
        return self.graph.node(
            "LayerNormalization", inputs, name, axis=-1, epsilon=self.shape.epsilon
        )

    def embed(self) -> str:
        g = self.graph
        words = g.node(
            "Gather",
            [self.parameter("embeddings.word_embeddings.weight"), "input_ids"],
            "embeddings.words",
        )
        types = g.node(
            "Gather",
            [self.parameter("embeddings.token_type_embeddings.weight"), "token_type_ids"],
            "embeddings.types",
        )
        dims = g.node("Shape", ["input_ids"], "embeddings.length", start=1, end=2)
        zero = g.constant("zero_1d", np.array([0], np.int64))
        table = self.parameter("embeddings.position_embeddings.weight")
        positions = g.node("Slice", [table, zero, dims, zero], "embeddings.positions")
        total = g.node("Add", [words, types], "embeddings.words_types")
        total = g.node("Add", [total, positions], "embeddings.sum")
        return self.norm(total, "embeddings.LayerNorm")

    def mask(self) -> str:
        """0 where a token counts, -10000 where it is padding: [batch, 1, 1, seq]."""
        g = self.graph
        axes = g.constant("mask_axes", np.array([1, 2], np.int64))
        mask = g.node("Unsqueeze", ["attention_mask", axes], "mask.unsqueeze")
        mask = g.node("Cast", [mask], "mask.float", to=TensorProto.FLOAT)
        mask = g.node("Sub", [self.one, mask], "mask.inverted")
        far = g.constant("mask_far", np.float32(-10000))
        return g.node("Mul", [mask, far], "mask.bias")

    def heads(self, x: str, name: str, perm) -> str:
        split = self.graph.node("Reshape", [self.dense(x, name), self.split], name + ".split")
        return self.graph.node("Transpose", [split], name + ".heads", perm=perm)

    def attention(self, x: str, mask: str, name: str) -> str:
        g = self.graph
        query = self.heads(x, f"{name}.self.query", [0, 2, 1, 3])
        key = self.heads(x, f"{name}.self.key", [0, 2, 3, 1])
        value = self.heads(x, f"{name}.self.value", [0, 2, 1, 3])
        scores = g.node("MatMul", [query, key], f"{name}.self.product")
        scores = g.node("Div", [scores, self.scale], f"{name}.self.scaled")
        scores = g.node("Add", [scores, mask], f"{name}.self.masked")
        share = g.node("Softmax", [scores], f"{name}.self.softmax", axis=-1)
        context = g.node("MatMul", [share, value], f"{name}.self.context")
        context = g.node("Transpose", [context], f"{name}.self.merge", perm=[0, 2, 1, 3])
        context = g.node("Reshape", [context, self.join], f"{name}.self.join")
        out = self.dense(context, f"{name}.output.dense")
        out = g.node("Add", [out, x], f"{name}.output.residual")
        return self.norm(out, f"{name}.output.LayerNorm")

    def gelu(self, x: str, name: str) -> str:
        g = self.graph
        inner = g.node("Div", [x, self.sqrt2], f"{name}.div")
        inner = g.node("Erf", [inner], f"{name}.erf")
        inner = g.node("Add", [inner, self.one], f"{name}.add")
        inner = g.node("Mul", [x, inner], f"{name}.mul")
        return g.node("Mul", [inner, self.half], name)

    def layer(self, x: str, mask: str, index: int) -> str:
        name = f"encoder.layer.{index}"
        x = self.attention(x, mask, f"{name}.attention")
        inner = self.gelu(self.dense(x, f"{name}.intermediate.dense"), f"{name}.gelu")
        out = self.dense(inner, f"{name}.output.dense")
        out = self.graph.node("Add", [out, x], f"{name}.output.residual")
        return self.norm(out, f"{name}.output.LayerNorm")

    def build(self) -> str:
        x = self.embed()
        mask = self.mask()
        for index in range(self.shape.n_layers):
            x = self.layer(x, mask, index)
        return x


def token_inputs(graph: Graph) -> None:
    for name in INPUTS:
        graph.input(name, TensorProto.INT64, ["batch", "seq"])


def mean_pool(graph: Graph, hidden: str) -> str:
    """Mean over the tokens that the mask keeps: [batch, hidden]."""
    last = graph.constant("pool_last_axis", np.array([-1], np.int64))
    tokens = graph.constant("pool_token_axis", np.array([1], np.int64))
    mask = graph.node("Unsqueeze", ["attention_mask", last], "pool.mask_unsqueeze")
    mask = graph.node("Cast", [mask], "pool.mask", to=TensorProto.FLOAT)
    kept = graph.node("Mul", [hidden, mask], "pool.kept")
    total = graph.node("ReduceSum", [kept, tokens], "pool.total", keepdims=0)
    count = graph.node("ReduceSum", [mask, tokens], "pool.count_raw", keepdims=0)
    floor = graph.constant("pool_floor", np.float32(1e-9))
    count = graph.node("Max", [count, floor], "pool.count")
    return graph.node("Div", [total, count], "pool.mean")


def unit_length(graph: Graph, mean: str) -> str:
    """The embedding: [batch, hidden], each row of length one."""
    length = graph.node("ReduceL2", [mean], "pool.length_raw", axes=[-1], keepdims=1)
    tiny = graph.constant("pool_tiny", np.float32(1e-12))
    length = graph.node("Max", [length, tiny], "pool.length")
    return graph.node("Div", [mean, length], "embedding")


def sentence_encoder(shape: BertShape, weights: dict[str, np.ndarray]) -> Graph:
    """Tokens to one vector of length one per sentence."""
    graph = Graph("sentence_encoder")
    token_inputs(graph)
    unit_length(graph, mean_pool(graph, Encoder(graph, shape, weights).build()))
    graph.output("embedding", ["batch", shape.hidden])
    return graph


def sentence_classifier(shape: BertShape, weights: dict[str, np.ndarray], head, bias) -> Graph:
    """Tokens to scores of classes: head [hidden, classes] on the mean over the tokens."""
    graph = Graph("sentence_classifier")
    token_inputs(graph)
    mean = mean_pool(graph, Encoder(graph, shape, weights).build())
    inputs = [mean, graph.constant("head.weight", head), graph.constant("head.bias", bias)]
    graph.node("Gemm", inputs, "logits")
    graph.output("logits", ["batch", len(bias)])
    return graph


def token_encoder(shape: BertShape, weights: dict[str, np.ndarray]) -> Graph:
    """Tokens to one vector per token."""
    graph = Graph("token_encoder")
    token_inputs(graph)
    Encoder(graph, shape, weights).build()
    graph.rename_last("last_hidden_state")
    graph.output("last_hidden_state", ["batch", "seq", shape.hidden])
    return graph
