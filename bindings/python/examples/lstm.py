# SPDX-License-Identifier: Apache-2.0
"""An LSTM that classifies series, trained on an npz file with fields series [steps, channels] and
label:    python lstm.py DATA.npz OUT.onnx [EPOCHS]"""

import sys

import tenon as tn
from tenon import nn


class Classifier(nn.Module):
    def __init__(self, classes, hidden=32):
        self.lstm = nn.LSTM(hidden, layers=2, bidirectional=True, dropout=0.1)
        self.head = nn.Linear(classes)

    def forward(self, series):
        return self.head(self.lstm(series).mean(1))


if __name__ == "__main__":
    data = tn.data.npz(sys.argv[1])
    epochs = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    model = nn.build(Classifier(classes=3), {"series": ("N", *data.fields[0]["shape"])})
    adamw = tn.optim.adamw(lr=tn.schedule.cosine(base=1e-2, warmup=10))
    model = tn.train(model, data, epochs=epochs, batch=16, optimizer=adamw, clip_norm=1)
    print(*(epoch["loss"] for epoch in model.report["history"]))
    model.save(sys.argv[2])
