# SPDX-License-Identifier: Apache-2.0
"""A U-Net that says of each pixel what it shows (Ronneberger et al. 2015), trained on an npz file
with fields image [1, h, w] and mask [h, w]:    python unet.py DATA.npz OUT.onnx EPOCHS"""

import sys

import tenon as tn
from tenon import nn


def double(width):
    convs = [nn.Conv(width, 3, padding=1, bias=False) for _ in "ab"]
    return nn.Sequential(convs[0], nn.BatchNorm(), tn.relu, convs[1], nn.BatchNorm(), tn.relu)


class UNet(nn.Module):
    def __init__(self, classes, width=16, depth=2):
        self.down, self.join = ([double(width << i) for i in range(depth)] for _ in "ab")
        self.up = [nn.Conv(width << i, 2, stride=2, transposed=True) for i in range(depth)]
        self.bottom, self.head = double(width << depth), nn.Conv(classes, 1)

    def forward(self, x):
        kept = []
        for down in self.down:
            kept.append(down(x))
            x = tn.max_pool(kept[-1], 2)
        x = self.bottom(x)
        for up, join, skip in reversed(list(zip(self.up, self.join, kept))):
            x = join(tn.concat([skip, up(x)], axis=1))
        return self.head(x)


if __name__ == "__main__":
    data = tn.data.npz(sys.argv[1])
    model = nn.build(UNet(2), {"image": ("N", *data.fields[0]["shape"])})
    adamw = tn.optim.adamw(lr=3e-3)
    model = tn.train(model, data, epochs=int(sys.argv[3]), batch=8, optimizer=adamw)
    print(*(epoch["loss"] for epoch in model.report["history"]))
    model.save(sys.argv[2])
