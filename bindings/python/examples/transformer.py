# SPDX-License-Identifier: Apache-2.0
"""A transformer that says the next character (GPT-2's blocks), trained on an npz file with fields
token and next, integers [steps]:    python transformer.py DATA.npz OUT.onnx [EPOCHS]"""

import sys

import tenon as tn
from tenon import nn


def block(width, heads):
    attention = [nn.LayerNorm(), nn.MultiHeadAttention(heads, causal=True), nn.Dropout(0.1)]
    hidden = [nn.LayerNorm(), nn.Linear(4 * width), tn.gelu, nn.Linear(width), nn.Dropout(0.1)]
    parts = [nn.Residual(nn.Sequential(*attention)), nn.Residual(nn.Sequential(*hidden))]
    return nn.Sequential(*parts)


class Transformer(nn.Module):
    def __init__(self, symbols, steps, width=64, heads=4, blocks=2):
        small = nn.init.normal(deviation=0.02)
        self.token = nn.Embedding(symbols, width, init=small)
        self.position = nn.Parameter([steps, width], init=small)
        self.blocks = nn.Sequential(*[block(width, heads) for _ in range(blocks)])
        self.norm, self.head = nn.LayerNorm(), nn.Linear(symbols, bias=False)

    def forward(self, token):
        return self.head(self.norm(self.blocks(self.token(token) + self.position())))


if __name__ == "__main__":
    data, steps = tn.data.npz(sys.argv[1]), 32
    epochs = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    model = nn.build(Transformer(64, steps), {"token": nn.Input(("N", steps), "int64")})
    adamw = tn.optim.adamw(lr=tn.schedule.cosine(base=3e-3, warmup=20), no_decay=["position"])
    loss = tn.loss.cross_entropy(axis=-1)
    model = tn.train(model, data, epochs=epochs, batch=16, loss=loss, optimizer=adamw, clip_norm=1)
    print(*(epoch["loss"] for epoch in model.report["history"]))
    model.save(sys.argv[2])
