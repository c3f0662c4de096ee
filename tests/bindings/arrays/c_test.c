/* SPDX-License-Identifier: Apache-2.0
 * A program in C adds a function of the array API to a graph: hypot of two inputs, then its sum;
 * and what is refused comes as a status. */
#include <stdio.h>
#include <string.h>

#include "tenon/arrays.h"
#include "tenon/host/graph.h"
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

int main(void) {
  tenon_session* session = NULL;
  if (failed(tenon_open(text("{}"), &session), "open")) return 1;
  const tn_host* host = tenon_host(session);
  const tn_host_graph* graphs = host->get_interface(host, text("tenon.host.graph/1"));
  const tn_host_graph_edit* edits = host->get_interface(host, text("tenon.host.graph_edit/1"));
  tn_graph* graph = NULL;
  tn_edit* edit = NULL;
  if (failed(graphs->create(host->ctx, &graph), "create")) return 1;
  if (failed(edits->begin(graph, &edit), "begin")) return 1;

  int64_t dims[] = {2, 3};
  tn_type type = {sizeof(tn_type), TN_KIND_TENSOR, TN_F32, 2, dims, NULL};
  tn_value_id inputs[2] = {0, 0};
  if (failed(edits->add_input(edit, text("a"), &type, &inputs[0]), "input")) return 1;
  if (failed(edits->add_input(edit, text("b"), &type, &inputs[1]), "input")) return 1;
  char arguments[100];
  snprintf(arguments, sizeof arguments, "[{\"value\": %llu}, {\"value\": %llu}]",
           (unsigned long long)inputs[0], (unsigned long long)inputs[1]);
  tn_value_id made[4] = {0};
  uint64_t count = 0;
  tn_status* status = tn_arrays_call(host, edit, text("hypot"), text(arguments), made, 4, &count);
  if (failed(status, "hypot") || count != 1) return 1;
  snprintf(arguments, sizeof arguments, "{\"x\": {\"value\": %llu}, \"axis\": -1}",
           (unsigned long long)made[0]);
  status = tn_arrays_call(host, edit, text("sum"), text(arguments), made, 4, &count);
  if (failed(status, "sum")) return 1;

  tn_type result = {sizeof(tn_type), 0, 0, 0, NULL, NULL};
  if (failed(graphs->value_type(edits->graph(edit), made[0], &result), "type")) return 1;
  if (result.dtype != TN_F32 || result.rank != 1 || result.dims[0] != 2) return 1;
  status = tn_arrays_call(host, edit, text("sum"), text("[2.0, 5]"), made, 4, &count);
  if (tenon_status_code(status) != TN_OUT_OF_RANGE || count != 0) return 1;
  tenon_status_release(status);
  status = tn_arrays_call(host, edit, text("hypotenuse"), text("[]"), made, 4, &count);
  if (tenon_status_code(status) != TN_NOT_FOUND) return 1;
  tenon_status_release(status);
  if (!strstr(tn_arrays_describe(), "\"hypot\"")) return 1;

  if (failed(edits->add_output(edit, text("y"), made[0]), "output")) return 1;
  if (failed(edits->commit(edit), "commit")) return 1;
  graphs->release(graph);
  tenon_close(session);
  return 0;
}
