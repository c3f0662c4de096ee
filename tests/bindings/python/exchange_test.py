# SPDX-License-Identifier: Apache-2.0
"""Arrays in and out: memory is shared where the protocol allows it, and types are kept."""

import ctypes
import sys

import ml_dtypes
import numpy as np
import pytest
import tenon
import tenon as tn
from conftest import single

TYPES = [
    *("float16", "float32", "float64", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64", "bool", "complex64"),
    *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
    *(ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.float4_e2m1fn),
]


class Producer:
    """Somebody else's array: DLPack and nothing more."""

    def __init__(self, array, device=(1, 0), versioned=True):
        self.array, self.device, self.versioned = array, device, versioned
        self.asked = 0

    def __dlpack__(self, **options):
        if options and not self.versioned:
            raise TypeError("an unexpected keyword")
        self.asked += 1
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


def constant(array):
    graph = tenon.Graph()
    value = graph.add_constant(array, "c")
    graph.add_output("y", graph.add_node("Identity", [value]))
    return graph.build().constants()["c"]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_every_type_comes_back_as_it_went_in(dtype):
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype)

    tensor = constant(array)

    assert tensor.dtype == np.dtype(dtype).name
    assert tensor.shape == (2, 3)
    assert tensor.numpy().dtype == array.dtype
    assert tensor.numpy().tolist() == array.tolist()


def test_signs_of_packed_types_are_kept():
    array = np.array([-8, -1, 7]).astype(ml_dtypes.int4)

    assert constant(array).numpy().astype(int).tolist() == [-8, -1, 7]


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12, dtype="float32").reshape(3, 4).T,
        np.arange(12, dtype="float32")[::3],
        np.arange(4, dtype=">f4"),
        np.float32(3),
        np.zeros((0, 3), "float32"),
    ],
    ids=["transposed", "strided", "big-endian", "scalar", "empty"],
)
def test_any_layout_is_read_right(array):
    tensor = constant(array)

    assert tensor.shape == np.shape(array)
    np.testing.assert_array_equal(tensor.numpy(), array)


def test_a_builder_keeps_a_copy():
    array = np.ones(3, "float32")

    tensor = constant(array)
    array[:] = 2

    assert tensor.numpy().tolist() == [1, 1, 1]


def test_a_models_weights_cannot_be_written(dense):
    weights = dense.constants()["w"].numpy()

    with pytest.raises(ValueError, match="read-only"):
        weights[0, 0] = 1


def test_a_copy_that_is_asked_for_is_the_callers_own(dense):
    weights = dense.constants()["w"]
    before = weights.numpy().copy()

    np.array(weights)[:] = 7
    np.array(weights, "float32")[:] = 7
    np.from_dlpack(weights, copy=True)[:] = 7

    np.testing.assert_array_equal(weights.numpy(), before)
    assert np.array(weights, "float64").dtype == np.float64


def test_results_are_the_callers_own():
    plan = single("Neg", "float32")

    first = plan([1.0, 2.0])[0]
    plan([3.0, 4.0])
    first += 1

    assert first.tolist() == [0, -1]


def test_results_outlive_plan_and_model():
    y = single("Neg", "float32")(np.ones(1000, "float32"))[0]

    assert y.base is not None
    assert y.sum() == -1000


@pytest.mark.parametrize("versioned", [True, False], ids=["versioned", "legacy"])
def test_producers_of_dlpack_are_taken(versioned):
    producer = Producer(np.array([1.0, -2.0], "float32"), versioned=versioned)

    y = single("Neg", "float32")(producer)[0]

    assert producer.asked == 1
    assert y.tolist() == [-1, 2]


@pytest.mark.parametrize("options", [{}, {"max_version": (1, 3)}], ids=["legacy", "versioned"])
def test_a_tensor_is_a_producer_that_shares_memory(options):
    tensor = single("Neg", "float32").tensors(np.ones(3, "float32"))[0]

    view = np.from_dlpack(tensor)
    capsule = tensor.__dlpack__(**options)

    assert view.ctypes.data == tensor.numpy().ctypes.data
    name = "dltensor_versioned" if options else "dltensor"
    ctypes.pythonapi.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
    assert ctypes.pythonapi.PyCapsule_IsValid(capsule, name.encode())


def test_an_array_is_let_go_after_the_run():
    array = np.ones(3, "float32")
    before = sys.getrefcount(array)
    plan = single("Neg", "float32")

    for _ in range(10):
        plan(array)

    assert sys.getrefcount(array) == before


@pytest.mark.parametrize("bad", [np.array(["a"]), np.array([object()]), "text"])
def test_what_is_no_number_is_refused(bad):
    with pytest.raises((tenon.InvalidArgument, ValueError)):
        single("Neg", "float32")(bad)


def test_a_mask_is_not_lost_without_a_word():
    masked = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
    calls = (tn.sum, tn.jit(lambda x: x + 1), tn.jit(lambda: tn.sum(masked)), tn.asarray)
    for call in calls:
        with pytest.raises(TypeError, match=r"without a mask.*use \.filled"):
            call(*([] if call is calls[2] else [masked]))
    assert tn.sum(masked.filled(0)) == 4


@pytest.mark.parametrize(
    "dtype, given",
    [
        *[
            ("int64", bad)
            for bad in ([0.9, 2.0], 4.5, None, "4", ["1"], [2**63], {}, [[1], [2, 3]])
        ],
        *[("float32", bad) for bad in (None, "4", ["1"], [object()])],
        ("uint8", [300]),
    ],
)
def test_lists_and_numbers_become_no_other_numbers(dtype, given):
    with pytest.raises(tenon.InvalidArgument, match="input x0"):
        single("Neg" if dtype != "uint8" else "Abs", dtype)(given)


def test_whole_numbers_and_truth_values_are_numbers_too():
    assert single("Neg", "float32")([1, 2, True])[0].tolist() == [-1, -2, -1]
    assert single("Neg", "int64")([1, 2])[0].tolist() == [-1, -2]
