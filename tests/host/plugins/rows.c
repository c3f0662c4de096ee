/* SPDX-License-Identifier: Apache-2.0
 * One operator row in C whose component reads an option: test:Scaled multiplies by `factor`, which
 * is 3 unless options say else. TENON_TEST_FLAGS are the component's flags. */
#include <stdlib.h>

#include "tenon/sdk/plugin.h"

#define ID TENON_TEST_ID
#define ROLE "tenon.ops/1"
#define SCHEMA "{\"properties\": {\"factor\": {\"type\": \"number\", \"default\": 3}}}"

TENON_C_DESCRIPTION =
    TENON_C_PLUGIN(ID, "1.0", "", "", "", "") TENON_C_COMPONENT(ROLE, ID, "1.0", "one row", SCHEMA);

static const tn_host_options* options_service;

static tn_status* init(const tn_host* host, void** out_state) {
  options_service =
      (const tn_host_options*)host->get_interface(host, tenon_c_str("tenon.host.options/1"));
  *out_state = NULL;
  return NULL;
}

static tn_status* create(
    void* state, tn_str role, tn_str id, const tn_options* options, void** out_self) {
  tn_any factor;
  tn_status* failed = options_service->get(options, tenon_c_str("factor"), &factor);
  double* self = failed ? NULL : (double*)malloc(sizeof *self);
  (void)state, (void)role, (void)id;
  if (self) *self = factor.tag == TN_ANY_F64 ? factor.v.f : (double)factor.v.i;
  *out_self = self;
  return failed;
}
static void destroy(void* self) {
  free(self);
}

static tn_status* ref(void* self, const tn_op_call* call) {
  const DLTensor* x = call->in[0];
  DLTensor out;
  tn_status* failed = call->outputs->get(call->outputs->ctx, 0, x, &out);
  if (!failed) *(float*)out.data = (float)*(double*)self * *(const float*)x->data;
  return failed;
}

static const tn_op row = {.struct_size = sizeof(tn_op),
                          .domain = TENON_C_TEXT("test"),
                          .type = TENON_C_TEXT("Scaled"),
                          .since_version = 1,
                          .axes = TENON_C_TEXT("n -> n"),
                          .attributes = TENON_C_TEXT("[]"),
                          .ref = ref};
static const tn_op* const rows[] = {&row};
static const tn_ops table = {sizeof(tn_ops), 1, 1, rows};

static const void* get_interface(void* self, tn_str id) {
  (void)self;
  return tenon_c_same(id, ROLE) ? &table : NULL;
}

static const tn_component component = {.struct_size = sizeof(tn_component),
                                       .flags = TENON_TEST_FLAGS,
                                       .role = TENON_C_TEXT(ROLE),
                                       .id = TENON_C_TEXT(ID),
                                       .version = TENON_C_TEXT("1.0"),
                                       .summary = TENON_C_TEXT("one row"),
                                       .options_schema = TENON_C_TEXT(SCHEMA)};
static const tn_component* const components[] = {&component};
static const tn_plugin plugin = {.struct_size = sizeof(tn_plugin),
                                 .id = TENON_C_TEXT(ID),
                                 .version = TENON_C_TEXT("1.0"),
                                 .component_count = 1,
                                 .components = components,
                                 .init = init,
                                 .create = create,
                                 .destroy = destroy,
                                 .get_interface = get_interface};

TN_EXPORT int32_t TN_CALL tenon_plugin_entry(const tn_offer* offer, tn_accept* accept) {
  return tenon_c_accept(offer, accept, &plugin);
}
