/* SPDX-License-Identifier: Apache-2.0
 * A whole plugin in C99, from the ABI headers alone: no SDK, no C++, no libtenon. It holds one pass
 * that changes nothing and reports how many nodes it saw. */
#include <stdio.h>
#include <string.h>

#include "tenon/abi.h"

#define ID "test.c99"
#define PASS "test.count"
#define PASS_SUMMARY "counts nodes and changes nothing"
#define SCHEMA "{}"

__attribute__((section(".tenon.plugin"), used)) static const char description[] =
    "TENON-PLUGIN-1\0" ID
    "\0"
    "1.0.0\0"
    "C99 test\0"
    "\0"
    "Apache-2.0\0"
    "\0"
    "TENON-COMPONENT-1\0"
    "tenon.pass/1\0" PASS
    "\0"
    "1.0.0\0" PASS_SUMMARY "\0" SCHEMA;

#define TEXT(literal) {literal, sizeof(literal) - 1}

static const tn_host_graph* graphs;
static const tn_host_status* statuses;
static tn_ctx* context;

static tn_str text(const char* data) {
  tn_str made;
  made.data = data;
  made.len = strlen(data);
  return made;
}

static int same(tn_str a, const char* b) {
  return a.len == strlen(b) && !memcmp(a.data, b, a.len);
}

static tn_status* TN_CALL count_nodes(void* self,
                                      tn_graph* graph,
                                      const tn_cancel* cancel,
                                      const tn_sink* report) {
  char line[64];
  uint64_t n_nodes = graphs->count(graph, TN_LIST_NODES);
  int length = snprintf(line, sizeof line, "{\"nodes\": %llu}", (unsigned long long)n_nodes);
  (void)self;
  (void)cancel;
  return report ? report->write(report->ctx, line, (uint64_t)length) : NULL;
}

static const tn_pass pass = {sizeof(tn_pass), 1, count_nodes};

static tn_status* TN_CALL init(const tn_host* host, void** out_state) {
  context = host->ctx;
  statuses = (const tn_host_status*)host->get_interface(host, text("tenon.host.status/1"));
  graphs = (const tn_host_graph*)host->get_interface(host, text("tenon.host.graph/1"));
  *out_state = &context;
  return NULL;
}

static void TN_CALL deinit(void* state) {
  (void)state;
}

static tn_status* TN_CALL
create(void* state, tn_str role, tn_str id, const tn_options* options, void** out_self) {
  (void)state;
  (void)options;
  *out_self = NULL;
  if (!same(role, "tenon.pass/1") || !same(id, PASS)) {
    return statuses->make(context, TN_NOT_FOUND, text(ID), text("no such component"), NULL);
  }
  *out_self = (void*)&pass;
  return NULL;
}

static void TN_CALL destroy(void* self) {
  (void)self;
}

static const void* TN_CALL get_interface(void* self, tn_str id) {
  (void)self;
  return same(id, "tenon.pass/1") ? &pass : NULL;
}

static const tn_component component = {
    sizeof(tn_component), TN_COMP_DETERMINISTIC, TEXT("tenon.pass/1"), TEXT(PASS),
    TEXT("1.0.0"),        TEXT(PASS_SUMMARY),    TEXT(SCHEMA)};
static const tn_component* const components[] = {&component};
static const tn_plugin plugin = {
    sizeof(tn_plugin), 0, TEXT(ID),   TEXT("1.0.0"), TEXT("C99 test"), TEXT(""), TEXT("Apache-2.0"),
    TEXT(""),          1, components, init,          deinit,           create,   destroy,
    get_interface};

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZER TN_SAN_ADDRESS
#elif defined(__SANITIZE_THREAD__)
#define SANITIZER TN_SAN_THREAD
#else
#define SANITIZER TN_SAN_NONE
#endif

TN_EXPORT int32_t TN_CALL tenon_plugin_entry(const tn_offer* offer, tn_accept* accept) {
  tn_accept made;
  uint32_t size = accept->struct_size < sizeof made ? accept->struct_size : (uint32_t)sizeof made;
  memset(&made, 0, sizeof made);
  made.struct_size = accept->struct_size;
  made.abi_major = TN_ABI_MAJOR;
  made.needs_minor = TN_ABI_OLDEST_MINOR;
  made.built_minor = TN_ABI_MINOR;
  made.pointer_bits = (uint32_t)(8 * sizeof(void*));
  made.sanitizer = SANITIZER;
  made.plugin = &plugin;
  if (offer->oldest_major > TN_ABI_MAJOR || offer->abi_major + 1 <= TN_ABI_MAJOR) {
    made.refusal = "built for another major of the ABI: build it anew with this host's headers";
  } else if (offer->abi_major == TN_ABI_MAJOR && offer->abi_minor < made.needs_minor) {
    made.refusal = "needs a newer minor of the ABI: install a newer Tenon";
  } else if (offer->pointer_bits != made.pointer_bits) {
    made.refusal = "built for another pointer width: build it anew for this platform";
  } else if (offer->sanitizer != made.sanitizer) {
    made.refusal = "built with other sanitizers: build it anew with the host's flags";
  }
  memcpy(accept, &made, size);
  return made.refusal ? TN_FAILED_PRECONDITION : TN_OK;
}
