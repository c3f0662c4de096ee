# SPDX-License-Identifier: Apache-2.0
"""Each gate catches a planted violation, and is silent on a small tree that keeps the rules."""

from pathlib import Path

import arrows
import budgets
import circles
import cxx_functions
import dangling
import functions
import includes
import intrinsics
import jumps
import listed
import machine_paths
import operator_names
import pinned
import pytest
import quoted
import readmes
import terminal
import tested
import words
from planted import only, write

GATES = [
    arrows,
    budgets,
    circles,
    dangling,
    functions,
    includes,
    intrinsics,
    jumps,
    listed,
    machine_paths,
    operator_names,
    pinned,
    quoted,
    readmes,
    terminal,
    tested,
    words,
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    for name, text in {
        "abi/README.md": "",
        "abi/include/tenon/base.h": "#include <stdint.h>\n",
        "abi/include/tenon/graph.h": '#include "tenon/base.h"\n',
        "host/README.md": "",
        "host/graph/README.md": "",
        "host/plan/README.md": "",
        "host/plan/plan.hpp": '#include "graph/graph.hpp"\n',
        "host/graph/graph.hpp": '#include <vector>\n#include "tenon/graph.h"\n',
        "host/graph/graph.cpp": '#include "graph.hpp"\n',
        "abi/include/README.md": "",
        "sdk/README.md": "",
        "sdk/include/README.md": "",
        "sdk/include/tenon/edit.hpp": '#include "tenon/graph.h"\n',
        "plugins/README.md": "",
        "plugins/ops/README.md": "",
        "plugins/onnx/README.md": "",
        "plugins/ops/rows.hpp": "\n",
        "plugins/ops/graph.hpp": "\n",
        "plugins/ops/tanh.cpp": '#include <tenon/edit.hpp>\n#include "graph.hpp"\n',
        "plugins/onnx/reader.cpp": '#include "tenon/edit.hpp"\n',
    }.items():
        write(root, name, text)
    return root


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.__name__)
def test_a_tree_that_keeps_the_rules_passes(gate, tree):
    assert gate.violations(tree) == []


@pytest.mark.parametrize(
    "includer, include, got",
    [
        ("host/registry/loader.cpp", '"tenon/edit.hpp"', "host"),
        ("host/registry/loader.cpp", '"../../plugins/ops/rows.hpp"', "host"),
        ("sdk/include/tenon/model.hpp", '"graph/graph.hpp"', "sdk"),
        ("plugins/onnx/writer.cpp", '"../ops/rows.hpp"', "plugins/onnx"),
        ("plugins/onnx/writer.cpp", '"ops/rows.hpp"', "plugins/onnx"),
        ("plugins/onnx/writer.cpp", "<host/graph/graph.hpp>", "plugins/onnx"),
        ("bindings/c/main.cpp", '"tenon/edit.hpp"', "bindings/c"),
        ("host/registry/loader.cpp", '"plan/plan.hpp"', "the core of host"),
        ("abi/include/tenon/op.h", '"tenon/edit.hpp"', "abi"),
    ],
)
def test_an_include_against_the_arrow_is_named(tree, includer, include, got):
    write(tree, includer, f"// first line\n#include {include}\n")

    line = only(arrows.violations(tree))

    assert line.startswith(f"{includer}:2: {got} may include ")


def test_an_abi_header_takes_no_other_system_header(tree):
    write(tree, "abi/include/tenon/op.h", "#include <stdbool.h>\n")

    assert "stdbool.h" in only(arrows.violations(tree))


@pytest.mark.parametrize(
    "text, term",
    [
        ("// The backend is told of it.", "notifies"),
        ("# Codes of 8 bits, and packed codes.", "quantized values"),
        ("the gradient on its way back", "backward"),
        ("int code_tail = 0;", "quantized values"),
        ("Value turned = node();", "transposed"),
        ("TEST_F(Model, IsToldOfIt) {", "notifies"),
        ("int64_t dequantised_bytes = 0;", "quantize"),
        ("// Normalisation of rows", "normalize"),
    ],
)
def test_a_word_of_our_own_is_named_with_the_term(tree, text, term):
    write(tree, "host/graph/words.cpp", f"\n{text}\n")

    found = words.violations(tree)

    assert found and found[0].startswith("host/graph/words.cpp:2: expected one of")
    assert term in found[0]


def test_words_with_a_plain_meaning_pass(tree):
    write(tree, "host/graph/words.cpp", "// error codes, a part of it, in place, intel, returned\n")

    assert words.violations(tree) == []


def test_a_folder_without_readme_is_named(tree):
    write(tree, "plugins/fusion/fold.cpp", "\n")

    assert only(readmes.violations(tree)).startswith("plugins/fusion:")


def test_a_folder_of_headers_needs_a_readme_too(tree):
    (tree / "sdk/include/README.md").unlink()

    assert only(readmes.violations(tree)).startswith("sdk/include:")


