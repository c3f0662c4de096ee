# SPDX-License-Identifier: Apache-2.0
"""Files that are compiled together mean what they mean alone; an edit that makes names clash does
not need anybody to know of batches."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CMAKE = Path(__file__).resolve().parents[2] / "sdk" / "cmake"
sys.path.insert(0, str(CMAKE))
import batches  # noqa: E402

PROJECT = f"""
cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
set(TENON_PYTHON {sys.executable})
add_executable(small main.cpp left.cpp right.cpp)
include({CMAKE}/TenonBatches.cmake)
tenon_batch_sources(8)
"""
MAIN = """
#include <cstdio>
int left();
int right();
int main() { std::printf("%d %d", left(), right()); }
"""
# Without the renaming the second would call the first one's overload.
LEFT = """
namespace {
int scaled(int x) { return 10 * x; }
}  // namespace
int left() { return scaled(1); }
"""
RIGHT = """
namespace {
int scaled(long x) { return 20 * static_cast<int>(x); }
}  // namespace
int right() { return scaled(1); }
"""


def read(folder: Path, name: str, text: str) -> batches.File:
    (folder / name).write_text(text)
    return batches.read(folder / name, batches.Headers(folder))


def made_of(folder: Path, files: list[batches.File]) -> list[batches.Batch]:
    return batches.batches_of(files, 8, batches.Headers(folder))


def names_of(found: list[batches.Batch]) -> list[list[str]]:
    return [[file.path.name for file in batch.files] for batch in found]


def test_what_a_file_keeps_to_itself_is_found():
    text = """
