# SPDX-License-Identifier: Apache-2.0
"""What share of a model's multiplications has both operands in 8 bits, from its file: of all
operators whose row says that they are products (quantizer.macs). And sessions of ONNX Runtime."""

import pathlib
import tempfile

import numpy as np


def session_of(model, optimized: bool = False):
    """Of a file's path or a model; one thread, and as the file says it unless optimized."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = (
        levels.ORT_ENABLE_ALL if optimized else levels.ORT_DISABLE_ALL
    )
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    given = model if isinstance(model, str) else model.SerializeToString()
    return onnxruntime.InferenceSession(given, options, ["CPUExecutionProvider"])


def integer_macs(path: str, feed: dict[str, np.ndarray]) -> dict:
    """The report of quantizer.macs, with the sizes of the feed; nodes of bodies are not counted."""
    import tenon

    model = tenon.load(path)
    names = [one["name"] for one in model.inspect()["inputs"]]
    batch = max(len(feed[name]) for name in names)
    with tempfile.TemporaryDirectory() as folder:
        sample = pathlib.Path(folder) / "sample.npz"
        np.savez(sample, **{name: feed[name] for name in names})
        return model.apply("quantizer.macs", data=sample.as_posix(), batch=batch).report
