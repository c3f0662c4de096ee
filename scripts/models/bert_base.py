# SPDX-License-Identifier: Apache-2.0
"""A BERT-base encoder with seeded random weights: for speed, not for answers."""

from models import bert
from models.output import Output


def build(output: Output, seed=11) -> None:
    graph = bert.token_encoder(bert.BERT_BASE, bert.random_weights(bert.BERT_BASE, seed))
    output.say(f"bert_base.onnx: random weights, seed {seed}")
    output.put_model("bert_base.onnx", graph.model())
