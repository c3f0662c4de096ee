# SPDX-License-Identifier: Apache-2.0
"""A call of every function of the table, and what NumPy gives for it: name, arguments, oracle."""

import math
import statistics

import numpy as np

A = np.float32([[0.5, -1.25, 2.0], [-0.75, 1.5, -3.0]])
B = np.float32([[2.0, 1.0, -0.5], [4.0, -2.0, 1.0]])
UNIT = np.float32([-0.75, 0.0, 0.5])
ABOVE = np.float32([0.25, 1.0, 9.0])
WHOLE = np.int64([[3, 0, 5], [2, 3, 1]])
FEW = np.int64([[1, 2, 0], [3, 1, 1]])
TRUE = np.array([[True, False, True], [False, True, True]])
EDGES = np.float32([math.inf, -math.inf, math.nan, 0.0, -0.0, -1.5])
ORDERED = np.float32([-1.0, 0.0, 2.0, 5.0])
WITH_NAN = np.float32([-1.0, 2.0, math.nan, math.nan])
BYTES, PLACES = np.mgrid[-127:128:18, 0:11].reshape(2, -1)
IMAGE = np.arange(32, dtype="float32").reshape(1, 2, 4, 4) % 7 - 3
KERNEL = np.arange(24, dtype="float32").reshape(3, 2, 2, 2) % 5 - 2

SQUARE = np.float32([[4.0, -1.0, 0.5], [2.0, 3.0, -1.5], [0.0, 1.0, -2.0]])
DEFINITE = np.float32([[4.0, 1.0, -0.5], [1.0, 3.0, 0.25], [-0.5, 0.25, 2.0]])
WAVE = np.float32([[0.5, -1.0, 2.0, 0.25, -0.75], [1.0, 0.0, -2.0, 1.5, 0.5]])

erf = np.vectorize(math.erf, otypes=["float32"])
lgamma = np.vectorize(math.lgamma, otypes=["float64"])
normal_quantile = np.vectorize(statistics.NormalDist().inv_cdf, otypes=["float64"])
GAMMA = 0.5772156649015329
POLES = np.float64([0.0, -0.0, -1.0, -1e20])  # as torch and SciPy have them
QUARTERS = np.float64([0.25, 0.5, 0.75, 1, 2, 11])  # where digamma has closed forms


def digamma(_):
    half_pi, log2 = math.pi / 2, math.log(2)
    sums = [0, 1, sum(1 / i for i in range(1, 11))]
    ends = [-half_pi - 3 * log2, -2 * log2, half_pi - 3 * log2, *sums]
    return np.float64(ends) - GAMMA


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis=-1):
    made = np.exp(x - x.max(axis, keepdims=True))
    return made / made.sum(axis, keepdims=True)


def windows(x, size):
    return np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))


def conv(x, weight, bias, stride):
    wide = windows(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), 2)[:, :, ::stride, ::stride]
    return np.einsum("bchwij,mcij->bmhw", wide, weight) + bias[:, None, None]


def layer_norm(x, scale, bias):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale + bias


def unique(*more):
    return lambda x: np.unique(x, **dict.fromkeys(more, True))


def uniform(shape, *_):
    return lambda x: x.shape == tuple(shape) and (0 <= x).all() and (x < 1).all() and x.std() > 0.2


def normal(shape, *_):
    return lambda x: x.shape == tuple(shape) and abs(x.mean()) < 0.3 and 0.7 < x.std() < 1.3


def dropped(x, ratio, _):
    kept = x / (1 - ratio)
    return lambda y: (np.isclose(y, 0) | np.isclose(y, kept)).all() and 0 < (y == 0).mean() < 1


def of_shape(shape):
    return lambda x: x.shape == tuple(shape)


def pairs(z):
    return np.stack([z.real, z.imag], -1).astype("float32")


def complex_of(x):
    return x[..., 0] + 1j * x[..., 1]


def of_pairs(f):  # f of complex numbers and more, for pairs and to them
    def called(x, *args, **named):
        made = f(complex_of(x), *args, **named)
        return pairs(made) if np.iscomplexobj(made) else made.astype("float32")

    return called


def to_pairs(f):
    return lambda x, *args, **named: pairs(f(x, *args, **named))


def rebuilds(x):  # U, S, Vh or Q, R or values, vectors, whose signs are free
    def agrees(*made):
        first, last = made[0], made[-1]
        inner = np.eye(first.shape[-1]) if len(made) == 2 else np.zeros((len(first), len(last)))
        if len(made) == 3:
            inner[: len(made[1]), : len(made[1])] = np.diag(made[1])
        return np.allclose(first @ inner @ last, x, atol=1e-5) and np.allclose(
            first.T @ first, np.eye(first.shape[1]), atol=1e-5
        )

    return agrees


