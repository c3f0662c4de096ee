# SPDX-License-Identifier: Apache-2.0
"""What is generated from the headers: the FFI description, the layout asserts, the pages."""

import argparse
import json
import re
import subprocess

import cffi
import errors
import ffi
import generate
import layout
import pages
import pytest
from conftest import ABI
from read import read


@pytest.fixture(scope="module")
def abi():
    return read(ABI / "include")


def compiles(source: str, include) -> bool:
    return (
        subprocess.run(
            ["cc", "-std=c11", "-x", "c", "-fsyntax-only", "-I", include, "-"],
            input=source,
            text=True,
            capture_output=True,
        ).returncode
        == 0
    )


def test_cffi_loads_the_description_and_agrees_on_every_layout(abi):
    library = cffi.FFI()
    library.cdef(ffi.cdef(abi))

    for struct in abi.structs.values():
        fields = dict(library.typeof(struct.name).fields)
        assert library.sizeof(struct.name) == struct.size
        assert {name: at.offset for name, at in fields.items()} == {
            field.name: field.offset for field in struct.fields
        }


def test_cffi_sees_the_constants(abi):
    library = cffi.FFI()
    library.cdef(ffi.cdef(abi))
    constants = library.dlopen(None)

    assert constants.TN_DATA_LOSS == 15
    assert constants.TN_F32 == 2 | 32 << 8 | 1 << 16
    assert constants.TN_DIM_UNKNOWN == -1
    assert constants.TN_SIZE_UNKNOWN == 2**64 - 1


def test_every_macro_with_a_value_is_a_constant(abi):
    defines = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\s/\\].*)$", re.MULTILINE)
    for header in (ABI / "include").rglob("*.h"):
        for name, value in defines.findall(header.read_text()):
            if not re.match(r"__|TN_EXPORT", value):  # compilers' attributes
                assert name in abi.constants, f"{header.name}: {name}"


@pytest.mark.parametrize(
    "header, table, function, expected",
    [
        ("tenon/host/graph_edit.h", "tn_host_graph_edit", "begin", {"TN_FAILED_PRECONDITION"}),
        ("tenon/host/options.h", "tn_host_options", "create", set()),
        (
            "tenon/host/blob.h",
            "tn_host_blob",
            "sibling",  # "as open", which gives "those of the file system"
            {"TN_NOT_FOUND", "TN_PERMISSION_DENIED", "TN_UNAVAILABLE"},
        ),
        ("tenon/host/eval.h", "tn_host_eval", "profile", None),  # passes a backend's code on
    ],
)
def test_the_codes_that_a_header_states_are_read(abi, header, table, function, expected):
    found = next(h for h in abi.headers if h.name == header)
    struct = abi.structs[table]
    field = next(f for f in struct.fields if f.name == function)

    stated = errors.codes(found, struct, field.function)

    assert stated == (None if expected is None else expected | errors.ALWAYS)


def test_json_names_every_function_with_its_threads(abi):
    text = json.loads(json.dumps(ffi.description(abi)))

    assert text["functions"]["tenon_open"]["threads"] == ["any"]
    assert text["structs"]["tn_str"]["frozen"] is True
    run = next(f for f in text["structs"]["tn_host_parallel"]["fields"] if f["name"] == "run")
    assert [p["name"] for p in run["function"]["params"][3]["callback"]["params"]] == [
        "arg",
        "begin",
        "end",
    ]


def test_the_compiler_confirms_every_size_offset_and_type(abi):
    assert compiles(layout.asserts(abi), ABI / "include")


@pytest.mark.parametrize(
    "old, new",
    [
        (
            "uint32_t revision;\n  tn_str name;",
            "uint32_t revision;\n  uint64_t extra;\n  tn_str name;",
        ),
        ("uint64_t n); /* at", "uint32_t n); /* at"),
        ("uint32_t revision;", "int32_t revision;"),
        ("TN_X_MANY 7u", "TN_X_MANY 8u"),
    ],
)
def test_the_asserts_of_one_header_refuse_another(header, old, new):
    asserts = layout.asserts(read(header()))
    assert compiles(asserts, header())

    assert not compiles(asserts, header(old, new))