#define LOCAL 1
using Floats = std::vector<float>;
static int hidden(int x);
int shown(int x);
namespace {
enum { kA, kB };
enum Input : int { kX, kY = 2 };
constexpr int kOne = 1, kTwo = 2;
template <class T>
T twice(T x) {
  int inside = 2;
}
struct Own : Base {
std::vector<std::pair<int, int>>
long_name(int x) {
__attribute__((target("avx2"))) int tuned(int x) {
Value (*table[])(int) = {};
}  // namespace
int also_shown();
"""
    expected = "LOCAL Input kX kY Floats hidden kA kB kOne kTwo twice Own long_name tuned"
    assert set(expected.split()) <= batches.declared(text)
    assert not {"shown", "also_shown", "inside", "int"} & batches.declared(text)


def test_a_name_that_another_file_says_is_renamed(tmp_path):
    files = [read(tmp_path, "left.cpp", LEFT), read(tmp_path, "right.cpp", RIGHT)]

    (batch,) = made_of(tmp_path, files)

    assert "#define scaled scaled_of_right_1" in batch.text()
    assert batch.text().count("#undef scaled") == 2


@pytest.mark.parametrize(
    "use",
    [
        "x.scaled",
        "p->scaled",
        "other::scaled(1)",
        "TENON_ROW(scaled, 1)",
        "#define USE scaled",
        "int scaled(int x) override;",
    ],
)
def test_a_name_that_means_something_else_too_parts_the_files(tmp_path, use):
    files = [
        read(tmp_path, "left.cpp", LEFT),
        read(tmp_path, "right.cpp", f"{RIGHT}\n{use}\n"),
        read(tmp_path, "third.cpp", "int third();\n"),
    ]

    assert names_of(made_of(tmp_path, files)) == [["left.cpp", "third.cpp"], ["right.cpp"]]


def test_a_name_that_a_header_of_another_file_says_is_renamed(tmp_path):
    (tmp_path / "far.hpp").write_text("int scaled(int x);\n")
    (tmp_path / "own.hpp").write_text('#include "far.hpp"\n')
    left = read(tmp_path, "left.cpp", LEFT)
    other = read(tmp_path, "other.cpp", '#include "own.hpp"\nint other();\n')
    assert "#define scaled scaled_of_left_0" in made_of(tmp_path, [left, other])[0].text()


def test_a_macro_of_a_header_parts_files_that_say_it_without(tmp_path):
    (tmp_path / "own.hpp").write_text("#define scaled(x) (3 * (x))\n")
    files = [
        read(tmp_path, "left.cpp", LEFT),
        read(tmp_path, "other.cpp", '#include "own.hpp"\nint other() { return scaled(1); }\n'),
    ]

    assert names_of(made_of(tmp_path, files)) == [["left.cpp"], ["other.cpp"]]


def test_overloads_of_two_headers_part_files(tmp_path):
    (tmp_path / "near.hpp").write_text("int scaled(int x);\n")
    (tmp_path / "far.hpp").write_text("int scaled(long x);\n")
    files = [
        read(tmp_path, "a.cpp", '#include "near.hpp"\nint a() { return scaled(1); }\n'),
        read(tmp_path, "b.cpp", '#include "far.hpp"\nint b() { return scaled(1); }\n'),
        read(tmp_path, "c.cpp", '#include "far.hpp"\nint c();\n'),
    ]

    assert names_of(made_of(tmp_path, files)) == [["a.cpp"], ["b.cpp", "c.cpp"]]


def test_an_overload_of_a_function_in_its_own_header_keeps_its_name(tmp_path):
    (tmp_path / "own.hpp").write_text("int scaled(char x);\n")
    files = [
        read(tmp_path, "left.cpp", f'#include "own.hpp"\n{LEFT}'),
        read(tmp_path, "third.cpp", '#include "own.hpp"\nint third();\n'),
        read(tmp_path, "right.cpp", RIGHT),
    ]

    assert names_of(made_of(tmp_path, files)) == [["left.cpp", "third.cpp"], ["right.cpp"]]


def test_headers_come_before_the_names(tmp_path):
    (tmp_path / "own.hpp").write_text("")
    files = [
        read(tmp_path, "left.cpp", f'#include "own.hpp"\n#include <vector>\n{LEFT}'),
        read(tmp_path, "right.cpp", f"#if X\n#include <none>\n#endif\n{RIGHT}"),
    ]

    text = made_of(tmp_path, files)[0].text()

    headers = re.match(r'#include "own.hpp"\n#include <vector>\n#define', text)
    assert headers and "none" not in text


def test_the_text_of_another_file_is_no_code(tmp_path):
    text = (
        'const char* kText = R"(#include <none>\nnamespace {\nint scaled();\n}  // namespace\n)";\n'
    )
    files = [read(tmp_path, "left.cpp", LEFT), read(tmp_path, "made.cpp", text)]

    assert "#" not in made_of(tmp_path, files)[0].text().replace('#include "', "")


def test_a_file_that_configures_a_header_stays_alone(tmp_path):
    files = [
        read(tmp_path, "left.cpp", f"#define STB_IMAGE_IMPLEMENTATION\n#include <stb>\n{LEFT}"),
        read(tmp_path, "third.cpp", "int third();\n"),
        read(tmp_path, "fourth.cpp", "int fourth();\n"),
    ]

    assert names_of(made_of(tmp_path, files)) == [["left.cpp"], ["third.cpp", "fourth.cpp"]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    if not shutil.which("ninja"):
        pytest.fail("expected ninja: run scripts/setup")
    source = tmp_path / "source"
    source.mkdir()
    for name, text in {
        "CMakeLists.txt": PROJECT,
        "main.cpp": MAIN,
        "left.cpp": LEFT,
        "right.cpp": RIGHT,
    }.items():
        (source / name).write_text(text)
    compiler = os.environ.get("CXX", "c++")
    options = ("-G", "Ninja", f"-DCMAKE_CXX_COMPILER={compiler}")
    run("cmake", *options, "-S", source, "-B", tmp_path / "build")
    return tmp_path


def run(*command: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_edit_that_makes_names_clash_is_built(project):
    run("cmake", "--build", project / "build")
    assert run(project / "build" / "small") == "10 20"

    own = "namespace {\nint scaled(char x) { return x; }\n}  // namespace\nint main"
    text = MAIN.replace("int main", own).replace(", left()", ", left() + scaled('a')")
    (project / "source" / "main.cpp").write_text(text)
    run("cmake", "--build", project / "build")

    assert run(project / "build" / "small") == f"{10 + ord('a')} 20"
    assert "no work to do" in run("cmake", "--build", project / "build")


def test_facts_of_files_that_did_not_change_are_kept(tmp_path, monkeypatch):
    source, kept = tmp_path / "a.cpp", tmp_path / "facts"
    source.write_text("namespace {\nint one() { return 1; }\n}\n")
    first = batches.Reader(kept)
    assert first.facts(str(source)).declared == {"one"}
    first.keep()

    with monkeypatch.context() as patched:
        patched.setattr(batches, "source_facts", lambda text: pytest.fail("read again"))
        assert batches.Reader(kept).facts(str(source)).declared == {"one"}

    source.write_text("namespace {\nint another() { return 1; }\n}\n")
    assert batches.Reader(kept).facts(str(source)).declared == {"another"}


def test_damaged_facts_are_read_anew(tmp_path):
    source, kept = tmp_path / "a.cpp", tmp_path / "facts"
    source.write_text("static int one = 1;\n")
    kept.write_bytes(b"no pickle")

    assert batches.Reader(kept).facts(str(source)).declared == {"one"}
