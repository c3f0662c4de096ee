// SPDX-License-Identifier: Apache-2.0
// A plugin by hand, over the C ABI alone. TENON_TEST_WAY says in which way it is broken; "fine" and
// "short_table" (built with older headers) work, and "meets" too while its init and deinit take
// turns.
#include <atomic>
#include <cfenv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tenon/abi.h"

namespace {

constexpr std::string_view kWay = TENON_TEST_WAY;

#define DESCRIBED_ID "broken." TENON_TEST_WAY
#ifndef TENON_TEST_ROLE
#define TENON_TEST_ROLE "tenon.pass/1"
#endif
#ifndef TENON_TEST_COMPONENT
#define TENON_TEST_COMPONENT DESCRIBED_ID
#endif
__attribute__((section(".tenon.plugin"), used)) const char kDescription[] =
    "TENON-PLUGIN-1\0" DESCRIBED_ID
    "\0"
    "0.1\0"
    "\0\0\0\0"
    "TENON-COMPONENT-1\0" TENON_TEST_ROLE "\0" TENON_TEST_COMPONENT
    "\0"
    "0.1\0"
    "breaks\0";

constexpr tn_str text(const char* from) {
  return {from, std::char_traits<char>::length(from)};
}

// Dies while the library is being loaded, in the way that the test asks for.
int endless(int depth) {
  volatile char frame[4096] = {};
  return depth < 0 ? frame[0] : endless(depth + 1) + frame[1];
}
void die(std::string_view how) {
  if (how == "exit") std::_Exit(3);
  if (how == "abort") std::abort();
  if (how == "throw") throw 1;
  if (how == "segv") std::raise(SIGSEGV);
  if (how == "ill") __builtin_trap();
  if (how == "overflow") endless(0);
  if (how == "bus") {  // a mapped page behind the end of its file
    std::FILE* file = std::tmpfile();
    void* page = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fileno(file), 0);
    (void)*static_cast<volatile char*>(page);
  }
  if (how == "in another thread") std::thread([] { std::abort(); }).join();
  if (how == "in a child") {
    pid_t child = fork();
    if (child == 0) std::abort();
    waitpid(child, nullptr, 0);
  }
  if (how == "wait") {  // until it is killed
    std::fputs("loading\n", stderr);
    for (;;)
      pause();
  }
}
const bool kAlive = [] {
  const char* how = std::getenv("TENON_TEST_DIE");
  if (kWay == "rounds") std::fesetround(FE_UPWARD);
  if (kWay == "dies" && how) die(how);
  return true;
}();

const tn_component kComponent{sizeof(tn_component),
                              kWay == "draft" ? TN_COMP_DRAFT : 0,
                              text(TENON_TEST_ROLE),
                              kWay == "lies" ? text("something.else") : text(TENON_TEST_COMPONENT),
                              text("0.1"),
                              text("breaks"),
                              {}};
const tn_component* const kComponents[] = {&kComponent};

const tn_host* given_host = nullptr;

// Whether init or deinit has ever been entered while another call was inside.
std::atomic<int> inside{0};
std::atomic<bool> have_met{false};
void stay_a_while() {
  if (kWay != "meets") return;
  ++inside;
  for (int i = 0; i < 30; ++i) {
    if (inside > 1) have_met = true;
    std::this_thread::yield();
  }
  --inside;
}

tn_status* init(const tn_host* host, void**) {
  given_host = host;
  stay_a_while();
  if (kWay != "init_fails" && !have_met) return nullptr;
  const auto* status =
      static_cast<const tn_host_status*>(host->get_interface(host, text("tenon.host.status/1")));
  return status->make(host->ctx, TN_UNAVAILABLE, {},
                      have_met ? text("two calls at once") : text("no licence on this computer"),
                      nullptr);
}
void deinit(void*) {
  stay_a_while();
}

int self_of_component;
tn_status* create(void*, tn_str, tn_str, const tn_options*, void** out) {
  *out = &self_of_component;
  return nullptr;
}
void destroy(void*) {}

tn_status* run(void*, tn_graph*, const tn_cancel*, const tn_sink* report) {
  return report->write(report->ctx, "{}", 2);
}

const void* get_interface(void*, tn_str id) {
  static const tn_pass whole{sizeof(tn_pass), 1, run};
  static const tn_pass short_table{8, 1, run};  // ends before run
  static const tn_pass wrong{7, 1, run};
  if (std::string_view(id.data, id.len) != "tenon.pass/1" || kWay == "no_table") return nullptr;
  if (kWay == "short_table") return &short_table;
  return kWay == "wrong_table" ? &wrong : &whole;
}

constexpr uint32_t plugin_size() {
  return kWay == "small" ? 64 : kWay == "large" ? 1u << 20 : sizeof(tn_plugin);
}

const tn_plugin kPlugin{plugin_size(),
                        0,
                        text(DESCRIBED_ID),
                        text("0.1"),
                        {},
                        {},
                        {},
                        {},
                        1,
                        kWay == "no_components" ? nullptr : kComponents,
                        init,
                        deinit,
                        kWay == "no_create" ? nullptr : create,
                        destroy,
                        get_interface};

constexpr uint32_t own_sanitizer() {
#if defined(__SANITIZE_ADDRESS__)
  return TN_SAN_ADDRESS;
#elif defined(__SANITIZE_THREAD__)
  return TN_SAN_THREAD;
#else
  return TN_SAN_NONE;
#endif
}

}  // namespace

#ifdef TENON_TEST_NO_ENTRY
#define tenon_plugin_entry some_other_name
#endif
extern "C" TN_EXPORT int32_t TN_CALL tenon_plugin_entry(const tn_offer* offer, tn_accept* accept) {
  if (kWay == "refuses") {
    accept->refusal = "needs a computer with two hands: install libhands";
    return TN_FAILED_PRECONDITION;
  }
  accept->abi_major = kWay == "major" ? offer->abi_major + 6 : offer->abi_major;
  accept->needs_minor = kWay == "minor" ? offer->abi_minor + 1 : 0;
  accept->built_minor = kWay == "older" ? TN_ABI_OLDEST_MINOR - 1 : TN_ABI_MINOR;
  accept->pointer_bits = kWay == "bits" ? 32 : 8 * sizeof(void*);
  accept->sanitizer = kWay == "sanitizer" ? own_sanitizer() | TN_SAN_MEMORY : own_sanitizer();
  accept->plugin = kWay == "no_plugin" ? nullptr : &kPlugin;
  return TN_OK;
}
