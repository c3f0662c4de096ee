# SPDX-License-Identifier: Apache-2.0
"""Every function of the table is in Python and in Lua and agrees with NumPy, and no public function
is in one of them only. TENON_COMMAND names the command."""

import ast
import inspect
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tenon as tn
from cases import CASES
from tenon import _core

ROWS = {row["name"]: row for row in _core.array_functions()}
IDS = [f"{i} {case[0]}" for i, case in enumerate(CASES)]
# What one language has and the other says otherwise, and how.
CLASSES = {name for name in tn.__all__ if isinstance(getattr(tn, name), type)}
CLASSES -= {"custom_vjp"}
PYTHON_ONLY = {
    "e": "math.exp(1)",
    "inf": "math.huge",
    "nan": "0/0",
    "pi": "math.pi",
    "newaxis": "tn.expand_dims",
    **dict.fromkeys(
        (f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)), "its name as a text"
    ),
    **dict.fromkeys(("bool", "float16", "bfloat16", "float32", "float64"), "its name as a text"),
    **dict.fromkeys(
        ("can_cast", "finfo", "iinfo", "isdtype", "result_type"), "Lua has one number type"
    ),
    "parse": "tn.load of a text",
    "configure": "the command's flags",
    "doctor": "tenon plugin doctor",
    "progress": "the command shows it",
    "session": "the command opens it",
}
LUA_ONLY = {
    "args": "sys.argv",
    "bench": "tenon bench",
    "compare": "tenon compare",
    "json": "json.dumps",
    "model": "tn.jit(f).trace(x)",
    "normal": "NumPy's generators",
    "npy": "np.load",
    "npz": "np.load",
    "print_table": "print",
    "recipe": "recipes are in Lua",
    "repeat_": "tn.repeat: in Lua a word of the language",
    "slice": "x[a:b]",
    "step": "tn.Step",
    "tensor": "np.array",
    "version": "tn.__version__",
    "write": "open",
}


def public(name):  # `linalg.solve` is a function of the part tn.linalg
    found = tn
    for part in name.split("."):
        found = getattr(found, part)
    return found


def named(args):
    return (args[:-1], args[-1]) if args and isinstance(args[-1], dict) else (args, {})


def to_number(x):
    return int(x) if isinstance(x, bool) else x  # tn.tensor takes numbers


def literal(x):
    if isinstance(x, np.ndarray):
        return (
            f"tn.astype(tn.reshape(tn.tensor({literal(list(map(to_number, x.ravel().tolist())))}), "
            f'{literal(x.shape)}), "{x.dtype}")'
        )
    if isinstance(x, (list, tuple)):
        return "{" + ", ".join(map(literal, x)) + "}"
    if isinstance(x, dict):
        return "{" + ", ".join(f"{key} = {literal(value)}" for key, value in x.items()) + "}"
    if isinstance(x, float):
        return {"inf": "math.huge", "-inf": "-math.huge", "nan": "0/0"}.get(str(x), repr(x))
    return f'"{x}"' if isinstance(x, str) else str(x).lower()


SCRIPT = """
local tn = require "tenon"
local function show(case, place, x)
  local values = {}
  for i = 1, #x:values() do
    local v = x:values()[i]
    if type(v) == "boolean" then v = v and 1 or 0 end
    values[i] = v ~= v and "nan" or math.type(v) == "integer" and tostring(v) or ("%.9g"):format(v)
  end
  print(("case %d %d %s [%s] %s"):format(case, place, x:dtype(), table.concat(x:shape(), " "),
    table.concat(values, " ")))
end
local function all(case, x, names)
  if type(x) ~= "table" then return show(case, 0, x) end
  for i = 1, #(names or x) do show(case, i - 1, x[names and names[i] or i]) end
end
"""


def run_lua(text, folder):
    path = folder / "script.lua"
    path.write_text(text)
    made = subprocess.run(
        [os.environ["TENON_COMMAND"], "run", str(path)], capture_output=True, text=True, cwd=folder
    )
    assert made.returncode == 0, made.stderr
    return made.stdout.splitlines()


@pytest.fixture(scope="module")
def lua(tmp_path_factory):
    lines = []
    for i, (name, args, _) in enumerate(CASES):
        results = ROWS[name]["results"]
        names = literal(results) if isinstance(results, list) else "nil"
        function = "tn" + "".join(f'["{part}"]' for part in name.split("."))
        call = f"{function}({', '.join(map(literal, args))})"
        lines.append(f"all({i}, {call}, {names})")
    found = {}
    for line in run_lua(SCRIPT + "\n".join(lines), tmp_path_factory.mktemp("lua")):
        if not line.startswith("case "):
            continue
        head, _, rest = line.partition("[")
        shape, _, values = rest.partition("] ")
        _, case, _, dtype = head.split()
        read = np.array(values.split(), "float64").astype(dtype)
        found.setdefault(int(case), []).append(read.reshape([int(n) for n in shape.split()]))
    return found


def in_python(name, args):
    made = public(name)(*named(args)[0], **named(args)[1])
    return [np.asarray(x) for x in (made if isinstance(made, tuple) else (made,))]


def agrees(got, oracle, args):
    with np.errstate(all="ignore"):
        want = oracle(*named(args)[0], **named(args)[1])
    if callable(want):
        assert want(*got)
        return
    want = want if isinstance(want, (list, tuple)) else [want]
    assert len(got) == len(want)
    for mine, numpys in zip(got, want):
        assert mine.shape == np.shape(numpys)
        assert mine.dtype == np.asarray(numpys).dtype
        np.testing.assert_allclose(mine, numpys, rtol=4e-6, atol=2e-6)


