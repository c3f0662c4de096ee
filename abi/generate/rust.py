# SPDX-License-Identifier: Apache-2.0
"""The ABI for Rust: one module of #[repr(C)] structs, from what ffi.py says. No crate is needed."""

import re

BASES = {
    "void": "c_void",
    "char": "c_char",
    "float": "f32",
    "double": "f64",
    **{f"{u}int{bits}_t": f"{u or 'i'}{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)},
}
KEYWORDS = {"type", "ref", "move", "in", "fn", "use", "where", "loop", "match", "mod"}
HEAD = """// Generated from the ABI headers: use it as a module, `include!(env!("TENON_RS"))`.
pub use std::os::raw::{c_char, c_void};
"""

ACCEPT = """
/// The answer of tenon_plugin_entry; writes no more of it than the host has room for.
pub unsafe fn tenon_accept(
    offer: &tn_offer,
    accept: *mut tn_accept,
    plugin: *const tn_plugin,
) -> i32 {
    let refusal: Option<&'static str> =
        if offer.oldest_major > TN_ABI_MAJOR || offer.abi_major + 1 <= TN_ABI_MAJOR {
            Some("built for another major of the Tenon ABI: rebuild it with this host's SDK\\0")
        } else if offer.abi_major == TN_ABI_MAJOR && offer.abi_minor < TN_ABI_MINOR {
            Some("needs a newer minor of the Tenon ABI: update libtenon\\0")
        } else if offer.pointer_bits as usize != 8 * std::mem::size_of::<usize>() {
            Some("built for another pointer width: rebuild it for the host's platform\\0")
        } else if offer.sanitizer != TN_SAN_NONE {
            Some("built without the host's sanitizers: use a host without them\\0")
        } else {
            None
        };
    let made = tn_accept {
        struct_size: (*accept).struct_size,
        flags: 0,
        abi_major: TN_ABI_MAJOR,
        needs_minor: TN_ABI_MINOR,
        built_minor: TN_ABI_MINOR,
        pointer_bits: 8 * std::mem::size_of::<usize>() as u32,
        sanitizer: TN_SAN_NONE,
        reserved0: 0,
        plugin,
        refusal: refusal.map_or(std::ptr::null(), |text| text.as_ptr() as *const c_char),
    };
    let size = ((*accept).struct_size as usize).min(std::mem::size_of::<tn_accept>());
    std::ptr::copy_nonoverlapping(&made as *const tn_accept as *const u8, accept as *mut u8, size);
    if refusal.is_some() { TN_FAILED_PRECONDITION as i32 } else { TN_OK as i32 }
}
"""


def bindings(ffi: dict) -> str:
    parts = [HEAD]
    parts += [_constant(name, value) for name, value in ffi["constants"].items()]
    parts += [f"#[repr(C)]\npub struct {name} {{ _private: [u8; 0] }}\n" for name in ffi["opaque"]]
    parts += [f"pub type {name} = {BASES[base]};\n" for name, base in ffi["aliases"].items()]
    parts += [_struct(name, struct) for name, struct in ffi["structs"].items()]
    return "".join(parts) + ACCEPT


def _constant(name: str, value: int) -> str:
    kind = "i32" if value < 0 else "u32" if value < 2**32 else "u64"
    return f"pub const {name}: {kind} = {value};\n"


def _struct(name: str, struct: dict) -> str:
    unions, lines = [], []
    for field in struct["fields"]:
        kind = _field_type(name, field, unions)
        lines.append(f"    pub {_name(field['name'])}: {kind},\n")
    head = "#[repr(C)]\n#[derive(Clone, Copy)]\n"
    size = f"const _: () = assert!(std::mem::size_of::<{name}>() == {struct['size']});\n"
    return "".join(unions) + f"{head}pub struct {name} {{\n{''.join(lines)}}}\n" + size


def _field_type(struct: str, field: dict, unions: list[str]) -> str:
    if "function" in field:
        return _function(field["function"])
    declaration = field["declaration"]
    if declaration.startswith("union"):
        inner = re.search(r"\{(.*)\}", declaration, re.DOTALL).group(1)
        members = [part.strip() for part in inner.split(";") if part.strip()]
        lines = [f"    pub {m.split()[-1].lstrip('*')}: {_member(m)},\n" for m in members]
        unions.append(
            f"#[repr(C)]\n#[derive(Clone, Copy)]\n"
            f"pub union {struct}_{field['name']} {{\n{''.join(lines)}}}\n"
        )
        return f"{struct}_{field['name']}"
    return _member(declaration)


def _member(declaration: str) -> str:
    return _type(re.sub(r"\w+$", "", declaration))


def _function(function: dict) -> str:
    params = ", ".join(
        _function(p["callback"]) if "callback" in p else _type(p["type"])
        for p in function["params"]
    )
    result = "" if function["result"] == "void" else f" -> {_type(function['result'])}"
    return f'Option<unsafe extern "C" fn({params}){result}>'


def _type(c: str) -> str:
    """const tn_op * const * becomes *const *const tn_op: what each star points at is left of it."""
    words = re.findall(r"\*|\w+", c.replace("struct ", ""))
    base = next(word for word in words if word not in ("const", "*"))
    made = BASES.get(base, base)
    constant = "const" in words[: words.index("*")] if "*" in words else False
    for at, word in enumerate(words):
        if word != "*":
            continue
        made = f"*{'const' if constant else 'mut'} {made}"
        constant = words[at + 1 : at + 2] == ["const"]
    return made


def _name(name: str) -> str:
    if name == "self":  # which cannot be escaped
        return "self_"
    return f"r#{name}" if name in KEYWORDS else name
