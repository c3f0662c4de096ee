# SPDX-License-Identifier: Apache-2.0
"""Training of a network in one bit: the step computes with the signs that its weights have now."""

import numpy as np
import pytest
import tenon

N, WIDE, CLASSES = 64, 16, 4


def network() -> tenon.Model:
    rng = np.random.default_rng(1)
    graph = tenon.Graph()
    h = graph.add_input("x", "float32", ["batch", WIDE])
    for i, (a, b) in enumerate([(WIDE, 32), (32, 32), (32, CLASSES)]):
        w = graph.add_constant((rng.standard_normal((a, b)) / np.sqrt(a)).astype("f"), f"w{i}")
        h = graph.add_node("MatMul", [h, w], name=f"fc{i}")
        if i < 2:
            h = graph.add_node("Relu", [h], name=f"relu{i}")
    graph.add_output("logits", h)
    return graph.build()


@pytest.mark.parametrize("backend", ["reference", "onednn"])
def test_the_returned_model_is_what_the_last_step_computed(tmp_path, backend):
    x = np.random.default_rng(2).standard_normal((N, WIDE)).astype("f")
    np.savez(tmp_path / "train.npz", x=x, label=x[:, :CLASSES].argmax(1))
    data = tenon.data.npz(tmp_path / "train.npz")
    rounded = network().apply("quantizer.binarize", data=data)
    given = dict(batch=N, shuffle=False, backend=backend, seed=1)

    def trained(model, epochs, rate):
        sgd = tenon.optim.sgd(lr=rate)
        out = tenon.train(
            model, data, epochs=epochs, optimizer=sgd, parameters=["*_latent"], **given
        )
        return out, [one["loss"] for one in out.report["history"]]

    after, _ = trained(rounded, 5, 0.5)
    _, losses = trained(rounded, 6, 0.5)
    _, again = trained(after, 1, 1e-12)

    assert losses[-1] != losses[0], "no sign has changed"
    assert again[0] == pytest.approx(losses[-1], rel=1e-6)
