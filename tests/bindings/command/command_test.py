# SPDX-License-Identifier: Apache-2.0
"""Exit codes, one-line errors and limits of the `tenon` command, without any plugin."""

import json
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from running import TENON, failed, tenon


def script(folder: Path, text: str) -> Path:
    path = folder / "pipeline.lua"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "command", ["run", "optimize", "evaluate", "infer", "bench", "compare", "inspect", "plugin"]
)
def test_each_command_has_help(command: str) -> None:
    result = tenon(command, "--help")
    assert result.returncode == 0
    assert "--json" in result.stdout or command == "plugin"


@pytest.mark.parametrize(
    ("args", "part"),
    [
        ([], "subcommand"),
        (["benhc"], "benhc"),
        (["bench"], "model"),
        (["bench", "m.onnx", "--precision", "int7"], "int7"),
        (["infer", "m.onnx", "--output-dir", "o", "--precision", "fp16"], "fp32, bf16, int8"),
        (
            ["infer", "m", "--output-dir", "o", "--backend", "reference", "--precision", "bf16"],
            "of fp32,",
        ),
        (["bench", "m.onnx", "--threads", "0"], "threads"),
        (["bench", "m.onnx", "--shape", "x=1xx3"], "NAME=1x3x224x224"),
        (["bench", "x.onnx", "--shape", "x=1x3", "--shape", "x=2x3"], "one shape for x"),
        (["run", "x.lua", "--set", "novalue"], "KEY=VALUE"),
    ],
)
def test_wrong_use_is_code_2(args: list[str], part: str) -> None:
    result = tenon(*args)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert part.lower().replace("key", "name") in result.stderr.lower().replace("key", "name")


def test_a_missing_model_and_script_are_named(tmp_path: Path) -> None:
    failed(tenon("inspect", tmp_path / "absent.onnx"), 1, "absent.onnx")
    failed(tenon("run", tmp_path / "absent.lua"), 1, "absent.lua")


def test_a_script_error_has_file_and_line(tmp_path: Path) -> None:
    path = script(tmp_path, "local x = 1\nerror('boom')\n")
    failed(tenon("run", path), 1, "pipeline.lua:2: boom")
    path = script(tmp_path, "local = 1\n")
    failed(tenon("run", path), 1, "pipeline.lua:1:")


def test_what_a_script_prints_is_no_part_of_its_json(tmp_path: Path) -> None:
    said = "print('begun')\nio.write('half')\nrequire('tenon').print_table({{ a = 1 }})\n"
    path = script(tmp_path, said + "return { value = 2 }\n")
    shown = ["begun", "half", "1"]
    result = tenon("run", path, "--json")
    assert json.loads(result.stdout) == {"value": 2}
    assert all(each in result.stderr for each in shown)
    result = tenon("run", path)
    assert all(each in result.stdout for each in shown) and result.stderr == ""


def test_plugin_info_says_what_each_option_takes() -> None:
    lines = tenon("plugin", "info", "pruner.structured").stdout.splitlines()
    assert lines[0].startswith("pruner.structured ") and "plugin pruner" in lines[0]
    options = {line.split()[0]: " ".join(line.split()[1:]) for line in lines[4:]}
    assert options["ratio"].startswith("number, 0 <= x < 1 0.5 share of the channels")
    assert options["scope"].startswith('local, global "local" rank channels')
    assert options["data"].startswith("component for scores")
    trained = tenon("plugin", "info", "trainer.train").stdout
    assert re.search(r"\n  data +component +required +samples to learn from", trained)
    whole = tenon("plugin", "info", "pruner").stdout
    assert whole.count("plugin pruner)") > 5


def test_plugin_info_of_what_is_not_there_names_what_is_near() -> None:
    failed(tenon("plugin", "info", "prunner"), 1, "one of the plugins", " pruner,", "'prunner'")
    result = tenon("plugin", "info", "pruner.structred")
    failed(result, 1, "expected one of pruner.", "pruner.structured", "got 'pruner.structred'")
    assert "quantizer" not in result.stderr


def test_an_endless_loop_ends_by_time_even_inside_pcall(tmp_path: Path) -> None:
    path = script(tmp_path, "while true do pcall(function() while true do end end) end")
    failed(tenon("run", path, "--time", "0.2"), 1, "pipeline.lua:1:", "--time")


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        ("{ 1, 2 }", "expected a text, got table"),
        ("nil", "expected a text, got nil"),
        ("setmetatable({}, { __tostring = function() return 'so' end })", "so"),
        ("setmetatable({}, { __tostring = function() error('no') end })", "whose __tostring fails"),
        ("setmetatable({}, { __tostring = function() while true do end end })", "whose __tostring"),
    ],
)
def test_an_error_that_is_no_text_fails(tmp_path: Path, raised: str, words: str) -> None:
    failed(tenon("run", script(tmp_path, f"error({raised})"), "--time", "0.5"), 1, words)


