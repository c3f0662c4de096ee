# SPDX-License-Identifier: Apache-2.0
"""The installed SDK stands alone: the template builds against it into a plugin, without this tree.

The build tree to install from comes in TENON_BUILD, the checkout's compiler in CXX.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/structure"), str(ROOT / "tests/abi")]

import handshake  # noqa: E402
import plugin_symbols  # noqa: E402


def run(*command) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def prefix(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", os.environ["TENON_BUILD"], "--component", "sdk", "--prefix", path)
    return path


@pytest.fixture(scope="module")
def plugin(prefix, tmp_path_factory) -> Path:
    source = tmp_path_factory.mktemp("acme") / "acme"
    shutil.copytree(ROOT / "sdk/template", source)
    build = source / "build"
    warnings = "-Wall -Wextra -Wpedantic -Wshadow -Werror"
    run(
        "cmake",
        "-S",
        source,
        "-B",
        build,
        "-G",
        "Ninja",
        f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={os.environ.get('CXX', 'c++')}",
        f"-DCMAKE_CXX_FLAGS={warnings}",
    )
    run("cmake", "--build", build)
    (found,) = build.rglob("*.so")
    return found


def test_the_template_builds_into_a_plugin_with_one_symbol(plugin):
    assert plugin_symbols.violations(plugin) == []


def test_the_template_shakes_hands(plugin, prefix):
    cdef = (prefix / "share/tenon/tenon.cdef").read_text()

    assert handshake.violations(cdef, plugin) == []
    assert [record[2] for record in handshake.description(plugin)] == [
        "com.acme.drop_identity" if record[0] == handshake.COMPONENT else "1.0.0"
        for record in handshake.description(plugin)
    ]


def test_nothing_installed_names_this_tree(prefix):
    for path in prefix.rglob("*"):
        if path.is_file():
            assert not re.search(re.escape(str(ROOT)).encode() + rb"\b", path.read_bytes()), path
