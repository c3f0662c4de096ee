# SPDX-License-Identifier: Apache-2.0
"""The unpickler knows tensors and nothing else, and the network hears the pitch."""

import io
import pickle
import zipfile

import numpy as np
import pytest
from models import crepe, wheels


class Harmful:
    def __reduce__(self):
        return (print, ("never",))


def test_a_pickle_that_calls_something_is_refused():
    blob = io.BytesIO()
    with zipfile.ZipFile(blob, "w") as archive:
        archive.writestr("w/data.pkl", pickle.dumps(Harmful()))

    with pytest.raises(wheels.FetchError, match="expected tensors only, got builtins.print"):
        crepe.load_torch(blob.getvalue())


def test_strides_and_offset_of_a_tensor_are_kept():
    storage = np.arange(7, dtype=np.float32)

    assert crepe.TensorUnpickler.tensor(storage, 1, (2, 3), (1, 2)).tolist() == [
        [1, 3, 5],
        [2, 4, 6],
    ]


def test_a_bin_is_twenty_cents():
    hertz = crepe.bin_hertz(np.arange(crepe.N_BINS))

    np.testing.assert_allclose(1200 * np.log2(hertz[1:] / hertz[:-1]), 20, atol=1e-6)
    assert 31 < hertz[0] < 33


def test_the_fetched_network_hears_tones_within_fifty_cents(fetched, run):
    data = np.load(fetched("crepe_eval.npz"))
    frames, label = data["frames"][:16], data["label"][:16]

    salience = run(str(fetched("crepe_tiny.onnx")), {"frames": frames})[0]

    assert (np.abs(salience.argmax(axis=1) - label) <= 2).all()
