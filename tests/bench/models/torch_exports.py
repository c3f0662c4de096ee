# SPDX-License-Identifier: Apache-2.0
"""Networks of torch, torchvision and timm with seeded weights, exported once each by each exporter.

One network is one row of NETS. Files go to the folder of caches and are made when absent.
"""

import logging
import os
import pathlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

SEED = 17
OPSET = 18
EXPORTERS = ("script", "dynamo")


@dataclass(frozen=True)
class Net:
    """How a network is made and exported; moving: {input: {axis: name of its size}}."""

    make: Callable
    inputs: Callable
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    moving: dict = field(default_factory=dict)


def vision(name: str, size: int = 224, **options) -> Net:
    def make():
        import torchvision

        return torchvision.models.get_model(name, weights=None, **options)

    return image_net(make, size)


def of_timm(name: str, size: int = 224) -> Net:
    def make():
        import timm

        return timm.create_model(name, pretrained=False)

    return image_net(make, size)


def image_net(make: Callable, size: int) -> Net:
    return Net(make, lambda n: [images(n, size)], ("image",), ("logits",))


def images(n: int, size: int):
    """Smooth random images: noise alone would look the same to every convolution."""
    import torch

    coarse = torch.randn(n, 3, size // 16 + 1, size // 16 + 1)
    smooth = torch.nn.functional.interpolate(coarse, size=(size, size), mode="bilinear")
    return smooth + 0.2 * torch.randn(n, 3, size, size)


def own(name: str, **options) -> Callable:
    def make():
        import torch_nets

        return getattr(torch_nets, name)(**options)

    return make


def series(n: int):
    import torch

    return [torch.randn(64, n, 32)]


def words(n: int):
    import torch

    return [torch.randint(0, 50257, (n, 16))]


def words_and_past(n: int):
    import torch

    return [torch.randint(0, 50257, (n, 3)), torch.randn(12, 2, n, 12, 5, 64)]


NETS = {
    "resnet50": vision("resnet50"),
    "mobilenet_v2": vision("mobilenet_v2"),
    "mobilenet_v3": vision("mobilenet_v3_large"),
    "efficientnet_b0": vision("efficientnet_b0"),
    "convnext_t": vision("convnext_tiny"),
    "vit_s": of_timm("vit_small_patch16_224"),
    "swin_t": vision("swin_t"),
    "regnet": vision("regnet_y_800mf"),
    "densenet121": vision("densenet121"),
    "inception_v3": vision("inception_v3", 299, init_weights=False, aux_logits=False),
    "shufflenet_v2": vision("shufflenet_v2_x1_0"),
    "squeezenet": vision("squeezenet1_1"),
    "vgg16": vision("vgg16"),
    "unet": Net(own("UNet"), lambda n: [images(n, 256)], ("image",), ("mask",)),
    "lstm": Net(own("Lstm"), series, ("series",), ("scores",)),
    "gpt2": Net(
        own("Gpt2"), words, ("input_ids",), ("logits",), {"input_ids": {0: "batch", 1: "length"}}
    ),
    "gpt2_cached": Net(
        own("Gpt2Cached"),
        words_and_past,
        ("input_ids", "past"),
        ("logits", "present"),
        {"input_ids": {1: "length"}, "past": {4: "past_length"}},
    ),
}


def run_in(model, net: Net) -> None:
    """Statistics of normalization that fit the weights, as training would have left them."""
    import torch

    norms = [m for m in model.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    if norms:
        for norm in norms:
            norm.momentum = None  # the mean over all that follows
        model.train()
        with torch.no_grad():
            for _ in range(2):
                model(*net.inputs(4))
    model.eval()


def write(model, net: Net, exporter: str, path: pathlib.Path) -> None:
    import torch

    names = dict(input_names=list(net.input_names), output_names=list(net.output_names))
    arguments = tuple(net.inputs(1))
    if exporter == "script":
        torch.onnx.export(
            model,
            arguments,
            str(path),
            dynamo=False,
            opset_version=OPSET,
            dynamic_axes=net.moving,
            **names,
        )
        return
    sizes = None
    if net.moving:
        sizes = tuple(
            {axis: torch.export.Dim.DYNAMIC for axis in net.moving.get(name, {})}
            for name in net.input_names
        )
    torch.onnx.export(
        model,
        arguments,
        str(path),
        dynamo=True,
        dynamic_shapes=sizes,
        external_data=False,
        verbose=False,
        **names,
    )


def obtain(name: str, exporter: str, folder: pathlib.Path) -> pathlib.Path:
    """The file of one network by one exporter; made when it is not there."""
    path = folder / f"{name}_{exporter}.onnx"
    if path.exists():
        return path
    import torch

    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    folder.mkdir(parents=True, exist_ok=True)
    net = NETS[name]
    torch.manual_seed(SEED)
    np.random.seed(SEED)
    model = net.make()
    run_in(model, net)
    scratch = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        with torch.no_grad():
            write(model, net, exporter, scratch)
        os.replace(scratch, path)
    finally:
        scratch.unlink(missing_ok=True)
    return path