def test_an_endless_loop_ends_by_instructions(tmp_path: Path) -> None:
    path = script(tmp_path, "local n = 0\nwhile true do n = n + 1 end")
    result = tenon("run", path, "--instructions", "1e7")
    failed(result, 1, "pipeline.lua:2: stopped", "10000000", "endless loop?", "--instructions")


def test_instructions_are_limited_by_default() -> None:
    assert "(default: 4e9, " in " ".join(tenon("run", "--help").stdout.split())


def test_the_limit_of_instructions_is_not_a_limit_of_what_they_call(tmp_path: Path) -> None:
    path = script(tmp_path, "local s = ('x'):rep(1e7):upper()\nfor i = 1, 1e5 do end\nreturn #s")
    assert tenon("run", path, "--instructions", "1e6", "--json").stdout.strip() == "10000000"
    failed(tenon("run", path, "--instructions", "2e4"), 1, "pipeline.lua:2: stopped")
    assert tenon("run", path, "--trust").returncode == 0


@pytest.mark.parametrize("trust", [(), ("--trust",)])
def test_a_script_that_requires_itself_is_reported_with_its_line(
    tmp_path: Path, trust: tuple
) -> None:
    path = script(tmp_path, "\nlocal other = require 'other'")
    (tmp_path / "other.lua").write_text("local p = require 'pipeline'")
    failed(tenon("run", path, *trust), 1, ".lua:", "module 'other' requires itself")


def test_modules_that_are_missing_may_be_tried_twice(tmp_path: Path) -> None:
    path = script(tmp_path, "pcall(require, 'absent')\nrequire 'absent'")
    failed(tenon("run", path), 1, "pipeline.lua:2: module 'absent' not found")


def test_a_list_of_nothing_stays_a_list(tmp_path: Path) -> None:
    path = script(tmp_path, "return require('tenon').args")
    assert tenon("run", path, "--set", "skip=[]", "--json").stdout.split() == [
        "{", '"skip":', "[]", "}",
    ]  # fmt: skip


