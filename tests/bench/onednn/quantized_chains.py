# SPDX-License-Identifier: Apache-2.0
"""Short chains of quantized operators, and operators on integers, for quantized_operators.py."""

from collections.abc import Iterator

import numpy as np
from quantized_cases import IMAGE, TEXT, WEIGHT_SCALE, Case, Net, Stored

SAME = {"pads": [1, 1, 1, 1]}


def conv_add_relu(net: Net, a: str) -> str:
    first = net.between(net.inside("Relu", net.conv(a, (64, 64, 3, 3), **SAME)))
    second = net.between(net.conv(first, (64, 64, 3, 3), **SAME))
    return net.inside("Relu", net.inside("Add", second, a))


def matmul_gelu(net: Net, a: str) -> str:
    hidden = net.between(net.inside("MatMul", a, net.weight((384, 1536), 1)))
    hidden = net.op("Gelu", net.op("Add", hidden, net.between(net.constant(np.ones(1536, "f")))))
    return net.inside("MatMul", hidden, net.weight((1536, 384), 1))


def attention(net: Net, a: str) -> str:
    heads = []
    for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
        one = net.between(net.inside("MatMul", a, net.weight((384, 384), 1)))
        one = net.inside("Reshape", one, net.constant(np.array([1, 128, 12, 32])))
        heads.append(net.op("Transpose", net.between(one), perm=perm))
    scores = net.op("Softmax", net.op("MatMul", heads[0], heads[1]), axis=-1)
    mixed = net.op("Transpose", net.op("MatMul", scores, heads[2]), perm=[0, 2, 1, 3])
    mixed = net.between(net.inside("Reshape", mixed, net.constant(np.array([1, 128, 384]))))
    return net.inside("MatMul", mixed, net.weight((384, 384), 1))


def conv_concat_conv(net: Net, a: str) -> str:
    parts = [net.between(net.conv(a, (32, 64, 1, 1))) for _ in range(3)]
    return net.conv(net.op("Concat", *parts, axis=1), (64, 96, 3, 3), **SAME)


def split_conv(net: Net, a: str) -> str:
    whole = net.between(net.conv(a, (64, 64, 1, 1)))
    left, right = (net.between(one) for one in net.node("Split", whole, n=2, axis=1, num_outputs=2))
    return net.inside("Add", net.between(net.conv(left, (32, 32, 3, 3), **SAME)), right)


def conv_resize_conv(net: Net, a: str, mode: str = "nearest") -> str:
    small = net.between(net.conv(a, (32, 64, 1, 1)))
    large = net.op("Resize", small, "", net.constant(np.array([1, 1, 2, 2], "f")), mode=mode)
    return net.conv(large, (32, 32, 3, 3), **SAME)


def pool_behind_conv(net: Net, a: str, op: str = "MaxPool") -> str:
    first = net.between(net.inside("Relu", net.conv(a, (64, 64, 3, 3), **SAME)))
    pooled = net.op(op, first, kernel_shape=[2, 2], strides=[2, 2])
    return net.conv(pooled, (128, 64, 3, 3), **SAME)


def depthwise_pointwise(net: Net, a: str, act: str = "Relu") -> str:
    wide = net.op(act, net.between(net.conv(a, (96, 64, 1, 1))))
    deep = net.op(act, net.between(net.conv(wide, (96, 1, 3, 3), group=96, **SAME)))
    return net.inside("Add", net.between(net.conv(deep, (64, 96, 1, 1))), a)


def squeeze_excite(net: Net, a: str) -> str:
    mean = net.op("GlobalAveragePool", a)
    small = net.between(net.inside("Relu", net.conv(mean, (16, 64, 1, 1))))
    gate = net.op("Sigmoid", net.between(net.conv(small, (64, 16, 1, 1))))
    return net.conv(net.op("Mul", a, gate), (64, 64, 1, 1))


def swish_conv(net: Net, a: str) -> str:
    first = net.between(net.conv(a, (64, 64, 1, 1)))
    swish = net.op("Mul", first, net.op("Sigmoid", first))
    return net.conv(swish, (64, 64, 3, 3), **SAME)