@pytest.mark.parametrize("heading", ["file", "files", "in `graph/`", "header (`graph/`)"])
def test_a_source_that_is_missing_in_a_table_of_files_is_named(tree, heading):
    readme = "host/README.md" if "`" in heading else "host/graph/README.md"
    write(tree, readme, f"| {heading} | what |\n|---|---|\n| `graph.hpp` | data; `op` |\n")
    write(tree, "host/graph/op.cpp", "\n")
    assert listed.violations(tree) == []

    write(tree, "host/graph/edit.cpp", "\n")
    assert only(listed.violations(tree)) == f"{readme}: expected a row of edit"


@pytest.mark.parametrize(
    "name, count",
    [("host/graph/big.cpp", 401), ("abi/include/tenon/big.h", 151), ("scripts/big.lua", 401)],
)
def test_a_file_over_its_budget_is_named(tree, name, count):
    write(tree, name, "x\n" * (count - 1))
    assert budgets.violations(tree) == []

    write(tree, name, "x\n" * count)
    assert only(budgets.violations(tree)).startswith(f"{name}: expected at most {count - 1}")


@pytest.mark.parametrize("room", sorted(budgets.ROOMS))
def test_a_room_over_its_budget_is_named(tree, room):
    folders, limit, _ = budgets.ROOMS[room]
    for index in range(limit // 400 + 1):  # over all folders of the room
        write(tree, f"{folders[index % len(folders)]}/part{index}.cpp", "x\n" * 400)

    assert only(budgets.violations(tree)).startswith(f"{room}: expected at most {limit}")


@pytest.mark.parametrize("room", sorted(budgets.ROOMS))
def test_a_room_of_few_long_lines_is_over_its_budget_too(tree, room):
    folders, _, limit = budgets.ROOMS[room]
    for index in range(limit // 5000 + 1):
        write(tree, f"{folders[0]}/part{index}.cpp", "x;" * 2500)

    assert only(budgets.violations(tree)).startswith(f"{room}: expected at most {limit} tokens")


def test_a_file_of_few_long_lines_is_named(tree):
    write(tree, "plugins/ops/dense.cpp", "x;" * (budgets.TOKENS_PER_FILE // 2 + 1))

    assert "tokens" in only(budgets.violations(tree))


def test_a_folder_of_the_host_without_a_budget_is_named(tree):
    write(tree, "host/annex/extra.cpp", "x\n")

    assert only(budgets.violations(tree)).startswith("host/annex/extra.cpp: expected a folder")


TEXTS = """
// int none(int a) { return a ? 1 : 2; }
namespace a::b { namespace {
constexpr int kTable[] = {1, 2};  /* if (x) { */
const char* text = R"(if (x) { "y" )" "while";
struct Pair final : Base<int, int> {
  Pair(int x, std::pair<int, int> y) : x_{x}, y_(y) {}
  bool operator()(int z) const noexcept { return z > x_ && z < 3 || !z; }
  int get() const;
  int x_ = 0;
};
template <class T, class U = int>
auto Pair::get() const -> std::vector<T> requires Small<T> {
  for (int i : {1, 2}) {
    auto f = [&](int p, int q) { return p ? q : 0; };
    if (i) f(1, 2);
  }
  return {};
}
enum class Kind : int { kA, kB };
}}
#define LOOP(x) if (x) { for (;;) {} }
extern "C" int entry(void (*call)(int, int), int n, ...) { return n; }
TEST_F(Suite, Says) { while (true) break; }
"""


def test_functions_are_found_with_what_they_have():
    found = [(f.name, f.line, f.parameters, f.decisions) for f in cxx_functions.functions(TEXTS)]

    assert found == [
        ("Pair", 7, 2, 1),
        ("operator()", 8, 1, 3),
        ("get", 12, 0, 4),
        ("entry", 23, 3, 1),
        ("TEST_F", 24, 2, 2),
    ]


@pytest.mark.parametrize(
    "name, text, what",
    [
        ("host/graph/a.cpp", "int f(int x) { return x" + " ? 1 : x" * 25 + "; }", "decisions"),
        ("host/graph/a.cpp", "int f(" + "int a, " * 8 + "int b) { return b; }", "parameters"),
        ("host/graph/a.cpp", "int f(int x) { return x" + " + 1" * 530 + "; }", "tokens"),
        ("scripts/a.py", "def f(x):\n" + "    if x: f(x)\n" * 25, "decisions"),
        ("scripts/a.py", "def f(a, b, c, d, e, g, h, i, j): pass\n", "parameters"),
    ],
)
def test_a_function_over_a_limit_is_named(tree, name, text, what):
    write(tree, name, text)

    line = only(functions.violations(tree))
    assert line.startswith(f"{name}:1: f: expected at most {functions.LIMITS[what]} {what}")


def test_a_known_function_that_keeps_the_limit_is_named(tree):
    write(tree, "plugins/ops/matmul.cpp", "int multiply(int a) { return a; }\n")

    assert "multiply keeps the limit" in only(functions.violations(tree))


# Put together from pieces: what the gate forbids stands nowhere in the tree, here neither.
@pytest.mark.parametrize(
    "pieces",
    [
        ("see /", "root/notes"),
        ("cp /", "home/ann/x ."),
        ("data in ..", "/shared/x"),
        ("from https://pypi", ".org/simple"),
    ],
)
def test_a_trace_of_the_machine_is_named(tree, pieces):
    write(tree, "scripts/go", f"first\n{''.join(pieces)}\n")

    assert only(machine_paths.violations(tree)).startswith("scripts/go:2:")


def test_the_folder_of_the_checkout_is_a_trace_too(tree):
    write(tree, "README.md", f"built in {tree.parent}/build\n")

    assert str(tree.parent) in only(machine_paths.violations(tree))


def test_words_that_look_like_paths_are_no_trace(tree):
    write(
        tree,
        "README.md",
        "/".join(("${dir}", "root", "x, a", "home", "b", "c, net", "shared", "x\n")),
    )

    assert machine_paths.violations(tree) == []


@pytest.mark.parametrize(
    "text",
    [
        'if (node.is("Softmax"))',
        'type == "Gemm"',
        '{"ReduceMean", couple}',
        'is("Grow")',
        'names("ai.onnx:Softmax")',
        'match("%y = Relu(%x)")',
        'any_of("Grow,Else", type)',
    ],
)
def test_an_operator_known_by_name_is_named(tree, text):
    write(tree, "plugins/ops/grow.cpp", 'op_row({.type = "Grow"})\n')
    write(tree, "plugins/pruner/README.md", "")
    write(tree, "plugins/pruner/rules/rules.cpp", f"// as a Softmax\n{text}\n")

    assert only(operator_names.violations(tree)).startswith("plugins/pruner/rules/rules.cpp:2:")


@pytest.mark.parametrize(
    "text",
    [
        'b.op("Mul", {x, y})',
        '.type = "Cast"',
        'is("QuantizeLinear")',
        '"name" // "Softmax"',
        'refuse("no Softmax is in front of it")',
    ],
)
def test_a_node_that_is_made_has_a_name(tree, text):
    write(tree, "plugins/quantizer/README.md", "")
    write(tree, "plugins/quantizer/track.cpp", f"{text}\n")

    assert operator_names.violations(tree) == []


@pytest.mark.parametrize(
    "text", ['std::printf("%s", name);', "std::cout << name;", "fwrite(a, 1, n, stdout);"]
)
def test_text_past_the_one_way_to_the_terminal_is_named(tree, text):
    write(tree, "bindings/lua/command/list.cpp", f"void list() {{\n  {text}\n}}\n")
    assert only(terminal.violations(tree)).startswith("bindings/lua/command/list.cpp:2:")
    write(tree, "bindings/lua/command/list.cpp", "std::snprintf(text, 8, format);  // printf(\n")
    assert terminal.violations(tree) == []


@pytest.mark.parametrize("call", ["luaL_checkstring(state, 1)", 'luaL_error(state, "no")'])
def test_a_jump_past_destructors_is_named(tree, call):
    write(tree, "bindings/lua/module/tensor.cpp", f"int zeros() {{\n  {call};\n}}\n")
    assert only(jumps.violations(tree)).startswith("bindings/lua/module/tensor.cpp:2:")
    write(tree, "bindings/lua/module/tensor.cpp", 'luaL_checkstack(state, 4, "tables");\n')
    assert jumps.violations(tree) == []


@pytest.fixture
def tests(tree):
    """A tree in which everything is tested, and each way of naming a test is used."""
    for name, text in {
        "tests/CMakeLists.txt": "tenon_add_folders(abi plugins/ops plugins/onnx)\n",
        "tests/README.md": "",
        "tests/abi/README.md": "",
        "tests/plugins/README.md": "",
        "tests/abi/CMakeLists.txt": "foreach(test rules_test)\nadd_test(NAME ${test})\n",
        "tests/abi/rules_test.py": "",
        "tests/plugins/ops/CMakeLists.txt": "tenon_add_test(SOURCES matmul_test.cpp)\n",
        "tests/plugins/ops/matmul_test.cpp": "",
        "tests/plugins/onnx/CMakeLists.txt": (
            "add_test(NAME onnx COMMAND python -m pytest ${CMAKE_CURRENT_SOURCE_DIR})\n"
        ),
        "tests/plugins/onnx/reader_test.py": "",
    }.items():
        write(tree, name, text)
    return tree


def test_tests_that_are_named_are_run(tests):
    assert tested.violations(tests) == []


@pytest.mark.parametrize(
    "name",
    ["tests/plugins/ops/softmax_test.cpp", "tests/abi/test_layout.py", "tests/abi/x_test.lua"],
)
def test_a_test_that_nobody_runs_is_named(tests, name):
    write(tests, name, "")

    assert only(tested.violations(tests)).startswith(f"{name}: expected its name")


def test_a_folder_of_tests_that_is_not_added_is_named(tests):
    write(tests, "tests/CMakeLists.txt", "tenon_add_folders(abi plugins/op plugins/onnx)\n")

    assert only(tested.violations(tests)).startswith("tests/plugins/ops: expected to be added")


def test_a_plugin_without_tests_is_named(tests):
    write(tests, "plugins/fusion/README.md", "")
    write(tests, "plugins/fusion/fold.cpp", "")

    assert (
        only(tested.violations(tests)) == "plugins/fusion: expected a test in tests/plugins/fusion"
    )
