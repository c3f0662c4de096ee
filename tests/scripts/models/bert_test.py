# SPDX-License-Identifier: Apache-2.0
"""The encoder's graph gives what the NumPy encoder gives, at any batch and length."""

import numpy as np
import onnx
import pytest
from models import bert, bert_numpy

TINY = bert.BertShape(n_layers=2, n_heads=2, hidden=8, intermediate=16, vocabulary=40, positions=12)


def tokens(batch: int, seq: int, seed: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    mask = np.ones((batch, seq), np.int64)
    mask[0, seq // 2 :] = 0
    return {
        "input_ids": rng.integers(0, 40, (batch, seq)),
        "attention_mask": mask,
        "token_type_ids": rng.integers(0, 2, (batch, seq)),
    }


@pytest.mark.parametrize("batch, seq", [(1, 5), (3, 12)])
def test_sentence_encoder_equals_numpy(run, batch, seq):
    weights = bert.random_weights(TINY, seed=3)
    inputs = tokens(batch, seq)

    got = run(bert.sentence_encoder(TINY, weights).model(), inputs)[0]

    expected = bert_numpy.embed(TINY, weights, **inputs, erf=bert_numpy.exact_erf)
    np.testing.assert_allclose(got, expected, atol=2e-6)
    np.testing.assert_allclose(np.linalg.norm(got, axis=1), 1, atol=1e-5)


def test_token_encoder_equals_numpy(run):
    weights = bert.random_weights(TINY, seed=4)
    inputs = tokens(2, 7)

    got = run(bert.token_encoder(TINY, weights).model(), inputs)[0]

    expected = bert_numpy.encode(TINY, weights, **inputs, erf=bert_numpy.exact_erf)
    np.testing.assert_allclose(got, expected, atol=1e-5)


def test_padding_does_not_change_a_sentence(run):
    model = bert.sentence_encoder(TINY, bert.random_weights(TINY, seed=5)).model()
    short = tokens(1, 4)
    short["attention_mask"][:] = 1
    padded = {key: np.pad(value, ((0, 0), (0, 6))) for key, value in short.items()}

    np.testing.assert_allclose(run(model, short)[0], run(model, padded)[0], atol=1e-5)


def test_the_model_is_standard_onnx_with_gelu_in_pieces():
    model = bert.sentence_encoder(TINY, bert.random_weights(TINY, seed=6)).model()

    onnx.checker.check_model(model, full_check=True)
    kinds = [node.op_type for node in model.graph.node]
    assert kinds.count("Erf") == TINY.n_layers
    assert kinds.count("LayerNormalization") == 2 * TINY.n_layers + 1
    assert [opset.version for opset in model.opset_import] == [17]


def test_fast_erf_is_close_to_the_exact_one():
    x = np.linspace(-5, 5, 1001, dtype=np.float32)

    np.testing.assert_allclose(bert_numpy.erf(x), bert_numpy.exact_erf(x), atol=3e-7)