def norm_between(net: Net, a: str) -> str:
    first = net.op("Add", net.between(net.inside("MatMul", a, net.weight((384, 384), 1))), a)
    norm = net.op("LayerNormalization", first, net.constant(np.ones(384, "f")))
    return net.inside("MatMul", norm, net.weight((384, 384), 1))


def gather_matmul(net: Net, a: str) -> str:
    rows = net.between(net.inside("Gather", net.weight((1000, 384), 0), a))
    return net.inside("MatMul", rows, net.weight((384, 384), 1))


def classifier(net: Net, a: str) -> str:
    mean = net.op("GlobalAveragePool", a)
    flat = net.op("Flatten", mean)
    return net.inside("Gemm", flat, net.weight((1000, 64), 0), net.bias(1000), transB=1)


def shuffled(net: Net, a: str) -> str:
    first = net.between(net.conv(a, (64, 64, 1, 1)))
    parts = net.op("Reshape", first, net.constant(np.array([1, 2, 32, 56, 56])))
    mixed = net.op("Transpose", parts, perm=[0, 2, 1, 3, 4])
    whole = net.op("Reshape", mixed, net.constant(np.array([1, 64, 56, 56])))
    return net.conv(whole, (64, 1, 3, 3), group=64, **SAME)


def chains() -> Iterator[Case]:
    for build in (
        conv_add_relu,
        conv_concat_conv,
        split_conv,
        conv_resize_conv,
        pool_behind_conv,
        depthwise_pointwise,
        squeeze_excite,
        swish_conv,
        classifier,
        shuffled,
    ):
        yield Case(build.__name__, [IMAGE], build)
    yield Case("conv_linear_conv", [IMAGE], lambda net, a: conv_resize_conv(net, a, "linear"))
    yield Case("mean_behind_conv", [IMAGE], lambda net, a: pool_behind_conv(net, a, "AveragePool"))
    yield Case("depthwise_swish", [IMAGE], lambda net, a: depthwise_pointwise(net, a, "HardSwish"))
    for build in (matmul_gelu, attention, norm_between):
        yield Case(build.__name__, [TEXT], build)
    yield Case("gather_matmul", [(128,)], gather_matmul, whole=(0,), highest=1000)


def weights(net: Net, shape: tuple) -> np.ndarray:
    return net.random.integers(-127, 128, shape).astype(np.int8)


def floats(net: Net, shape: tuple) -> str:
    return net.constant(weights(net, shape).astype("f") * np.float32(WEIGHT_SCALE))


def grids(net: Net, n: int) -> list[str]:
    return [name for _ in range(n) for name in net.grid()]


def stored_conv(net: Net, a: str, shape: tuple, **attributes: object) -> str:
    zero = net.constant(np.zeros(shape[0], np.int8))
    scale = net.constant(np.full(shape[0], WEIGHT_SCALE, "f"))
    w = net.constant(weights(net, shape))
    return net.node("QLinearConv", a, *net.grid(), w, scale, zero, *net.grid(), **attributes)[0]


def stored_product(net: Net, a: str, k: int, n: int) -> str:
    b = [net.constant(weights(net, (k, n))), net.constant(np.float32(WEIGHT_SCALE))]
    b.append(net.constant(np.int8(0)))
    return net.node("QLinearMatMul", a, *net.grid(), *b, *net.grid())[0]


def dynamic_product(net: Net, a: str, k: int, n: int) -> str:
    x, scale, zero = net.node("DynamicQuantizeLinear", a, n=3)
    b = net.constant(weights(net, (k, n)))
    whole = net.inside("MatMulInteger", x, b, zero, net.constant(np.int8(0)))
    factor = net.inside("Mul", scale, net.constant(np.float32(WEIGHT_SCALE)))
    return net.inside("Mul", net.inside("Cast", whole, to=1), factor)


