# SPDX-License-Identifier: Apache-2.0
"""`tenon plugin check` passes what is right and names what is wrong: one fault for each check.

`tenon plugin new` writes plugins that build against the installed SDK and pass.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from faults import FAULTS, FOLLOWS, OUTSIDE

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["TENON_BUILD"])
TENON = BUILD / "bin/tenon"
PLUGINS = os.environ["TENON_PLUGINS"]

ABI = json.loads((BUILD / "share/tenon/tenon.json").read_text())
ROLES = ["SCHEDULE", "CALLBACK", "IMPORTANCE", "OBSERVER", "PASS", "READER", "OPS"]
ROLES += ["DATASET", "METRIC", "INITIALIZER", "LOSS", "OPTIMIZER", "LAYER", "KERNEL", "COLLECTIVE"]


def tenon(*args, cwd=None) -> subprocess.CompletedProcess:
    command = [TENON, "--plugin-path", PLUGINS, *args]
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, timeout=250
    )


def built(folder: Path, role: str, fault: str = "", flags: list[str] | None = None) -> Path:
    library = folder / "faulty.so"
    flags = [f"-D{role}", *([f"-DFAULT_{fault}"] if fault else []), *(flags or [])]
    include = [f"-I{ROOT}/abi/include", f"-I{ROOT}/sdk/include"]
    source = ROOT / "tests/sdk/faulty_plugin.c"
    subprocess.run(
        ["cc", "-std=gnu99", "-fPIC", "-shared", "-fvisibility=hidden", *flags, *include, source]
        + ["-o", library],
        check=True,
    )
    return library


def checked(library: Path, *flags) -> tuple[int, dict[str, dict]]:
    done = tenon("plugin", "check", library, "--json", *flags)
    assert done.returncode in (0, 1), done
    components = json.loads(done.stdout)
    return done.returncode, {one["check"]: one for c in components for one in c["checks"]}


@pytest.mark.parametrize("role", ROLES)
def test_a_plugin_that_is_right_passes(tmp_path, role):
    code, checks = checked(built(tmp_path, role))

    assert [one for one in checks.values() if one["result"] == "failed"] == []
    assert code == 0
    assert len(checks) >= 7


def functions_of(role: str) -> list[tuple[str, bool]]:
    """Names of the functions of a role's table, and whether they may be missing."""
    fields = ABI["structs"][ABI["roles"][f"tenon.{role.lower()}/1"]]["fields"]
    return [(one["name"], one.get("nullable", False)) for one in fields if "function" in one]


@pytest.mark.parametrize("role", ROLES)
def test_a_function_that_the_table_lacks_is_named(tmp_path, role):
    # What a kernel does not claim, the plan's other backends run.
    unnamed = {("KERNEL", "claim")}
    for number, (name, may_be_missing) in enumerate(functions_of(role)):
        code, checks = checked(built(tmp_path, role, flags=[f"-DHOLE={number}"]))

        failed = [one["why"] for one in checks.values() if one["result"] == "failed"]
        assert code == (0 if may_be_missing else 1), (name, checks)
        if not may_be_missing and (role, name) not in unnamed:
            assert any(f"function {name} " in why for why in failed), (name, failed)


def test_two_files_with_one_id_are_named(tmp_path):
    library = built(tmp_path, "SCHEDULE")
    twin = tmp_path / "twin.so"
    twin.write_bytes(library.read_bytes())

    code, checks = checked(library)

    assert code == 1 and checks["library"]["result"] == "failed"
    assert "twin.so" in checks["library"]["why"] and "one id" in checks["library"]["why"]


def test_versions_of_an_operator_are_each_tried_by_their_own_sample(tmp_path):
    code, checks = checked(built(tmp_path, "OPS", flags=["-DVERSIONS"]))

    assert code == 0, checks
    assert {"com.example:Twice 1 runs", "com.example:Twice 3 runs"} <= set(checks)


def test_an_operator_with_two_results_passes(tmp_path):
    code, checks = checked(built(tmp_path, "OPS", flags=["-DPAIR"]))

    assert code == 0, checks
    assert checks["com.example:Twice vjp"]["result"] == "passed"


def test_an_expression_of_integers_needs_no_sample(tmp_path):
    code, checks = checked(built(tmp_path, "OPS", flags=["-DINTEGERS"]))

    assert code == 0, checks
    assert checks["com.example:Twice runs"]["result"] == "passed"


@pytest.mark.parametrize(("role", "fault", "check", "words"), FAULTS)
def test_a_fault_is_named(tmp_path, role, fault, check, words):
    seconds = ["--seconds", "8"] if fault == "HANG" else []

    code, checks = checked(built(tmp_path, role, fault), *seconds)

    assert code == 1
    assert checks[check]["result"] == "failed", checks
    assert words in checks[check]["why"]
    if fault not in OUTSIDE:
        own = {check for r, f, check, _ in FAULTS if (r, f) == (role, fault)}
        failed = {name for name, one in checks.items() if one["result"] == "failed"}
        assert failed <= own | FOLLOWS.get((role, fault), set()), checks


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("FIELDS", "com.example.one: fields: expected a JSON array of objects with name"),
        ("ROWS", "com.example.one: field x: expected 2 samples, got float32[3"),
    ],
)
def test_a_data_set_that_breaks_its_word_is_named_in_use(tmp_path, fault, words):
    built(tmp_path, "DATASET", fault)
    script = tmp_path / "read.lua"
    script.write_text('require("tenon").data["com.example.one"]({}):batch(1, 2)')

    assert words in tenon("--plugin-path", tmp_path, "run", script).stderr


