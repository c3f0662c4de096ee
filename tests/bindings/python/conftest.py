# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
import tenon


@pytest.fixture
def dense() -> tenon.Model:
    """relu(x @ w), x: float32[batch, 4], w: float32[4, 2]."""
    graph = tenon.Graph()
    x = graph.add_input("x", "float32", ["batch", 4])
    w = graph.add_constant(np.arange(8, dtype="float32").reshape(4, 2) - 3, "w")
    product = graph.add_node("MatMul", [x, w], name="product")
    graph.add_output("y", graph.add_node("Relu", [product]))
    return graph.build()


def single(op: str, dtype: str, inputs: int = 1, shape=("n",)) -> tenon.Plan:
    """One operator on the reference backend."""
    graph = tenon.Graph()
    values = [graph.add_input(f"x{i}", dtype, list(shape)) for i in range(inputs)]
    graph.add_output("y", graph.add_node(op, values))
    return graph.build().compile(backend="reference")
