# SPDX-License-Identifier: Apache-2.0
"""A function that is called without an include of its header is named, with the header."""

import includes
from planted import only, write


def test_a_function_is_called_through_an_include(tmp_path):
    write(tmp_path, "plugins/ops/near.hpp", "int nearest(int x);\n")
    write(tmp_path, "plugins/ops/floor.cpp", "int f() { return nearest(1); }\n")
    found = only(includes.violations(tmp_path))
    assert "plugins/ops/floor.cpp:1: calls nearest()" in found and "plugins/ops/near.hpp" in found

    write(tmp_path, "plugins/ops/far.hpp", '#include "near.hpp"\n')
    write(tmp_path, "plugins/ops/floor.cpp", '#include "far.hpp"\nint f() { return nearest(1); }\n')
    assert includes.violations(tmp_path) == []

    own = "static int nearest(int x) { return x; }\nint f() { return nearest(1); }\n"
    write(tmp_path, "plugins/ops/floor.cpp", own)
    assert includes.violations(tmp_path) == []
