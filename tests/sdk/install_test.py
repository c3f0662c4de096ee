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


EMBEDDER = r"""
#include <stdio.h>
#include "tenon/tenon.h"
static float result[2];
static tn_status* get(void* ctx, uint64_t i, const DLTensor* proto, DLTensor* out) {
  (void)ctx, (void)i;
  *out = *proto;
  out->data = result;
  return NULL;
}
int main(void) {
  tenon_session* session = NULL;
  tn_str none = {"", 0}, relu = {"Relu", 4};
  float x[2] = {-1, 2};
  int64_t shape[1] = {2};
  DLTensor in = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0};
  const DLTensor* inputs[1] = {&in};
  tn_outputs outputs = {NULL, get};
  tn_status* status = tenon_open(none, &session);
  if (!status) status = tenon_op(session, relu, none, inputs, 1, 0, &outputs, NULL);
  if (status) {
    tn_str text = tenon_status_message(status);
    printf("%.*s\n", (int)text.len, text.data);
    return 1;
  }
  printf("%g %g\n", result[0], result[1]);
  tenon_close(session);
  return 0;
}
"""


def test_a_program_links_and_runs_what_is_installed(tmp_path):
    prefix, source = tmp_path / "prefix", tmp_path / "embedder"
    for component in ("sdk", "runtime"):
        build = os.environ["TENON_BUILD"]
        run("cmake", "--install", build, "--component", component, "--prefix", prefix)
    source.mkdir()
    (source / "main.c").write_text(EMBEDDER)
    (source / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(embedder LANGUAGES C CXX)\n"
        "find_package(Tenon REQUIRED)\nadd_executable(embedder main.c)\n"
        "target_link_libraries(embedder PRIVATE tenon::tenon)\n"
    )
    run(
        "cmake",
        "-G",
        "Ninja",
        "-S",
        source,
        "-B",
        source / "build",
        f"-DCMAKE_PREFIX_PATH={prefix}",
    )
    run("cmake", "--build", source / "build")
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TENON_")}
    program, command = source / "build/embedder", prefix / "bin/tenon"

    done = subprocess.run([program], env=clean, capture_output=True, text=True)
    doctor = subprocess.run(
        [command, "plugin", "doctor"], env=clean, capture_output=True, text=True
    )
    recipes = subprocess.run(
        [command, "optimize", "--help"], env=clean, capture_output=True, text=True
    )

    assert (done.stdout, done.returncode) == ("0 2\n", 0), done
    assert f"{prefix}/lib/tenon/plugins" in doctor.stdout and "reference.so" in doctor.stdout
    assert "int8" in recipes.stdout


def test_nothing_installed_names_this_tree(prefix):
    for path in prefix.rglob("*"):
        if path.is_file():
            assert not re.search(re.escape(str(ROOT)).encode() + rb"\b", path.read_bytes()), path
