# SPDX-License-Identifier: Apache-2.0
"""A view of a string that dies with its statement is named, with the function that gives it."""

import dangling
from planted import only, write


def test_a_view_of_a_string_that_dies_is_named(tmp_path):
    write(
        tmp_path,
        "plugins/ops/texts.hpp",
        "std::string text(std::string_view key);\n"
        "std::string_view name(int node);\n"
        "std::string_view word();\nstd::string word(int of);\n",
    )
    write(
        tmp_path,
        "plugins/ops/tanh.cpp",
        'std::string kept = text("a");\nstd::string_view b = name(3);\n'
        "std::string_view c = word();\nstd::string_view d = kept;\n",
    )
    assert dangling.violations(tmp_path) == []

    write(
        tmp_path,
        "plugins/ops/tanh.cpp",
        'void f() {\n  const std::string_view x = o.text("a");\n}\n',
    )
    assert "tanh.cpp:2: x views what text() gives" in only(dangling.violations(tmp_path))


def test_a_loop_over_a_part_of_a_value_that_dies_is_named(tmp_path):
    write(
        tmp_path,
        "tests/host/golden.hpp",
        "json golden(const char* name) {\n}\nconst Json& kept(int at);\n",
    )
    write(
        tmp_path,
        "tests/host/golden_test.cpp",
        'for (const json& one : golden("a")) {}\nfor (const Json& one : kept(3)["cases"]) {}\n'
        'const json all = golden("a");\nfor (const json& one : all["cases"]) {}\n',
    )
    assert dangling.violations(tmp_path) == []

    write(tmp_path, "tests/host/b_test.cpp", 'for (const json& one : golden("a")["cases"]) {}\n')
    assert "b_test.cpp:1: the loop runs over a part of what golden()" in only(
        dangling.violations(tmp_path)
    )
