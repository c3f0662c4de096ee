# SPDX-License-Identifier: Apache-2.0
"""A BERT-base encoder with seeded random weights: for speed, not for answers."""

from models import bert
from models.place import Place


def build(place: Place, seed=11) -> None:
    graph = bert.token_encoder(bert.BERT_BASE, bert.random_weights(bert.BERT_BASE, seed))
    place.say(f"bert_base.onnx: random weights, seed {seed}")
    place.put_model("bert_base.onnx", graph.model())
