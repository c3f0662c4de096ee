# SPDX-License-Identifier: Apache-2.0
"""A residual network for small images (He et al. 2016; blocks=3: ResNet-20), trained on an npz file
with fields image and label:    python resnet.py DATA.npz OUT.onnx [EPOCHS]"""

import sys

import tenon as tn
from tenon import nn


def conv(width, kernel=3, stride=1):
    he = nn.init.he(mode="fan_out")
    return nn.Conv(width, kernel, stride=stride, padding=kernel // 2, bias=False, init=he)


def block(width, stride=1):
    body = [conv(width, 3, stride), nn.BatchNorm(), tn.relu, conv(width), nn.BatchNorm()]
    shortcut = nn.Sequential(conv(width, 1, stride), nn.BatchNorm()) if stride > 1 else None
    return nn.Residual(nn.Sequential(*body), shortcut, tn.relu)


def network(classes, width=16, blocks=3):
    layers = [conv(width), nn.BatchNorm(), tn.relu]
    for stage in range(3):
        layers += [block(width << stage, 2 if stage and not i else 1) for i in range(blocks)]
    return nn.Sequential(*layers, nn.GlobalAvgPool(), nn.Linear(classes))


if __name__ == "__main__":
    data = tn.data.npz(sys.argv[1])
    epochs = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    model = nn.build(network(classes=10), {"image": ("N", *data.fields[0]["shape"])})
    rate = tn.schedule.cosine(base=0.1, warmup=20)
    sgd = tn.optim.sgd(lr=rate, momentum=0.9, nesterov=True, weight_decay=5e-4)
    model = tn.train(model, data, epochs=epochs, batch=64, optimizer=sgd)
    print(*(epoch["loss"] for epoch in model.report["history"]))
    model.save(sys.argv[2])
