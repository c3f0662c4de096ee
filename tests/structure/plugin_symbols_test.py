# SPDX-License-Identifier: Apache-2.0
"""The check of plugin symbols names each broken rule, on libraries built for the purpose."""

import os
import subprocess
from pathlib import Path

import plugin_symbols
import pytest

CXX = os.environ.get("CXX", "c++")
ENTRY = 'extern "C" __attribute__((visibility("default"))) int tenon_plugin_entry() { return 0; }\n'


def build(folder: Path, source: str, *flags: str, name: str = "acme.so") -> Path:
    path = folder / name
    subprocess.run(
        [
            CXX,
            "-std=c++20",
            "-shared",
            "-fPIC",
            "-fvisibility=hidden",
            "-x",
            "c++",
            "-",
            "-o",
            path,
            *flags,
        ],
        input=source,
        text=True,
        check=True,
    )
    return path


def test_a_plugin_with_one_symbol_passes(tmp_path):
    assert plugin_symbols.violations(build(tmp_path, ENTRY)) == []


@pytest.mark.parametrize(
    "extra, words",
    [
        (
            '__attribute__((visibility("default"))) int second = 1;',
            "got second, tenon_plugin_entry",
        ),
        (
            'struct __attribute__((visibility("default"))) S {\n'
            "  static S& one() { static S s; return s; }\n};\n"
            "void* touch() { return &S::one(); }",
            "STB_GNU_UNIQUE",
        ),
        (
            'extern "C" int tenon_close(); int touch() { return tenon_close(); }',
            "undefined tenon_close",
        ),
    ],
)
def test_a_broken_rule_is_named(tmp_path, extra, words):
    found = plugin_symbols.violations(build(tmp_path, ENTRY + extra))

    assert any(words in line for line in found), found


def test_a_plugin_without_entry_is_named(tmp_path):
    found = plugin_symbols.violations(build(tmp_path, "int hidden;"))

    assert found == ["acme.so: expected one exported symbol, tenon_plugin_entry, got none"]


def test_a_plugin_that_needs_libtenon_is_named(tmp_path):
    build(tmp_path, "", "-Wl,-soname,libtenon.so.0", name="libtenon.so")
    plugin = build(tmp_path, ENTRY, "-Wl,--no-as-needed", f"-L{tmp_path}", "-ltenon")

    assert any("libtenon.so.0" in line for line in plugin_symbols.violations(plugin))


def test_every_library_below_the_folder_is_looked_at(tmp_path, capsys):
    (tmp_path / "deep").mkdir()
    build(tmp_path / "deep", "int hidden;")

    assert plugin_symbols.main([str(tmp_path)]) == 1
    assert "1 plugins looked at" in capsys.readouterr().out


def test_a_folder_without_plugins_proves_nothing(tmp_path):
    assert plugin_symbols.main([str(tmp_path)]) == 1