def test_a_build_with_a_sanitizer_is_named(tmp_path):
    library = built(tmp_path, "SCHEDULE", flags=["-fsanitize=undefined"])

    code, checks = checked(library)

    assert code == 1
    assert "without sanitizers" in checks["library"]["why"]


def test_a_linker_that_drops_what_is_unused_keeps_the_description(tmp_path):
    flags = ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"]

    code, checks = checked(built(tmp_path, "SCHEDULE", flags=flags))

    assert code == 0, checks


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize(("sanitizer", "word"), [("address", "1u"), ("thread", "2u")])
def test_a_build_says_which_sanitizer_it_has(tmp_path, compiler, sanitizer, word):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    source = tmp_path / "kind.c"
    source.write_text('#include "tenon/sdk/compiler.h"\nuint32_t kind = TENON_SANITIZER;\n')
    include = [f"-I{ROOT}/abi/include", f"-I{ROOT}/sdk/include"]

    made = subprocess.run(
        [compiler, f"-fsanitize={sanitizer}", "-E", *include, source],
        check=True,
        capture_output=True,
        text=True,
    )

    assert made.stdout.rstrip().endswith(f"kind = {word};")


def test_results_are_written_as_junit(tmp_path):
    library, xml = built(tmp_path, "SCHEDULE", "INFINITE"), tmp_path / "checks.xml"

    checked(library, "--junit", xml, "--seed", "7")

    suites = ElementTree.parse(xml).getroot()
    cases = suites.iter("testcase")
    failed = [case.get("name") for case in cases if case.find("failure") is not None]
    assert failed == ["finite"]
    assert sum(int(suite.get("failures")) for suite in suites) == 1


def test_a_seed_gives_other_samples(tmp_path):
    library = built(tmp_path, "OPS", "VJP")

    whys = [checked(library, "--seed", n)[1]["com.example:Twice vjp"]["why"] for n in (0, 40)]

    assert whys[0].startswith("seed 1:")
    assert whys[1].startswith("seed 41:")


def test_what_is_no_plugin_is_refused(tmp_path):
    path = tmp_path / "no_plugin.so"
    for content in (b"", b"text", b"\x7fELF" + bytes(100), os.urandom(5000)):
        path.write_bytes(content)
        done = tenon("plugin", "check", path)
        assert done.returncode == 1
        assert done.stderr.count("\n") == 1, done.stderr
    assert "no such file" in tenon("plugin", "check", tmp_path / "absent.so").stderr


def test_the_plugins_of_this_tree_pass():
    seams = BUILD / "test_plugins/seams/seams.so"  # a collective, a kernel, rows, passes
    for name in ("scheduler", "fakedev", "safetensors", "linalg", "pruner", "layers", seams):
        library = Path(PLUGINS) / f"{name}.so" if name != seams else seams
        if library.exists():
            _, checks = checked(library)
            assert [one for one in checks.values() if one["result"] == "failed"] == [], name


@pytest.fixture(scope="module")
def prefix(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("prefix")
    command = ["cmake", "--install", BUILD, "--component", "sdk", "--prefix", path]
    subprocess.run(command, check=True, capture_output=True)
    return path


# Of the headers: one without a template fails.
@pytest.mark.parametrize("role", sorted(ABI["roles"]))
def test_a_new_plugin_builds_and_passes(prefix, tmp_path, role):
    assert tenon("plugin", "new", "my_part", "--role", role, cwd=tmp_path).returncode == 0
    source = tmp_path / "my_part"
    strict = "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Wshadow -Werror"
    for command in (
        [
            "cmake",
            "-G",
            "Ninja",
            "-S",
            source,
            "-B",
            source / "build",
            f"-DCMAKE_PREFIX_PATH={prefix}",
            strict,
        ],
        ["cmake", "--build", source / "build"],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    code, checks = checked(source / "build/my_part.so")

    assert [one for one in checks.values() if one["result"] == "failed"] == []
    assert code == 0


def test_new_refuses_wrong_names_and_roles(tmp_path):
    for words, part in (
        (["9x", "--role", "pass"], "expected a word of small letters"),
        (["x", "--role", "passs"], "expected one of pass, schedule"),
        (["x", "--role", "pass", "--vendor", "Acme Corp"], "--vendor: expected a word of small"),
        (["x", "--role", "pass", "--vendor", ""], "--vendor: expected a value"),
        (["x"], "--role"),
    ):
        done = tenon("plugin", "new", *words, cwd=tmp_path)
        assert done.returncode == 2
        assert part in done.stderr
    (tmp_path / "there").mkdir()
    assert "it is there" in tenon("plugin", "new", "there", "--role", "pass", cwd=tmp_path).stderr
