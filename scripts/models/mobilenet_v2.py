# SPDX-License-Identifier: Apache-2.0
"""MobileNetV2 1.0 (Sandler et al., 2018, table 2), random weights."""

from models.cnn import ProbedCnn
from models.output import Output

# (expansion, output channels, blocks, stride of the first block)
STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def unit(net: ProbedCnn, x: str, name: str, n_out: int, kernel: int, stride=1, groups=1) -> str:
    """Convolution, normalization, ReLU6."""
    y = net.conv(x, f"{name}.conv", n_out, kernel, stride, groups)
    return net.relu6(net.norm(y, f"{name}.bn"), f"{name}.relu6")


def block(net: ProbedCnn, x: str, name: str, expansion: int, n_out: int, stride: int) -> str:
    n_in = net.values[x].shape[1]
    hidden = n_in * expansion
    y = unit(net, x, f"{name}.expand", hidden, 1) if expansion > 1 else x
    y = unit(net, y, f"{name}.depthwise", hidden, 3, stride, groups=hidden)
    y = net.norm(net.conv(y, f"{name}.project", n_out, 1), f"{name}.bn")
    if stride == 1 and n_in == n_out:
        return net.add(x, y, f"{name}.sum")
    return y


def network(seed: int, size: int = 224, stages=STAGES, n_classes: int = 1000) -> ProbedCnn:
    net = ProbedCnn("mobilenet_v2", seed, size)
    x = unit(net, "image", "stem", 32, 3, 2)
    count = 0
    for expansion, n_out, n_blocks, stride in stages:
        for index in range(n_blocks):
            count += 1
            x = block(net, x, f"block{count}", expansion, n_out, stride if index == 0 else 1)
    x = unit(net, x, "head", 1280, 1)
    net.classify(x, n_classes)
    return net


def build(output: Output, seed=13) -> None:
    net = network(seed)
    spread = net.values["logits"].std()
    output.say(f"mobilenet_v2.onnx: random weights, seed {seed}, logits sd {spread:.2f}")
    output.put_model("mobilenet_v2.onnx", net.graph.model())