def of_eigenvectors(x):
    return lambda w, v: (
        np.allclose(w, np.linalg.eigvalsh(x), atol=1e-5) and np.allclose(x @ v, v * w, atol=1e-5)
    )


def float32(f):
    return lambda *args, **named: np.asarray(f(*args, **named), "float32")


def by_order(norm):  # "inf" is a text where numbers of options are finite
    def called(x, ord, **named):
        return np.float32(norm(x, ord=float(ord) if str(ord).endswith("inf") else ord, **named))

    return called


# name, arguments (a dict at the end: by name), oracle: NumPy's arrays, or a check of the result.
CASES = [
    *(
        (name, (A,), getattr(np, name))
        for name in "abs ceil cos cosh exp floor isinf isnan".split()
    ),
    *((name, (A,), getattr(np, name)) for name in "negative positive sign signbit sin".split()),
    *((name, (A,), getattr(np, name)) for name in "sinh square tan tanh trunc round".split()),
    *((name, (UNIT,), getattr(np, name)) for name in "acos asin asinh atan atanh expm1".split()),
    *((name, (ABOVE,), getattr(np, name)) for name in "log log10 log1p log2 sqrt".split()),
    *((name, (EDGES,), getattr(np, name)) for name in "isfinite isinf isnan signbit".split()),
    *(
        (name, (A, B), getattr(np, name))
        for name in "add atan2 copysign divide floor_divide hypot logaddexp maximum minimum".split()
    ),
    *((name, (A, B), getattr(np, name)) for name in "multiply remainder subtract".split()),
    *(
        (name, (WHOLE, FEW), getattr(np, name))
        for name in "bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift "
        "equal greater greater_equal less less_equal not_equal pow".split()
    ),
    *((n, (TRUE, WHOLE), getattr(np, n)) for n in "logical_and logical_or logical_xor add".split()),
    *(
        (f"bitwise_{where}_shift", (np.int8(BYTES), np.int8(PLACES)), shift)
        for where, shift in (("left", np.left_shift), ("right", np.right_shift))
    ),
    ("bitwise_right_shift", (np.int64([7, -7, 2**40]), 63), np.right_shift),
    ("bitwise_left_shift", (np.uint8([1, 255]), 9), np.left_shift),
    ("acosh", (ABOVE + 1,), np.acosh),
    ("add", (WHOLE, 2.5), lambda x, y: (x + y).astype("float32")),
    ("logical_not", (WHOLE,), np.logical_not),
    ("bitwise_invert", (WHOLE,), np.bitwise_invert),
    ("digamma", (QUARTERS,), digamma),
    ("digamma", (POLES,), lambda x: np.float64([-math.inf, math.inf, math.nan, math.nan])),
    ("erf", (A,), erf),
    ("erfc", (np.float64([-3, 0.5, 2.4, 2.6, 9, 26]),), np.vectorize(math.erfc)),
    ("erfinv", (np.float64(UNIT),), lambda x: normal_quantile((x + 1) / 2) / 2**0.5),
    ("lgamma", (np.float64([-1.25, 0.25, 1.5, 9]),), lgamma),
    ("gelu", (A,), lambda x: x * (1 + erf(x / np.float32(2**0.5))) / 2),
    ("reciprocal", (A,), lambda x: 1 / x),
    ("relu", (A,), lambda x: np.maximum(x, 0)),
    ("relu6", (A * 4,), lambda x: np.clip(x, 0, 6)),
    ("rsqrt", (ABOVE,), lambda x: 1 / np.sqrt(x)),
    ("sigmoid", (A,), sigmoid),
    ("silu", (A,), lambda x: x * sigmoid(x)),
    ("softplus", (A,), lambda x: np.log1p(np.exp(x))),
    ("pow", (A, 2), np.pow),
    ("clip", (A, -1, 1), np.clip),
    ("clip", (A, {"max": 0.5}), lambda x, max: np.minimum(x, np.float32(max))),
    ("where", (TRUE, A, 0), lambda c, a, b: np.where(c, a, np.float32(b))),
    ("astype", (A, "int32"), lambda x, dtype: x.astype(dtype)),
    ("argmax", (A, 1, True), lambda x, axis, keep: np.argmax(x, axis, keepdims=keep)),
    ("argmin", (WHOLE,), np.argmin),
    ("argmax", (A, {"keepdims": True}), np.argmax),
    ("cumulative_prod", (WHOLE, 1), lambda x, axis: np.cumprod(x, axis)),
    ("cumulative_sum", (TRUE, 1), lambda x, axis: np.cumsum(x, axis)),
    *(
        (name, (WHOLE, 1), getattr(np, name))
        for name in "all any max min prod sum count_nonzero".split()
    ),
    ("sum", (A,), np.sum),
    ("mean", (WHOLE, (0, 1)), lambda x, axis: np.float32(np.mean(x, axis))),
    ("var", (A, 0, {"correction": 1}), np.var),
    ("std", (A, -1, {"keepdims": True}), np.std),
    ("std", (A, 0, {"correction": 7}), lambda x, axis, correction: np.full(3, np.inf, "f")),
    ("logsumexp", (A, 1), lambda x, axis: np.log(np.exp(x).sum(axis))),
    ("diff", (A, {"n": 2}), np.diff),
    ("diff", (A, {"prepend": 0.5, "append": -1.0}), float32(np.diff)),
    ("broadcast_arrays", (A, np.float32([[7.0], [8.0]])), np.broadcast_arrays),
    ("broadcast_to", (UNIT, (2, 3)), np.broadcast_to),
    ("concat", ([A, WHOLE], 1), lambda x, a: np.concat([x[0], x[1].astype("f")], a)),
    ("expand_dims", (A, 1), np.expand_dims),
    ("flip", (A, 1), np.flip),
    ("matrix_transpose", (IMAGE,), np.matrix_transpose),
    ("moveaxis", (IMAGE, (0, 1), (2, 0)), np.moveaxis),
    ("pad", (A, 2), np.pad),
    ("pad", (A, (1, 2), "constant", 7), lambda x, w, m, by: np.pad(x, w, m, constant_values=by)),
    ("pad", (TRUE, ((1, 0), (0, 2))), np.pad),
    *(("pad", (A, ((1, 0), (2, 1)), mode), np.pad) for mode in "edge reflect wrap".split()),
    ("permute_dims", (IMAGE, (1, 3, 0, 2)), np.permute_dims),
    ("repeat", (A, (1, 0, 2), 1), np.repeat),
    ("reshape", (A, (3, -1)), np.reshape),
    ("roll", (A, 2), np.roll),
    ("split", (A, 3, 1), np.split),
    ("squeeze", (IMAGE,), np.squeeze),
    ("stack", ([A, B], 1), np.stack),
    ("take", (A, np.int64([2, 0]), 1), np.take),
    ("take_along_axis", (A, FEW % 3, 1), np.take_along_axis),
    ("take_along_axis", (A, FEW[:, :1] % 3, 1), np.take_along_axis),
    ("take_along_axis", (A, np.int64([[2]]), 1), np.take_along_axis),
    ("take_along_axis", (A[:1], FEW % 3, 1), np.take_along_axis),
    ("tile", (A, (2, 1)), np.tile),
    ("tile", (IMAGE, (2, 3)), np.tile),
    ("tile", (UNIT, (2, 1, 2)), np.tile),
    ("transpose", (IMAGE,), np.transpose),
    ("unstack", (A, {"axis": 1}), np.unstack),
    ("arange", (2, 11, 3), np.arange),
    ("arange", (2**62, 2**62 + 7, 3), np.arange),
    ("arange", (7, -(2**62) + 7, -(2**61)), np.arange),
    ("arange", (2.5,), lambda stop: np.arange(stop, dtype="float32")),
    ("asarray", (2.5,), np.float32),
    ("dropout", (IMAGE + 5, 0.5, np.int64([3, 1])), dropped),
    ("empty", ((2, 3),), of_shape),
    ("empty_like", (A,), lambda x: of_shape(x.shape)),
    ("erfinv", (np.float32([-1, 1, 2]),), lambda x: np.float32([-np.inf, np.inf, np.nan])),
    ("eye", (2, 3, 1), lambda n, m, k: np.eye(n, m, k, dtype="float32")),
    ("from_dlpack", (A,), lambda x: x),
    ("full", ((2, 2), 7), np.full),
    ("full_like", (A, 1.5), np.full_like),
    ("linspace", (0, 1, 5), lambda *x: np.linspace(*x, dtype="float32")),
    ("meshgrid", (UNIT, ABOVE, {"indexing": "ij"}), np.meshgrid),
    ("ones", ((2, 1),), lambda shape: np.ones(shape, "float32")),
    ("ones_like", (WHOLE,), np.ones_like),
    ("random_normal", ((8, 16), np.int64([1, 2])), normal),
    ("random_uniform", ((8, 16), np.int64([1, 2])), uniform),
    ("tril", (A,), np.tril),
    ("triu", (A, 1), np.triu),
    ("zeros", ((2, 1),), lambda shape: np.zeros(shape, "float32")),
    ("zeros_like", (WHOLE,), np.zeros_like),
    *(("convolve", (ORDERED, UNIT, mode), np.convolve) for mode in "full same valid".split()),
    *(("convolve", (UNIT[:2], ORDERED, mode), np.convolve) for mode in "full same valid".split()),
    ("einsum", ("ij,kj->ik", A, B), np.einsum),
    ("kron", (A, FEW), lambda x, y: np.kron(x, y.astype("float32"))),
    ("kron", (UNIT, A), np.kron),
    ("matmul", (A, B.T.copy()), np.matmul),
    ("tensordot", (A, B, ((0,), (0,))), np.tensordot),
    ("vecdot", (A, B), np.vecdot),
    ("argsort", (A, 1, True), lambda x, axis, _: np.argsort(-x, axis)),
    ("interp", (A, ORDERED, ABOVE[[0, 1, 2, 0]]), float32(np.interp)),
    ("interp", (EDGES, ORDERED, ABOVE[[0, 1, 2, 0]]), float32(np.interp)),
    ("nonzero", (WHOLE,), np.nonzero),
    ("searchsorted", (ORDERED, A), np.searchsorted),
    ("searchsorted", (WITH_NAN, WITH_NAN), np.searchsorted),
    ("searchsorted", (WITH_NAN, WITH_NAN, "right"), np.searchsorted),
    ("sort", (A, 0), np.sort),
    ("top_k", (A, 2), lambda x, k: (-np.sort(-x)[:, :k], np.argsort(-x)[:, :k])),
    ("unique_all", (WHOLE,), unique("return_index", "return_inverse", "return_counts")),
    ("unique_counts", (WHOLE,), unique("return_counts")),
    ("unique_inverse", (WHOLE,), unique("return_inverse")),
    ("unique_values", (WHOLE,), np.unique),
    ("bincount", (WHOLE, 7), lambda x, n: np.bincount(x.ravel(), minlength=n)),
    (
        "bincount",
        (WHOLE, 6, A),
        lambda x, n, w: np.float32(np.bincount(x.ravel(), w.ravel(), minlength=n)),
    ),
    ("median", (A,), np.median),
    ("median", (IMAGE, (3, 0), True), lambda x, axis, keep: np.median(x, axis, keepdims=keep)),
    ("median", (WITH_NAN,), np.median),
    ("quantile", (A, 0.3), np.quantile),
    ("quantile", (WHOLE, 1), lambda x, q: np.float32(np.quantile(x, q))),
    (
        "quantile",
        (IMAGE, np.float32([0.1, 0.75]), (1, 2), True),
        lambda x, q, axis, keep: np.quantile(x, q.astype("d"), axis, keepdims=keep).astype("f"),
    ),
    ("avg_pool", (IMAGE, 2, 1), lambda x, *_: windows(x, 2).mean((4, 5))),
    ("max_pool", (IMAGE, 2), lambda x, _: windows(x, 2)[:, :, ::2, ::2].max((4, 5))),
    (
        "conv",
        (IMAGE, KERNEL, UNIT, {"stride": 2, "padding": 1}),
        lambda x, w, b, stride, padding: conv(x, w, b, stride),
    ),
    ("layer_norm", (A, UNIT, ABOVE), layer_norm),
    ("linear", (A, B.T.copy(), UNIT[:2]), lambda x, w, b: x @ w + b),
    ("log_softmax", (A,), lambda x: np.log(softmax(x))),
    ("softmax", (A, 0), softmax),
    ("one_hot", (np.int64([2, 0]), 3), lambda x, n: np.eye(n, dtype="float32")[x]),
    ("stop_gradient", (A,), lambda x: x),
    ("linalg.cholesky", (DEFINITE,), np.linalg.cholesky),
    ("linalg.cholesky", (DEFINITE, True), lambda x, _: np.linalg.cholesky(x).T),
    ("linalg.cross", (SQUARE, DEFINITE), np.linalg.cross),
    ("linalg.det", (SQUARE,), np.linalg.det),
    ("linalg.diagonal", (A, {"offset": 1}), np.linalg.diagonal),
    ("linalg.diagonal", (SQUARE, {"offset": -1}), np.linalg.diagonal),
    ("linalg.eigh", (DEFINITE,), of_eigenvectors),
    ("linalg.eigvalsh", (DEFINITE,), np.linalg.eigvalsh),
    ("linalg.inv", (SQUARE,), np.linalg.inv),
    ("linalg.matmul", (A, B.T.copy()), np.matmul),
    *(
        ("linalg.matrix_norm", (A, {"ord": ord}), by_order(np.linalg.matrix_norm))
        for ord in ("fro", "nuc", 1, -1, 2, -2, "inf", "-inf")
    ),
    ("linalg.matrix_norm", (A, {"keepdims": True, "ord": 2}), np.linalg.matrix_norm),
    *(("linalg.matrix_power", (SQUARE, n), np.linalg.matrix_power) for n in (0, 1, 5, -2)),
    ("linalg.matrix_rank", (np.outer(UNIT, ABOVE),), np.linalg.matrix_rank),
    ("linalg.matrix_transpose", (IMAGE,), np.matrix_transpose),
    ("linalg.outer", (UNIT, ABOVE), np.linalg.outer),
    ("linalg.pinv", (A,), np.linalg.pinv),
    ("linalg.qr", (A,), rebuilds),
    ("linalg.qr", (B.T.copy(), {"mode": "complete"}), lambda x, mode: rebuilds(x)),
    ("linalg.slogdet", (SQUARE,), np.linalg.slogdet),
    ("linalg.solve", (SQUARE, B.T.copy()), np.linalg.solve),
    ("linalg.solve", (SQUARE, UNIT), np.linalg.solve),
    ("linalg.svd", (A,), rebuilds),
    ("linalg.svd", (A, {"full_matrices": False}), lambda x, full_matrices: rebuilds(x)),
    ("linalg.svdvals", (A,), np.linalg.svdvals),
    ("linalg.tensordot", (A, B, ((0,), (0,))), np.tensordot),
    ("linalg.trace", (SQUARE, {"offset": 1}), np.linalg.trace),
    ("linalg.trace", (FEW,), np.linalg.trace),
    ("linalg.vecdot", (A, B), np.vecdot),
    *(
        ("linalg.vector_norm", (A, {"axis": 1, "ord": ord}), by_order(np.linalg.vector_norm))
        for ord in (0, 1, 2, 2.5, "inf", "-inf")
    ),
    ("fft.fft", (pairs(np.fft.fft(WAVE)),), of_pairs(np.fft.fft)),
    ("fft.fft", (pairs(WAVE + 0.5j), {"n": 4, "norm": "ortho"}), of_pairs(np.fft.fft)),
    ("fft.fft", (pairs(WAVE + 0.5j), {"axis": 0, "norm": "forward"}), of_pairs(np.fft.fft)),
    ("fft.fftfreq", (5, 0.5), float32(np.fft.fftfreq)),
    ("fft.fftn", (pairs(WAVE + 0.5j),), of_pairs(np.fft.fftn)),
    ("fft.fftshift", (WAVE,), np.fft.fftshift),
    ("fft.hfft", (pairs(np.fft.ihfft(WAVE)), 5), of_pairs(np.fft.hfft)),
    ("fft.ifft", (pairs(WAVE + 0.5j), {"n": 8}), of_pairs(np.fft.ifft)),
    ("fft.ifftn", (pairs(WAVE + 0.5j), {"s": (2, 3), "axes": (0, 1)}), of_pairs(np.fft.ifftn)),
    ("fft.ifftshift", (WAVE, 1), np.fft.ifftshift),
    ("fft.ihfft", (WAVE, {"norm": "forward"}), to_pairs(np.fft.ihfft)),
    ("fft.irfft", (pairs(np.fft.rfft(WAVE)), 5), of_pairs(np.fft.irfft)),
    ("fft.irfft", (pairs(np.fft.rfft(WAVE)),), of_pairs(np.fft.irfft)),
    ("fft.irfftn", (pairs(np.fft.rfftn(WAVE[:, :4])),), of_pairs(np.fft.irfftn)),
    ("fft.rfft", (WAVE, {"n": 6}), to_pairs(np.fft.rfft)),
    ("fft.rfft", (WAVE, {"axis": 0, "norm": "ortho"}), to_pairs(np.fft.rfft)),
    ("fft.rfftfreq", (5,), float32(np.fft.rfftfreq)),
    ("fft.rfftn", (WAVE, {"norm": "forward"}), to_pairs(np.fft.rfftn)),
]