@pytest.mark.parametrize(
    "old, new, word",
    [
        ("uint64_t len;", "uint32_t len; uint32_t more;", "frozen field was"),
        ("uint64_t len;", "uint64_t len; uint64_t more;", "frozen struct grew"),
        ("const char* data;\n  uint64_t len;", "const char* data;", "removed"),
    ],
)
def test_a_change_of_a_frozen_struct_is_broken(header, old, new, word):
    before = layout.record(read(header()))

    broken, _ = layout.changes(before, layout.record(read(header(old, new))))

    assert [line for line in broken if word in line], broken


def version(record: dict, minor: int, oldest: int) -> dict:
    return record | {"version": [0, minor, oldest]}


def test_a_draft_may_grow_at_its_end(header):
    before = layout.record(read(header()))
    grown = layout.record(read(header("[serial] */\n", "[serial] */\n  uint64_t more;\n")))

    assert layout.changes(before, grown) == ([], ["tn_x: grew by `uint64_t more` at 48"])


@pytest.mark.parametrize(
    "old, new",
    [
        ("tn_str name;", "tn_str title;"),
        ("  void(TN_CALL* stop)(tn_ctx*, uint64_t n); /* at once. [serial] */\n", ""),
        ("  tn_str(TN_CALL* text)(tn_ctx*); /* borrowed, until stop */\n", ""),
        ("tn_str(TN_CALL* text)(tn_ctx*);", "tn_str(TN_CALL* text)(tn_ctx*, uint64_t n);"),
    ],
)
def test_another_change_of_a_draft_leaves_older_plugins_behind(header, old, new):
    before = layout.record(read(header()))
    now = layout.record(read(header(old, new)))

    for minor, oldest in ((3, 2), (4, 2), (4, 3), (3, 4)):  # plugins of 0.3 are still loaded
        broken, _ = layout.changes(before, version(now, minor, oldest))
        assert "set TN_ABI_MINOR and TN_ABI_OLDEST_MINOR to a new minor" in "".join(broken)
    broken, report = layout.changes(before, version(now, 4, 4))

    assert broken == []
    assert "tn_x: draft field" in "".join(report)


def test_what_older_plugins_would_not_notice_is_not_recorded(header, tmp_path, capsys):
    args = argparse.Namespace(baseline=tmp_path / "draft.json")
    assert generate.record(read(header()), args) == 0
    first = args.baseline.read_text()

    assert generate.record(read(header("tn_str name;", "tn_str title;")), args) == 1
    assert "not recorded" in capsys.readouterr().out
    assert args.baseline.read_text() == first
    grown = read(header("[serial] */\n", "[serial] */\n  uint64_t more;\n"))
    assert generate.record(grown, args) == 0


def test_a_stable_struct_may_only_grow_at_its_end(header, monkeypatch):
    monkeypatch.setattr(layout, "STABLE_HEADERS", {"tenon/abi.h"})
    before = layout.record(read(header()))
    grown = layout.record(read(header("[serial] */\n", "[serial] */\n  uint64_t more;\n")))
    swapped = layout.record(read(header("tn_str name;", "uint64_t more; tn_str name;")))

    assert layout.changes(before, grown) == ([], ["tn_x: grew by `uint64_t more` at 48"])
    assert layout.changes(before, swapped)[0]


def test_a_stable_constant_keeps_its_value(header, monkeypatch):
    monkeypatch.setattr(layout, "STABLE_HEADERS", {"tenon/abi.h"})
    before = layout.record(read(header()))

    broken, _ = layout.changes(before, layout.record(read(header("MANY 7u", "MANY 8u"))))

    assert broken == ["TN_X_MANY: was 7, is 8"]


def test_the_pages_hold_every_function_and_constant(abi):
    made = pages.pages(abi)

    assert set(made) == {pages.page_name(header) for header in abi.headers} | {"index.md"}
    graph = made["host_graph.md"]
    assert "### consumer_at" in graph and "| `TN_LIST_STATES` | 2 |" in graph
    assert "Threads: [any]." in graph
