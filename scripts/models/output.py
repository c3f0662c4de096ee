# SPDX-License-Identifier: Apache-2.0
"""Where one fetched thing goes: hands out archives, takes files, writes each one atomically."""

import os
import pathlib
import tempfile

import numpy as np
import onnx

from models import wheels


class Output:
    """A folder that receives files. A file is there whole or not at all."""

    def __init__(self, folder: pathlib.Path, say=print):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.say = say
        self.written: list[str] = []

    def archive(self, package: wheels.Package) -> pathlib.Path:
        return wheels.obtain(package, self.folder / "wheels")

    def member(self, package: wheels.Package, name: str) -> bytes:
        return wheels.member(self.archive(package), name)

    def write(self, name: str, fill) -> pathlib.Path:
        """Calls fill(file) on a temporary file beside the target, flushes, renames."""
        handle, scratch = tempfile.mkstemp(dir=self.folder, prefix=f".{name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                fill(file)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(scratch, 0o644)
            os.replace(scratch, self.folder / name)
        except BaseException:
            pathlib.Path(scratch).unlink(missing_ok=True)
            raise
        self.written.append(name)
        return self.folder / name

    def put_bytes(self, name: str, data: bytes) -> pathlib.Path:
        return self.write(name, lambda file: file.write(data))

    def put_arrays(self, name: str, arrays: dict[str, np.ndarray]) -> pathlib.Path:
        """An uncompressed npz: readers can map it, and floats hardly compress."""
        shapes = ", ".join(
            f"{key} {value.dtype}{list(value.shape)}" for key, value in arrays.items()
        )
        self.say(f"{name}: {shapes}")
        return self.write(name, lambda file: np.savez(file, **arrays))

    def put_model(self, name: str, model: onnx.ModelProto) -> pathlib.Path:
        onnx.checker.check_model(model, full_check=True)
        return self.write(name, lambda file: file.write(model.SerializeToString()))
