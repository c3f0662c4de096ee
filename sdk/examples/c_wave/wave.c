/* SPDX-License-Identifier: Apache-2.0
 * A schedule in C99: the triangle of cyclical learning rates (Smith, WACV 2017), from `low` to
 * `high` and back in 2 * `half` steps. */
#include <stdlib.h>

#include "tenon/sdk/plugin.h"

#define ID "com.example.c_wave"
#define WAVE "com.example.wave"
#define ROLE "tenon.schedule/1"
#define VERSION "1.0.0"
#define SUMMARY "up and down in a triangle"
#define SCHEMA                                                                            \
  "{\"properties\": {"                                                                    \
  "\"low\": {\"type\": \"number\", \"default\": 0, \"description\": \"first value\"},"    \
  "\"high\": {\"type\": \"number\", \"default\": 1, \"description\": \"highest value\"}," \
  "\"half\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1000000000,"            \
  " \"description\": \"steps from the lowest to the highest value\"}},"                   \
  " \"required\": [\"half\"]}"

TENON_C_DESCRIPTION = TENON_C_PLUGIN(ID, VERSION, "C wave", "Example", "Apache-2.0", "")
    TENON_C_COMPONENT(ROLE, WAVE, VERSION, SUMMARY, SCHEMA);

/* What init gets, kept for as long as the plugin is used. */
typedef struct host_side {
  tn_ctx* context;
  const tn_host_status* status;
  const tn_host_options* options;
} host_side;

typedef struct wave {
  double low, high;
  uint64_t half;
} wave;

static tn_status* TN_CALL value(void* self, uint64_t step, uint64_t total, double* out) {
  const wave* w = (const wave*)self;
  uint64_t place = step % (2 * w->half);
  uint64_t up = place <= w->half ? place : 2 * w->half - place;
  (void)total;
  *out = w->low + (w->high - w->low) * (double)up / (double)w->half;
  return NULL;
}
static const tn_schedule table = {sizeof(tn_schedule), 1, value};

static tn_status* TN_CALL init(const tn_host* host, void** out_state) {
  host_side* side = (host_side*)malloc(sizeof *side);
  const tn_host_status* status =
      (const tn_host_status*)host->get_interface(host, tenon_c_str("tenon.host.status/1"));
  *out_state = NULL;
  if (!side)
    return status->make(host->ctx, TN_RESOURCE_EXHAUSTED, tenon_c_str(ID),
                        tenon_c_str("out of memory"), NULL);
  side->context = host->ctx;
  side->status = status;
  side->options =
      (const tn_host_options*)host->get_interface(host, tenon_c_str("tenon.host.options/1"));
  *out_state = side;
  return NULL;
}
static void TN_CALL deinit(void* state) {
  free(state);
}

static tn_status* read_number(const host_side* side,
                              const tn_options* options,
                              const char* key,
                              double* out) {
  tn_any any;
  tn_status* failed = side->options->get(options, tenon_c_str(key), &any);
  if (!failed) *out = any.tag == TN_ANY_F64 ? any.v.f : any.tag == TN_ANY_I64 ? (double)any.v.i : 0;
  return failed;
}

static tn_status* TN_CALL
create(void* state, tn_str role, tn_str id, const tn_options* options, void** out_self) {
  const host_side* side = (const host_side*)state;
  double half = 1;
  wave* made;
  tn_status* failed;
  *out_self = NULL;
  if (!tenon_c_same(role, ROLE) || !tenon_c_same(id, WAVE))
    return side->status->make(side->context, TN_NOT_FOUND, tenon_c_str(ID),
                              tenon_c_str("expected " WAVE " of role " ROLE), NULL);
  made = (wave*)malloc(sizeof *made);
  if (!made)
    return side->status->make(side->context, TN_RESOURCE_EXHAUSTED, tenon_c_str(WAVE),
                              tenon_c_str("out of memory"), NULL);
  failed = read_number(side, options, "low", &made->low);
  if (!failed) failed = read_number(side, options, "high", &made->high);
  if (!failed) failed = read_number(side, options, "half", &half);
  made->half = (uint64_t)half;
  if (failed) {
    free(made);
    return failed;
  }
  *out_self = made;
  return NULL;
}
static void TN_CALL destroy(void* self) {
  free(self);
}
static const void* TN_CALL get_interface(void* self, tn_str id) {
  (void)self;
  return tenon_c_same(id, ROLE) ? &table : NULL;
}

static const tn_component component = {
    sizeof(tn_component),  TN_COMP_REENTRANT | TN_COMP_DETERMINISTIC,
    TENON_C_TEXT(ROLE),    TENON_C_TEXT(WAVE),
    TENON_C_TEXT(VERSION), TENON_C_TEXT(SUMMARY),
    TENON_C_TEXT(SCHEMA)};
static const tn_component* const components[] = {&component};
static const tn_plugin plugin = {sizeof(tn_plugin),
                                 0,
                                 TENON_C_TEXT(ID),
                                 TENON_C_TEXT(VERSION),
                                 TENON_C_TEXT("C wave"),
                                 TENON_C_TEXT("Example"),
                                 TENON_C_TEXT("Apache-2.0"),
                                 TENON_C_TEXT(""),
                                 1,
                                 components,
                                 init,
                                 deinit,
                                 create,
                                 destroy,
                                 get_interface};

TN_EXPORT int32_t TN_CALL tenon_plugin_entry(const tn_offer* offer, tn_accept* accept) {
  return tenon_c_accept(offer, accept, &plugin);
}
