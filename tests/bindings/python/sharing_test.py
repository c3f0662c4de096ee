# SPDX-License-Identifier: Apache-2.0
"""PyTorch's and JAX's arrays share memory with Tenon's by DLPack, where they are installed."""

import importlib

import numpy as np
import pytest
import tenon
from conftest import single
from tenon import _core
from tenon.events import session


class Torch:
    def __init__(self):
        self.module = importlib.import_module("torch")

    def array(self, numbers):
        return self.module.tensor(numbers.tolist(), dtype=self.module.float32)

    def from_dlpack(self, tensor):
        return self.module.from_dlpack(tensor)

    def address(self, array):
        return array.data_ptr()


class Jax:
    def __init__(self):
        self.module = importlib.import_module("jax")
        self.cpu = self.module.devices("cpu")[0]

    def array(self, numbers):
        return self.module.device_put(numbers.copy(), self.cpu)

    def from_dlpack(self, tensor):
        return self.module.numpy.from_dlpack(tensor, copy=False)

    def address(self, array):
        return array.unsafe_buffer_pointer()


@pytest.fixture(params=[Torch, Jax], ids=["torch", "jax"])
def library(request):
    name = request.param.__name__.lower()
    pytest.importorskip(name, reason=f"{name} is not installed")
    return request.param()


NUMBERS = np.arange(6, dtype="float32").reshape(2, 3)


def test_an_argument_is_read_where_it_lies(library):
    array = library.array(NUMBERS)

    tensor = _core.as_tensor(session(), array)

    assert tensor.numpy().ctypes.data == library.address(array)
    assert tensor.shape == (2, 3)
    assert tensor.numpy().tolist() == NUMBERS.tolist()


def test_a_result_is_taken_where_it_lies(library):
    tensor = single("Neg", "float32", shape=("n", 3)).tensors(NUMBERS)[0]
    address = tensor.numpy().ctypes.data

    array = library.from_dlpack(tensor)
    del tensor  # the array keeps the memory

    assert library.address(array) == address
    assert np.asarray(array).tolist() == (-NUMBERS).tolist()


def test_plans_and_traced_functions_take_it(library):
    array = library.array(NUMBERS)

    assert single("Neg", "float32", shape=("n", 3))(array)[0].tolist() == (-NUMBERS).tolist()
    assert tenon.jit(lambda x: x + 1)(array).tolist() == (NUMBERS + 1).tolist()
