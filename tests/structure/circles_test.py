# SPDX-License-Identifier: Apache-2.0
"""Circles of imports and of includes are named with their way."""

import circles
from planted import only, write


def test_a_circle_of_imports_is_named(tmp_path):
    package = "bindings/python/tenon"
    write(tmp_path, f"{package}/low.py", "import json\n")
    write(tmp_path, f"{package}/middle.py", "from .low import x\n")
    write(tmp_path, f"{package}/high.py", "from . import low, middle\n")
    assert circles.violations(tmp_path) == []

    write(tmp_path, f"{package}/low.py", "def f():\n    from .high import y\n")
    assert "high -> low -> high" in only(circles.violations(tmp_path))


def test_a_circle_of_the_hosts_folders_is_named(tmp_path):
    write(tmp_path, "host/types/README.md", "")
    write(tmp_path, "host/types/type.hpp", "#include <vector>\n")
    write(tmp_path, "host/graph/graph.hpp", '#include "types/type.hpp"\n')
    assert circles.violations(tmp_path) == []

    write(tmp_path, "host/types/infer.cpp", '#include "graph/graph.hpp"\n')
    assert "graph -> types -> graph" in only(circles.violations(tmp_path))


def test_a_circle_of_the_folders_of_a_plugin_is_named(tmp_path):
    plugin = "plugins/backend"
    write(tmp_path, f"{plugin}/graph/graph.hpp", "#include <vector>\n")
    write(tmp_path, f"{plugin}/kernels/table.h", "")
    write(tmp_path, f"{plugin}/kernels/code/make.cpp", '#include "../table.h"\n')
    write(tmp_path, f"{plugin}/lowering/plan.hpp", '#include "graph/graph.hpp"\n')
    write(tmp_path, f"{plugin}/backend.cpp", '#include "lowering/plan.hpp"\n#include "one.hpp"\n')
    write(tmp_path, f"{plugin}/one.hpp", '#include "graph/graph.hpp"\n')
    assert circles.violations(tmp_path) == []

    write(tmp_path, f"{plugin}/graph/graph.cpp", '#include "lowering/plan.hpp"\n')
    assert "graph -> lowering -> graph" in only(circles.violations(tmp_path))

    write(tmp_path, f"{plugin}/graph/graph.cpp", "")
    write(tmp_path, f"{plugin}/kernels/table.cpp", '#include "code/make.h"\n')
    write(tmp_path, f"{plugin}/kernels/code/make.h", "")
    assert "kernels -> kernels/code -> kernels" in only(circles.violations(tmp_path))
