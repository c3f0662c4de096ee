/* SPDX-License-Identifier: Apache-2.0
 * A program in C: what a graph is made of and costs, and how two differ. */
#include <stdio.h>
#include <string.h>

#include "tenon/host/graph.h"
#include "tenon/reports.h"
#include "tenon/tenon.h"

static tn_str text(const char* from) {
  tn_str made = {from, strlen(from)};
  return made;
}
static int failed(tn_status* status, const char* what) {
  if (!status) return 0;
  tn_str message = tenon_status_message(status);
  printf("%s: %.*s\n", what, (int)message.len, message.data);
  tenon_status_release(status);
  return 1;
}

typedef struct Text {
  char data[4000];
  size_t len;
} Text;
static tn_status* TN_CALL append(void* to, const void* data, uint64_t len) {
  Text* all = to;
  if (all->len + len >= sizeof all->data) return NULL;
  memcpy(all->data + all->len, data, len);
  all->len += len;
  all->data[all->len] = 0;
  return NULL;
}
static int lacks(const Text* all, const char* part) {
  if (strstr(all->data, part)) return 0;
  printf("expected %s in %s\n", part, all->data);
  return 1;
}

/* y = op(x) of 7 numbers, in the text form of graphs. */
static tn_graph* made(tenon_session* session, const char* op) {
  const tn_host* host = tenon_host(session);
  const tn_host_graph* graphs = host->get_interface(host, text("tenon.host.graph/1"));
  char form[400];
  tn_graph* graph = NULL;
  snprintf(form, sizeof form, "graph { input %%x: f32[7] %%y: f32[7] = %s(%%x) @n output y = %%y }",
           op);
  return failed(graphs->parse(host->ctx, text(form), &graph), "parse") ? NULL : graph;
}

int main(void) {
  tenon_session* session = NULL;
  if (failed(tenon_open(text("{}"), &session), "open")) return 1;
  const tn_host* host = tenon_host(session);
  const tn_host_graph* graphs = host->get_interface(host, text("tenon.host.graph/1"));
  if (failed(tenon_plugin_load(session, text("ops")), "load")) return 1;
  tn_graph* before = made(session, "Exp");
  tn_graph* after = made(session, "Sqrt");
  if (!before || !after) return 1;
  tn_sink nowhere = {NULL, append};
  tn_status* refused = tn_reports_inspect(host, NULL, &nowhere);
  if (tenon_status_code(refused) != TN_INVALID_ARGUMENT) return 1;
  tenon_status_release(refused);
  Text report = {{0}, 0}, changes = {{0}, 0}, nothing = {{0}, 0};
  tn_sink to_report = {&report, append}, to_changes = {&changes, append};
  tn_sink to_nothing = {&nothing, append};

  if (failed(tn_reports_inspect(host, before, &to_report), "inspect")) return 1;
  if (failed(tn_reports_diff(host, before, after, &to_changes), "diff")) return 1;
  if (failed(tn_reports_diff(host, before, before, &to_nothing), "diff")) return 1;

  if (lacks(&report, "\"dtype\":\"f32\",\"shape\":[7]")) return 1;
  if (lacks(&report, "\"operators\":{\"Exp\":1}")) return 1;
  if (lacks(&report, "\"flops\":7.0,\"bytes\":56.0")) return 1;
  if (lacks(&changes, "--- before\n+++ after\n@@")) return 1;
  if (lacks(&changes, "Exp") || lacks(&changes, "Sqrt") || nothing.len != 0) return 1;
  graphs->release(before);
  graphs->release(after);
  tenon_close(session);
  return 0;
}