def test_ctrl_c_stops_an_endless_loop(tmp_path: Path) -> None:
    path = script(tmp_path, "print('on')\nio.stdout:flush()\nwhile true do end")
    with subprocess.Popen(
        [TENON, "run", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "on\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "pipeline.lua:3: cancelled" in errors


ESCAPE = "\x1b]0;gone\x07\x1b[2J\x7f\x9b31m\u202e"
SHOWN = "\\u001b]0;gone\\u0007\\u001b[2J\\u007f\\u009b31m\\u202e"


def test_no_name_is_obeyed_by_the_terminal(tmp_path: Path) -> None:
    path = script(tmp_path, f"require('tenon').log.info('a {ESCAPE} b\\nerror: c')")
    assert tenon("run", path).stderr == f"info: a {SHOWN} b error: c\n"
    failed(tenon("inspect", tmp_path / f"{ESCAPE}.onnx"), 1, f"{SHOWN}.onnx")
    path = script(tmp_path, f"error('{ESCAPE}', 0)")
    failed(tenon("run", path), 1, SHOWN)
    path = script(tmp_path, f"require('tenon').print_table({{{{ ['{ESCAPE}'] = '{ESCAPE}' }}}})")
    result = tenon("run", path)
    assert SHOWN in result.stdout
    assert not [c for c in result.stdout if ord(c) < 32 and c != "\n" or 127 <= ord(c) < 160]
    path = script(tmp_path, f"return '{ESCAPE}'")
    result = tenon("run", path, "--json")
    assert json.loads(result.stdout) == ESCAPE
    assert not [c for c in result.stdout if ord(c) < 32 and c != "\n" or 127 <= ord(c) < 160]


@pytest.mark.parametrize(
    ("output", "parts"),
    [
        ("absent/out.onnx", ("-o absent/out.onnx: expected a folder ", "got none")),
        ("folder", ("-o folder: expected a file, got a folder",)),
        ("folder/", ("-o folder/: expected the name of a file",)),
        ("out.onxx", ("out.onxx: no writer is for such a file",)),
    ],
)
def test_an_output_is_refused_before_the_work(tmp_path: Path, output: str, parts: tuple) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "recipe.lua").write_text("error('it has begun')")
    result = tenon("optimize", "m.onnx", "-o", output, "--recipe", "recipe.lua", cwd=tmp_path)
    failed(result, 1, *parts)


def test_a_trace_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    path = script(tmp_path, "print('it has begun')")
    for trace, said in (("absent/t.json", "expected a folder"), (".", "expected a file, got a")):
        result = tenon("run", path, "--chrome-trace", trace, cwd=tmp_path)
        failed(result, 1, f"--chrome-trace {trace}: {said}")
        assert result.stdout == ""


def test_too_much_memory_is_an_error(tmp_path: Path) -> None:
    path = script(tmp_path, "local t = {}\nfor i = 1, 1e9 do t[i] = ('x'):rep(1000) .. i end")
    failed(tenon("run", path, "--memory", "20"), 1, "pipeline.lua", "--memory")


def test_trust_lifts_the_sandbox(tmp_path: Path) -> None:
    path = script(tmp_path, "assert(os.execute('true'))")
    failed(tenon("run", path), 1, "os.execute: not allowed", "--trust")
    assert tenon("run", path, "--trust").returncode == 0


def test_files_are_allowed_by_folder_and_by_argument(tmp_path: Path) -> None:
    inside = tmp_path / "scripts"
    inside.mkdir()
    data = tmp_path / "data.txt"
    data.write_text("hello")
    path = script(inside, f"print(io.open('{data}'):read())")
    failed(tenon("run", path, cwd=inside), 1, "outside the folders", "--allow")
    assert tenon("run", path, "--allow", tmp_path, cwd=inside).stdout == "hello\n"
    for given in (f"data={data}", f'data=["{data}"]', f'data={{"test": "{data}"}}'):
        assert tenon("run", path, "--set", given, cwd=inside).stdout == "hello\n"


def test_arguments_and_result_pass_through(tmp_path: Path) -> None:
    path = script(tmp_path, "local tn = require 'tenon'\nreturn {sum = tn.args.a + tn.args.b}")
    result = tenon("run", path, "--set", "a=2", "--set", "b=3", "--json")
    assert json.loads(result.stdout) == {"sum": 5}


def test_a_number_beyond_integers_is_a_float(tmp_path: Path) -> None:
    path = script(tmp_path, "return require('tenon').args")
    given = [part for n in (2**63 - 1, 2**63, 2**64 - 1) for part in ("--set", f"n{n % 10}={n}")]
    result = json.loads(tenon("run", path, "--json", *given).stdout)
    assert result == {"n7": 2**63 - 1, "n8": float(2**63), "n5": float(2**64)}


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = script(tmp_path, "require('tenon').write('absent/x.txt', 'new')")
    failed(tenon("run", path, cwd=tmp_path), 1, "absent/x.txt")
    assert not (tmp_path / "absent").exists()


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "npy"),
        (b"\x80\x04\x95abc", "pickle"),
        (b"\x93NUMPY\x01\x00\xff\xff{", "truncated"),
        (
            b"\x93NUMPY\x01\x00\x3c\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,)}    \n",  # noqa: E501
            "",
        ),
        (
            b"\x93NUMPY\x01\x00\x3a\x00{'descr': '<f4', 'fortran_order': False, 'shape': (9,), }\n",
            "",
        ),
        (
            b"\x93NUMPY\x01\x00\x4f\x00{'descr': '<f4', 'fortran_order': False, "
            b"'shape': (4294967296, 4294967296)} \n",
            "",
        ),
    ],
)
def test_a_bad_npy_is_refused(tmp_path: Path, content: bytes, part: str) -> None:
    (tmp_path / "x.npy").write_bytes(content)
    path = script(tmp_path, "require('tenon').npy('x.npy')")
    failed(tenon("run", path, cwd=tmp_path), 1, "x.npy", part)


def test_numpy_reads_what_we_write_and_the_other_way_round(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    fortran = numpy.asfortranarray(numpy.arange(6, dtype=">i2").reshape(2, 3))
    numpy.savez_compressed(tmp_path / "in.npz", a=fortran, b=numpy.float64([1.5]))
    path = script(
        tmp_path,
        "local tn = require 'tenon'\nlocal z = tn.npz('in.npz')\n"
        "z.a:save('a.npy') z.b:save('b.npy') tn.zeros({ 2 }, 'complex64'):save('c.npy')",
    )
    result = tenon("run", path, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    numpy.testing.assert_array_equal(numpy.load(tmp_path / "a.npy"), fortran)
    assert numpy.load(tmp_path / "b.npy") == 1.5
    assert numpy.load(tmp_path / "c.npy").dtype == numpy.complex64


def test_listing_is_quick_and_runs_nothing(tmp_path: Path) -> None:
    start = time.monotonic()
    result = tenon("plugin", "list", "--json")
    assert result.returncode == 0
    assert isinstance(json.loads(result.stdout), list)
    assert time.monotonic() - start < 60  # a hang, not a figure


def test_roles_and_functions_are_for_verbose_only(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"no model")
    plain = tenon("inspect", "m.onnx", cwd=tmp_path)
    failed(plain, 1, "m.onnx")
    assert "(role " not in plain.stderr
    assert "(function " not in plain.stderr
    assert "(component " not in plain.stderr
    verbose = tenon("-v", "inspect", "m.onnx", cwd=tmp_path)
    assert verbose.returncode == 1
    assert "(role tenon.reader/1) (function read)" in verbose.stderr.splitlines()[-1]
