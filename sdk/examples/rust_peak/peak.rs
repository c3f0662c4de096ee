// SPDX-License-Identifier: Apache-2.0
// An importance score in Rust, without crates: a channel matters as much as the largest weight that
// makes it.
use std::os::raw::c_char;
use std::panic::catch_unwind;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::{Acquire, Release}};

#[allow(non_camel_case_types, non_upper_case_globals, dead_code)]
mod abi {
    include!(env!("TENON_RS"));
}
use abi::*;

// A literal for both sides: listing reads the section, the entry function hands out the tables.
macro_rules! plugin_id { () => { "com.example.rust_peak" }; }
macro_rules! id { () => { "com.example.peak" }; }
macro_rules! role { () => { "tenon.importance/1" }; }
macro_rules! version { () => { "1.0.0" }; }
macro_rules! summary { () => { "the largest weight of each channel" }; }
macro_rules! schema { () => { "{}" }; }
const DESCRIPTION: &str = concat!(
    "TENON-PLUGIN-1\0", plugin_id!(), "\0", version!(), "\0Rust peak\0Example\0Apache-2.0\0\0",
    "TENON-COMPONENT-1\0", role!(), "\0", id!(), "\0", version!(), "\0", summary!(), "\0", schema!(), "\0"
);
#[used]
#[link_section = ".tenon.plugin"]
static SECTION: [u8; DESCRIPTION.len()] = {
    let mut bytes = [0; DESCRIPTION.len()];
    let mut i = 0;
    while i < bytes.len() {
        bytes[i] = DESCRIPTION.as_bytes()[i];
        i += 1;
    }
    bytes
};

const fn text(from: &'static str) -> tn_str {
    tn_str { data: from.as_ptr() as *const c_char, len: from.len() as u64 }
}
unsafe fn same(a: tn_str, b: &str) -> bool {
    a.len as usize == b.len() && std::slice::from_raw_parts(a.data as *const u8, b.len()) == b.as_bytes()
}

// A status is made by the host alone. Its table is the same for all sessions of one libtenon.
static STATUS: AtomicPtr<tn_host_status> = AtomicPtr::new(null_mut());
unsafe fn failure(code: u32, message: &'static str) -> *mut tn_status {
    let make = (*STATUS.load(Acquire)).make.unwrap();
    make(null_mut(), code as i32, text(id!()), text(message), null_mut())
}

unsafe extern "C" fn needs(_: *mut c_void, out: *mut u32) -> *mut tn_status {
    *out = 0;
    null_mut()
}

unsafe fn score_group(group: &tn_channel_group, scores: &mut [f64]) {
    scores.fill(0.0);
    for i in 0..group.n_members as usize {
        let member = &**group.members.add(i);
        if member.kind != TN_MEMBER_MAKES {
            continue;
        }
        let (extent, inner) = (member.extent as usize, member.inner as usize);
        let data = std::slice::from_raw_parts(member.data, member.outer as usize * extent * inner);
        for (at, value) in data.iter().enumerate() {
            let entry = at / inner % extent;
            let channel = if member.channel.is_null() { entry as i64 } else { *member.channel.add(entry) };
            if channel >= 0 {
                scores[channel as usize] = scores[channel as usize].max(f64::from(value.abs()));
            }
        }
    }
}
unsafe extern "C" fn score(_: *mut c_void, group: *const tn_channel_group, out: *mut f64) -> *mut tn_status {
    let done = catch_unwind(|| {
        score_group(&*group, std::slice::from_raw_parts_mut(out, (*group).n_channels as usize))
    });
    if done.is_ok() { null_mut() } else { failure(TN_INTERNAL, "it panicked") }
}
static TABLE: tn_importance = tn_importance {
    struct_size: std::mem::size_of::<tn_importance>() as u32,
    revision: 1,
    needs: Some(needs),
    score: Some(score),
};

unsafe extern "C" fn init(host: *const tn_host, state: *mut *mut c_void) -> *mut tn_status {
    let found = (*host).get_interface.unwrap()(host, text("tenon.host.status/1"));
    STATUS.store(found as *mut tn_host_status, Release);
    *state = host as *mut c_void;
    null_mut()
}
unsafe extern "C" fn deinit(_: *mut c_void) {}
unsafe extern "C" fn create(
    _: *mut c_void, r: tn_str, i: tn_str, _: *const tn_options, out: *mut *mut c_void,
) -> *mut tn_status {
    *out = null_mut();
    if !same(r, role!()) || !same(i, id!()) {
        return failure(TN_NOT_FOUND, "expected com.example.peak of role tenon.importance/1");
    }
    *out = &TABLE as *const tn_importance as *mut c_void;  // it has no state
    null_mut()
}
unsafe extern "C" fn destroy(_: *mut c_void) {}
unsafe extern "C" fn get_interface(_: *mut c_void, wanted: tn_str) -> *const c_void {
    if same(wanted, role!()) { &TABLE as *const tn_importance as *const c_void } else { std::ptr::null() }
}

struct Static<T>(T);
unsafe impl<T> Sync for Static<T> {}  // never written to
static COMPONENT: Static<tn_component> = Static(tn_component {
    struct_size: std::mem::size_of::<tn_component>() as u32, flags: TN_COMP_REENTRANT | TN_COMP_DETERMINISTIC,
    role: text(role!()), id: text(id!()), version: text(version!()), summary: text(summary!()),
    options_schema: text(schema!()),
});
static COMPONENTS: Static<[*const tn_component; 1]> = Static([&COMPONENT.0]);
static PLUGIN: Static<tn_plugin> = Static(tn_plugin {
    struct_size: std::mem::size_of::<tn_plugin>() as u32, reserved0: 0,
    id: text(plugin_id!()), version: text(version!()), name: text("Rust peak"), vendor: text("Example"),
    license: text("Apache-2.0"), url: text(""), component_count: 1, components: COMPONENTS.0.as_ptr(),
    init: Some(init), deinit: Some(deinit), create: Some(create), destroy: Some(destroy),
    get_interface: Some(get_interface),
});

#[no_mangle]
pub unsafe extern "C" fn tenon_plugin_entry(offer: *const tn_offer, accept: *mut tn_accept) -> i32 {
    tenon_accept(&*offer, accept, &PLUGIN.0)
}
