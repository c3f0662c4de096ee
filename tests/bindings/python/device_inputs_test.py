# SPDX-License-Identifier: Apache-2.0
"""Inputs that lie on a device: handed over as they are, on the test device `fakedev`."""

import ctypes

import numpy as np
import pytest
import tenon

EXT_DEVICE, GPU, PINNED = 12, 2, 3
#: Addresses of the test device have this bit.
ON_DEVICE = 1 << 62


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", Deleter)]


ctypes.pythonapi.PyCapsule_New.restype = ctypes.py_object
ctypes.pythonapi.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Elsewhere:
    """A vector of float32 as a library of another device hands it over."""

    def __init__(self, device, address, size=4, stride=1):
        self.device, self.asked, self.freed = device, [], 0
        self.dims = (ctypes.c_int64 * 2)(size, stride)
        strides = ctypes.cast(ctypes.byref(self.dims, 8), ctypes.POINTER(ctypes.c_int64))
        tensor = DLTensor(address, *device, 1, 2, 32, 1, self.dims, strides, 0)
        self.managed = Managed(tensor, None, Deleter(self.free))

    def free(self, _):
        self.freed += 1

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        self.asked.append(options)
        if "max_version" in options:
            raise TypeError("an unexpected keyword")
        return ctypes.pythonapi.PyCapsule_New(ctypes.addressof(self.managed), b"dltensor", None)


def negative(**options):
    graph = tenon.Graph()
    graph.add_output("y", graph.add_node("Neg", [graph.add_input("x", "float32", [4])]))
    return graph.build().compile(**options)


@pytest.fixture(scope="module")
def fakedev():
    if all(plugin["id"] != "fakedev" for plugin in tenon.plugins()):
        pytest.skip("fakedev is not here: TENON_PLUGIN_PATH names its folder in ctest")
    return "fakedev"


def test_memory_of_a_device_goes_to_its_backend_as_it_is(fakedev):
    there = Elsewhere((EXT_DEVICE, 0), ON_DEVICE | 0x1000)

    # The device has no such block: it looked, and nobody read the address.
    with pytest.raises(tenon.InvalidArgument, match="expected a block of this device, got none"):
        negative(backend=fakedev)(there)

    assert there.asked[-1] == {}
    assert there.freed == 1


def test_the_producer_gets_the_stream(fakedev):
    there = Elsewhere((EXT_DEVICE, 0), ON_DEVICE | 0x1000)

    with pytest.raises(tenon.InvalidArgument, match="block of this device"):
        negative(backend=fakedev, input_stream=7)(there)

    assert [one["stream"] for one in there.asked] == [7, 7]


def test_a_device_that_the_plan_does_not_use_is_named():
    there = Elsewhere((EXT_DEVICE, 3), ON_DEVICE)

    with pytest.raises(tenon.InvalidArgument, match="device of the plan, got device type 12 id 3"):
        negative(backend="reference")(there)

    assert there.freed == 1


def test_a_gpus_memory_needs_a_stream():
    there = Elsewhere((GPU, 0), 0x1000)

    with pytest.raises(tenon.InvalidArgument, match="input x: .*compile with input_stream"):
        negative(backend="reference")(there)

    assert there.asked == []


def test_strided_memory_of_a_device_is_refused_with_the_fix():
    there = Elsewhere((EXT_DEVICE, 0), ON_DEVICE, stride=2)

    with pytest.raises(tenon.InvalidArgument, match="input x: .*make it contiguous"):
        negative(backend="reference")(there)

    assert there.freed == 1


def test_pinned_memory_is_the_cpus():
    array = np.arange(4, dtype="float32")
    there = Elsewhere((PINNED, 0), array.ctypes.data)

    y = negative(backend="reference")(there)[0]

    assert y.tolist() == [0, -1, -2, -3]
    assert there.freed == 1


def test_outside_a_plan_memory_of_a_device_is_refused_with_the_fix():
    there = Elsewhere((GPU, 0), 0x1000)

    with pytest.raises(tenon.InvalidArgument, match="move it to the CPU"):
        tenon.Graph().add_constant(there, "c")
