# SPDX-License-Identifier: Apache-2.0
"""Every function that the host gives away, with each argument spoilt in turn: what cannot be is
answered with a status (or 0) and never a crash. The calls come from the ABI's JSON; each runs in a
child process of its own, so that a crash is a failure with a name."""

import faulthandler
import os
import signal

import pytest
from calls import Calls, is_count

NO_SIZES = [0, 4, 12, 2**32 - 8]


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    return Calls(tmp_path_factory.mktemp("calls"))


def spoilt(calls: Calls, kinds, said):
    """(what, index, value, must be refused) for one function."""
    ffi = calls.ffi
    params = said["params"]
    for i, (kind, param) in enumerate(zip(kinds, params)):
        counted = i + 1 < len(params) and is_count(params[i + 1]["name"])
        counted &= not is_object(calls, kind)
        if kind.cname == "tn_str":
            yield "text of NULL", i, ffi.new("tn_str*", {"len": 5})[0], True
        if kind.kind != "pointer" and kind.kind != "function" and "callback" not in param:
            continue
        null = ffi.cast(kind, 0) if kind.kind == "pointer" else ffi.NULL
        # How many are in a list that is NULL is the caller's word; elsewhere the header says.
        yield "NULL", i, null, not param.get("nullable", False) and not counted
        if kind.kind != "pointer" or "callback" in param:
            continue
        name = kind.item.cname.replace("const ", "").replace("struct ", "")
        if name in calls.objects:
            other = "tn_options" if name != "tn_options" else "tn_graph"
            yield f"a {other}", i, ffi.cast(kind, calls.objects[other]), True
        fields = {f["name"] for f in calls.abi["structs"].get(name, {}).get("fields", [])}
        if "struct_size" in fields:
            for size in [*NO_SIZES, 8]:
                yield f"struct_size {size}", i, sized(calls, name, size), size != 8
        if name in ("tn_sink", "tn_outputs"):
            yield f"a {name} without its function", i, calls.new(f"{name}*"), True


def is_object(calls: Calls, kind) -> bool:
    base = kind.item.cname.replace("const ", "") if kind.kind == "pointer" else ""
    return base in calls.objects


def sized(calls: Calls, name: str, size: int):
    made = calls.new(f"{name}*")
    made.struct_size = size
    return made


def in_child(work, *given) -> tuple[str, str]:
    """What `work` returns, or how the child died."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        signal.alarm(20)
        try:
            os.write(write, work(*given).encode()[:4000])
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        report = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    died = f"died by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else ""
    return report, died


def answer(calls: Calls, function, arguments, said) -> str:
    result = function(*arguments)
    if said["result"].strip() == "tn_status *":
        return f"refused: {calls.message(result)}" if result != calls.ffi.NULL else "success"
    return "returned"


def test_every_spoilt_argument_is_answered(calls):
    wrong, tried = [], 0
    for name, function, said in calls.functions():
        if any(p["type"] == "tn_any" for p in said["params"]):
            continue  # cffi passes no union by value: tests/host/services/arguments_test.cpp
        kind = calls.ffi.typeof(function)
        for what, i, value, refused in spoilt(calls, kind.args, said):
            arguments = calls.good(kind.args, said["params"])
            arguments[i] = value
            report, died = in_child(answer, calls, function, arguments, said)
            tried += 1
            where = f"{name}: argument {i} ({said['params'][i]['type']}): {what}"
            if died or not report:
                wrong.append(f"{where}: {died or 'no answer'}")
            elif refused and report == "success":
                wrong.append(f"{where}: expected a refusal, got success")
            elif refused and report.startswith("refused") and name.split(": ")[-1] not in report:
                wrong.append(f"{where}: the refusal does not name the function: {report}")
    print(f"{tried} calls", *wrong, sep="\n")
    assert tried > 400
    assert wrong == []


def test_no_byte_behind_the_caller_s_size_is_written(calls):
    graph = calls.objects["tn_graph"]
    for size in range(8, calls.ffi.sizeof("tn_type") + 8, 8):
        place = calls.new("uint8_t[64]", [0xAA] * 64)
        type_ = calls.ffi.cast("tn_type*", place)
        type_.struct_size = size

        calls.service("graph").value_type(graph, 0, type_)

        assert type_.struct_size == size
        assert bytes(place)[size:] == b"\xaa" * (64 - size)


def test_a_larger_struct_of_the_caller_keeps_its_size(calls):
    place = calls.new("uint8_t[128]", [0xAA] * 128)
    type_ = calls.ffi.cast("tn_type*", place)
    type_.struct_size = 96

    calls.service("graph").value_type(calls.objects["tn_graph"], 0, type_)

    assert type_.struct_size == 96
    assert bytes(place)[calls.ffi.sizeof("tn_type") :] == b"\xaa" * (
        128 - calls.ffi.sizeof("tn_type")
    )


def test_released_objects_are_refused_while_they_are_remembered(calls):
    tensor = calls.out("tn_tensor*", calls.service("tensor").alloc, calls.host.ctx, calls.tensor())
    calls.service("tensor").release(tensor)

    calls.service("tensor").release(tensor)
    status = calls.service("tensor").view(tensor, calls.tensor())

    assert "released" in calls.message(status)


def test_a_second_commit_is_refused(calls):
    graph = calls.out("tn_graph*", calls.service("graph").create, calls.host.ctx)
    edit = calls.out("tn_edit*", calls.service("graph_edit").begin, graph)
    assert calls.service("graph_edit").commit(edit) == calls.ffi.NULL

    status = calls.service("graph_edit").commit(edit)
    calls.service("graph_edit").rollback(edit)

    assert "has ended" in calls.message(status)


def test_a_refusal_s_message_is_whole(calls):
    make = calls.service("status").make
    cause = make(calls.host.ctx, 3, calls.str("acme"), calls.str("the cause"), calls.ffi.NULL)
    status = make(calls.host.ctx, 13, calls.str("host"), calls.str("the failure"), cause)
    parts: list[bytes] = []

    @calls.ffi.callback("tn_status*(void*, const void*, uint64_t)")
    def write(_ctx, data, length):
        parts.append(bytes(calls.ffi.buffer(data, length)))
        return calls.ffi.NULL

    sink = calls.new("tn_sink*", {"write": write})
    assert calls.c.tenon_status_text(status, sink) == calls.ffi.NULL

    assert calls.message(status) == "the failure: acme: the cause"
    assert b"".join(parts).decode() == calls.message(status)