def test_every_function_of_the_table_has_a_case_and_no_other_has_one():
    assert {name for name, _, _ in CASES} == set(ROWS)


@pytest.mark.parametrize("case", range(len(CASES)), ids=IDS)
def test_python_gives_what_numpy_does(case):
    name, args, oracle = CASES[case]
    agrees(in_python(name, args), oracle, args)


@pytest.mark.parametrize("case", range(len(CASES)), ids=IDS)
def test_lua_gives_what_numpy_does(case, lua):
    name, args, oracle = CASES[case]
    agrees(lua[case], oracle, args)


def test_random_numbers_are_the_same_in_both(lua):
    for i, (name, args, _) in enumerate(CASES):
        if name in ("dropout", "random_normal", "random_uniform"):
            np.testing.assert_allclose(in_python(name, args)[0], lua[i][0], rtol=1e-6)


def test_every_row_says_what_it_does_and_what_it_takes():
    for name, row in ROWS.items():
        assert row["doc"].endswith(".") and public(name).__doc__ == row["doc"]
        assert [p["name"] for p in row["parameters"]] == [*public(name).__signature__.parameters]


def test_an_editor_knows_them():
    report = {}
    for part in ("arrays", "fft", "linalg"):
        stubs = ast.parse(Path(tn.__file__).with_name(f"{part}.pyi").read_text())
        front = "" if part == "arrays" else f"{part}."
        report |= {front + n.name: n for n in stubs.body if isinstance(n, ast.FunctionDef)}
    assert set(report) == {*ROWS, "op"}
    for name, row in ROWS.items():
        given = report[name].args
        names = [a.arg for a in (*given.args, *filter(None, [given.vararg]), *given.kwonlyargs)]
        assert names == [p["name"] for p in row["parameters"]]


def test_no_public_function_is_in_one_language_only(tmp_path):
    script = 'for name in pairs(require "tenon") do print(name) end'
    lua = set(run_lua(script, tmp_path))
    assert set(tn.__all__) - CLASSES - lua == set(PYTHON_ONLY)
    assert lua - set(tn.__all__) == set(LUA_ONLY)


# What is no number, no text and no list that a function could mean.
WRONG = ["no such word", [[1.5], "x"], {"a": 1}, np.float32([2.0, 3.0]), np.array(3.0), object()]
STATIC = {"int", "ints", "axes", "flag", "scalar", "plain", "dtype", "text"}


@pytest.mark.parametrize("name", sorted({case[0] for case in CASES}))
def test_arguments_of_a_wrong_kind_are_refused_in_words(name):
    args, more = named(next(case[1] for case in CASES if case[0] == name))
    for i, parameter in enumerate(ROWS[name]["parameters"]):
        if parameter["kind"] not in STATIC:
            continue
        for wrong in WRONG:
            with pytest.raises((tn.TenonError, TypeError, ValueError, IndexError)) as failed:
                public(name)(*args[:i], **{**more, parameter["name"]: wrong})
            assert "json" not in str(failed.value), (parameter["name"], wrong)


STEP_OPTIONS = {  # of Step in both languages, as Lua writes them
    "optimizer": '"trainer.sgd"',
    "has_aux": "true",
    "check_nan": "true",
    "joint": "{}",
    "accumulate": "2",
    "average": "0.5",
    "settings": "{ rate = 1 }",
    "backend": '"reference"',
    "precision": '"fp32"',
    "threads": "1",
    "clip_norm": "1",
    "clip_value": "1",
    "groups": '{ all = { parameters = "*", rate = 0.5 } }',
}
STEP_MEMBERS = {  # of Python, and how Lua has them
    "averages": "step:averages()",
    "count": 'step:state()["step/count"]',
    "describe": "step:describe()",
    "joint_reports": None,  # Lua's passes give theirs where they are applied
    "parameters": "step:parameters()",
    "set_state": "step:set_state(step:state())",
    "settings": "step.settings",
    "state": "step:state()",
    "trace": None,  # as model:apply of the same passes
}


def test_steps_of_both_languages_have_the_same(tmp_path):
    named = inspect.signature(tn.Step.__init__).parameters.values()
    own = {one.name for one in named if one.kind is one.POSITIONAL_OR_KEYWORD}
    assert own - {"self", "loss", "parameters"} <= set(STEP_OPTIONS)
    step = tn.Step(lambda w: (w * w).sum(), np.ones(1, "float32"), "sgd")
    assert {name for name in dir(step) if not name.startswith("_")} == set(STEP_MEMBERS)
    lines = ['local tn = require "tenon"']
    setting = 'tn.setting("rate", 1)'
    for name, value in STEP_OPTIONS.items():
        used = setting if name == "settings" else "1"
        lines += [
            f"step = tn.step(function(p, x) return (p * x * {used}):sum() end, "
            f'tn.tensor({{ 1 }}, "float32"), {{ {name} = {value} }})',
            'step(tn.tensor({ 1 }, "float32"))',
            *(["x = step:averages()"] if name == "average" else []),
        ]
    lines += [f"x = {call}" for call in STEP_MEMBERS.values() if call and "averages" not in call]
    run_lua("\n".join(lines), tmp_path)
