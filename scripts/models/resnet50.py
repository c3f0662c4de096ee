# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 v1.5 (He et al., 2016; v1.5 has the stride in the 3x3 convolution), random weights."""

from models.cnn import ProbedCnn
from models.output import Output

# (bottleneck width, blocks, stride of the first block)
STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))


def block(net: ProbedCnn, x: str, name: str, width: int, stride: int, project: bool) -> str:
    shortcut = x
    if project:
        shortcut = net.conv(x, f"{name}.downsample.conv", 4 * width, 1, stride)
        shortcut = net.norm(shortcut, f"{name}.downsample.bn")
    y = net.relu(net.norm(net.conv(x, f"{name}.conv1", width, 1), f"{name}.bn1"), f"{name}.relu1")
    y = net.conv(y, f"{name}.conv2", width, 3, stride)
    y = net.relu(net.norm(y, f"{name}.bn2"), f"{name}.relu2")
    y = net.norm(net.conv(y, f"{name}.conv3", 4 * width, 1), f"{name}.bn3", gain=0.5)
    return net.relu(net.add(y, shortcut, f"{name}.sum"), f"{name}.relu3")


def network(seed: int, size: int = 224, stages=STAGES, n_classes: int = 1000) -> ProbedCnn:
    net = ProbedCnn("resnet50", seed, size)
    x = net.relu(net.norm(net.conv("image", "conv1", 64, 7, 2), "bn1"), "relu1")
    x = net.max_pool(x, "maxpool")
    for stage, (width, n_blocks, stride) in enumerate(stages, start=1):
        for index in range(n_blocks):
            name = f"layer{stage}.{index}"
            x = block(net, x, name, width, stride if index == 0 else 1, project=index == 0)
    net.classify(x, n_classes)
    return net


def build(output: Output, seed=12) -> None:
    net = network(seed)
    output.say(
        f"resnet50.onnx: random weights, seed {seed}, logits sd {net.values['logits'].std():.2f}"
    )
    output.put_model("resnet50.onnx", net.graph.model())
