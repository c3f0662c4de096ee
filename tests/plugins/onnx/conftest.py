# SPDX-License-Identifier: Apache-2.0
import onnx
import pytest
from tenon_library import Tenon


@pytest.fixture(scope="session")
def tenon():
    return Tenon()


@pytest.fixture
def rewrite(tenon, tmp_path):
    """Saves a model, passes it through Tenon, checks what was written, and loads that."""

    def run(model, options=""):
        source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
        onnx.save(model, source)
        tenon.convert(source, target, options)
        if all(
            v.type.tensor_type.HasField("shape") for v in [*model.graph.input, *model.graph.output]
        ):
            onnx.checker.check_model(str(target), full_check=True)  # it asks for their shapes
        return onnx.load(target)

    return run
