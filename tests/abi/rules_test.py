# SPDX-License-Identifier: Apache-2.0
"""Each rule rejects a header that breaks it, by its number and its line."""

import headers_alone
import pytest
import rules
from read import HeaderError, read


def broken(include) -> list[str]:
    return [line.split(":", 2)[2].split()[0] for line in rules.violations(read(include))]


def test_a_good_header_keeps_all_rules(header):
    assert rules.violations(read(header())) == []


@pytest.mark.parametrize(
    "rule, old, new",
    [
        ("R1", "uint64_t len;", "unsigned long len;"),
        ("R1", "uint64_t len;", "uint64_t len; uint64_t a : 3; uint64_t b : 61;"),
        ("R1", "uint64_t n); /*", "int n); /*"),
        ("R1", "int32_t tenon_x", "_Bool tenon_x"),
        ("R1", "uint64_t n);\n#endif", "uint64_t n, ...);\n#endif"),
        ("R1", "tn_ctx*, uint64_t n", "tn_ctx*, void(TN_CALL* seen)(long), uint64_t n"),
        ("R2", "uint64_t len;", "uint64_t len; uint32_t more;"),
        ("R2", "uint32_t revision;", "uint32_t a; uint32_t b;"),
        (
            "R3",
            "uint32_t struct_size;\n  uint32_t revision;",
            "uint32_t revision;\n  uint32_t struct_size;",
        ),
        ("R3", "uint32_t struct_size;\n  uint32_t revision;", "uint64_t struct_size;"),
        ("R3", "#endif", "typedef struct tn_y { /* FROZEN */\n  tn_x x;\n} tn_y;\n#endif"),
        ("R4", "const tn_x* const* list", "const tn_x* list"),
        ("R5", "/* FROZEN: text */", "/* text */"),
        ("R5", "typedef struct tn_x {", "typedef struct tn_x { /* FROZEN */"),
        ("R6", "void(TN_CALL* stop)", "void (*stop)"),
        ("R6", "TENON_API int32_t", "int32_t"),
        (
            "R6",
            "typedef struct tn_x {",
            "typedef void(TN_CALL* tn_fn)(void);\ntypedef struct tn_x {",
        ),
        ("R7", "tn_str name;", "const char* name;"),
        ("R7", "uint64_t n);\n#endif", "uint64_t n, const char* text);\n#endif"),
        ("T", "All functions: [any].", "All functions: anywhere."),
        ("E", "Errors: TN_X_MANY: too many.", "It may fail."),
        ("E", "Errors: TN_X_MANY: too many.", "Errors: TN_X_FEW: too few."),
        ("O", "borrowed, until stop", "its name"),
        ("U", "size: in bytes", "size: of it"),
    ],
)
def test_a_header_that_breaks_a_rule_is_rejected(header, rule, old, new):
    assert rule in broken(header(old, new))


def test_an_added_header_must_be_in_abi_h(header):
    include = header()
    (include / "tenon/more.h").write_text("#include <stdint.h>\n")

    assert broken(include) == ["A"]


def test_a_violation_names_file_and_line(header):
    found = rules.violations(read(header("/* FROZEN: text */", "/* text */")))

    assert found == [
        "tenon/abi.h:11: R5 (frozen or growable): tn_str: expected either a FROZEN mark "
        "or a struct_size, got neither"
    ]


def test_the_tag_beside_a_function_wins_over_that_of_the_header(header):
    field = read(header()).structs["tn_x"].fields[-1]

    assert field.function.tags == ("serial",)


@pytest.mark.parametrize("new", ["typedef struct tn_str {", "enum tn_e { TN_A };\n"])
def test_what_is_not_in_the_form_is_an_error_with_its_place(header, new):
    with pytest.raises(HeaderError, match=r"\d"):
        read(header("typedef struct tn_ctx tn_ctx;", new))


@pytest.mark.parametrize(
    "standard, compiler, new",
    [
        ("c11", "cc", "uint32_t more; uint64_t len;"),
        ("c++20", "c++", "uint32_t more; uint64_t len;"),
        ("c99", "cc", "union { uint64_t len; };"),
        ("c++11", "c++", "uint64_t class;"),
    ],
)
def test_the_strict_compile_rejects_a_bad_header(header, standard, compiler, new):
    assert headers_alone.complaint("tenon/abi.h", standard, compiler, header()) == ""

    include = header("uint64_t len;", new)

    assert headers_alone.complaint("tenon/abi.h", standard, compiler, include)