def dynamic_conv(net: Net, a: str) -> str:
    x, scale, zero = net.node("DynamicQuantizeLinear", a, n=3)
    w = net.constant(weights(net, (64, 64, 3, 3)))
    whole = net.inside("ConvInteger", x, w, zero, net.constant(np.int8(0)), pads=[1] * 4)
    factor = net.inside("Mul", scale, net.constant(np.float32(WEIGHT_SCALE)))
    return net.inside("Mul", net.inside("Cast", whole, to=1), factor)


def microsoft(net: Net, op: str, *inputs: str, **attributes: object) -> str:
    return net.node(op, *inputs, domain="com.microsoft", **attributes)[0]


def dynamic_forms() -> Iterator[Case]:
    for m, k, n in ((1, 384, 1536), (7, 384, 384), (128, 384, 1536), (1000, 256, 256)):
        made = (
            (lambda net, a, k=k, n=n: dynamic_product(net, a, k, n)),
            (lambda net, a, k=k, n=n: net.inside("MatMul", a, floats(net, (k, n)))),
        )
        extra = {"dynamic": True}
        name = f"{m}x{k} {k}x{n}"
        yield Stored(
            f"MatMulInteger {name}", [(m, k)], made[0], floats=made[1], extra=extra, forms=("u8",)
        )

        def fused(net: Net, a: str, k: int = k, n: int = n) -> str:
            b = net.constant(weights(net, (k, n)))
            scale = net.constant(np.full(n, WEIGHT_SCALE, "f"))
            return microsoft(net, "DynamicQuantizeMatMul", a, b, scale)

        yield Stored(
            f"DynamicQuantizeMatMul {name}",
            [(m, k)],
            fused,
            floats=made[1],
            extra=extra,
            forms=("u8",),
        )
    yield Stored(
        "ConvInteger 64x56x56 64x64x3x3",
        [IMAGE],
        dynamic_conv,
        floats=lambda net, a: net.inside("Conv", a, floats(net, (64, 64, 3, 3)), pads=[1] * 4),
        extra={"dynamic": True},
        forms=("u8",),
    )


def stored() -> Iterator[Case]:
    for x, w, attributes in (
        (IMAGE, (64, 64, 3, 3), SAME),
        (IMAGE, (64, 1, 3, 3), {"group": 64, **SAME}),
        ((1, 3, 224, 224), (32, 3, 3, 3), {"strides": [2, 2], **SAME}),
        ((1, 80, 1000), (256, 80, 3), {}),
    ):
        yield Stored(
            f"QLinearConv {x} {w} {attributes}",
            [x],
            lambda net, a, w=w, at=attributes: stored_conv(net, a, w, **at),
            floats=lambda net, a, w=w, at=attributes: net.inside("Conv", a, floats(net, w), **at),
        )
    for m in (1, 128):
        yield Stored(
            f"QLinearMatMul {m}x384 384x1536",
            [(m, 384)],
            lambda net, a: stored_product(net, a, 384, 1536),
            floats=lambda net, a: net.inside("MatMul", a, floats(net, (384, 1536))),
        )
    for op in ("Add", "Mul"):
        for b in (IMAGE, (1, 64, 1, 1)):
            yield Stored(
                f"QLinear{op} {b}",
                [IMAGE, b],
                lambda net, x, y, op=op: microsoft(
                    net, f"QLinear{op}", x, *net.grid(), y, *net.grid(), *net.grid()
                ),
                floats=lambda net, x, y, op=op: net.inside(op, x, y),
            )
    for op in ("Sigmoid", "LeakyRelu", "GlobalAveragePool"):
        extra = {"channels_last": 0} if op == "GlobalAveragePool" else {}
        yield Stored(
            f"QLinear{op}",
            [IMAGE],
            lambda net, a, op=op, extra=extra: microsoft(
                net, f"QLinear{op}", a, *grids(net, 2), **extra
            ),
            floats=lambda net, a, op=op: net.inside(op, a),
        )
    yield from dynamic_forms()


FAMILIES = {"chains": chains, "stored": stored}
