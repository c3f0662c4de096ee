# SPDX-License-Identifier: Apache-2.0
"""The gate `quoted` names what a README quotes and the tree has not."""

from pathlib import Path

import pytest
import quoted
from planted import only, write


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    for name, text in {
        "bindings/lua/command/commands.cpp": '{"bench", "time a model", declare_bench},\n',
        "bindings/lua/command/plugin.cpp": '{"new", "write a plugin", declare_plugin_new},\n',
        "bindings/lua/command/bench.cpp": 'app.add_flag("--layers,--set", on, "each layer");\n',
        "plugins/pruner/depth.cpp": 'TENON_PASS(depth, Depth, "pruner.depth", "", "{}")\n',
        "scripts/chain.lua": "local quick = tn.args.quick\n",
        "scripts/fuzz": 'if [ "$1" = --state ]; then\n',
        "tests/host/graph/edit_test.cpp": "\n",
    }.items():
        write(root, name, text)
    return root


RIGHT = """
`scripts/fuzz`, `host/graph/edit_test.cpp`, `tests/*/edit_test.cpp`, `pruner.depth`, `depth.cpp`

    tenon bench MODEL --layers        tenon plugin new NAME
    TENON_SEED=1 build/release/bin/tenon bench model.onnx --layers     # --nothing is a comment
    scripts/fuzz --state FILE && scripts/fuzz
"""


def test_what_is_there_passes(tree):

    assert quoted.violations(tree) == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("`scripts/fuz`", "scripts/fuz: expected a path"),
        ("See `host/graph/edits_test.cpp`.", "expected a path"),
        ("    tenon benhc MODEL", "expected one of bench, plugin"),
        ("    tenon plugin nwe NAME", "expected one of new"),
        ("    tenon bench MODEL --layer", "tenon --layer: expected an option"),
        ("    tenon bench A --layers        tenon bench B --rounds 3", "--rounds"),
        ("    scripts/fuzz --states FILE", "scripts/fuzz --states"),
        ("    scripts/fuzz && scripts/fuzz --states FILE", "scripts/fuzz --states"),
        ("    tenon bench scripts/chain.lua --set quik=1", "a setting that scripts/chain.lua"),
        ("the pass `pruner.dept`", "pruner.dept: expected the id"),
    ],
)
def test_what_is_not_there_is_named(tree, line, words):
    write(tree, "host/README.md", f"\n{line}\n")

    found = only(quoted.violations(tree))

    assert found.startswith("host/README.md:2: ") and words in found
