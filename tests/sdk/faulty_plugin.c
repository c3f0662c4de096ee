/* SPDX-License-Identifier: Apache-2.0
 * One plugin for each role, which is right unless a macro FAULT_x is defined: then it does one
 * thing wrong, and `tenon plugin check` has to name it. ROLE and the table come with one of
 * SCHEDULE, CALLBACK, IMPORTANCE, OBSERVER, PASS, OPS (faulty_ops.h), COLLECTIVE
 * (faulty_collective.h), and those of faulty_roles.h: READER, DATASET, METRIC, INITIALIZER, LOSS,
 * OPTIMIZER, LAYER, KERNEL. */
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tenon/sdk/plugin.h"

#ifdef FAULT_DESCRIPTION
#define SCHEMA "{\"properties\": {\"size\": {\"type\": \"integer\", \"default\": 1}}}"
#elif defined(OBSERVER) && !defined(FAULT_OPTIONS)
#define SCHEMA                                                                                     \
  "{\"properties\": {\"bits\": {\"type\": \"integer\", \"default\": 8, \"description\": \"any\"}," \
  "\"symmetric\": {\"type\": \"boolean\", \"default\": false, \"description\": \"any\"}}}"
#elif defined(FAULT_PATH)
#define SCHEMA "{\"extensions\": [\".faulty\"], \"properties\": {}}"
#else
#define SCHEMA                                                                            \
  "{\"properties\": {\"size\": {\"type\": \"integer\", \"default\": 1, \"description\": " \
  "\"any\"}}}"
#endif

static const tn_host* host;
static const tn_host_status* status;
static const void* service(const char* id) {
  return host->get_interface(host, tenon_c_str(id));
}
static tn_status* failure(const char* why) {
  return status->make(NULL, TN_INVALID_ARGUMENT, tenon_c_str("com.example.faulty"),
                      tenon_c_str(why), NULL);
}

#if defined(SCHEDULE)
#ifdef FAULT_ROLE
#define ROLE "tenon.schedule/2"
#else
#define ROLE "tenon.schedule/1"
#endif
static tn_status* value(void* self, uint64_t step, uint64_t total, double* out) {
  static uint64_t calls;
  (void)self, (void)total;
  *out = 1.0 / (1.0 + (double)step);
  ++calls;
#ifdef FAULT_INFINITE
  *out = step > 500 ? INFINITY : *out;
#elif defined(FAULT_STATE)
  *out += (double)calls;
#elif defined(FAULT_ONLY)
  *out = (double)step / (double)(total - 1);
#endif
  return NULL;
}
static const tn_schedule table = {sizeof table, 1, value};

#elif defined(CALLBACK)
#define ROLE "tenon.callback/1"
static tn_status* step(void* self, const tn_progress_point* at, int32_t* out_stop) {
  (void)self;
#ifdef FAULT_NAN
  if (isnan(at->loss)) abort();
#endif
  *out_stop = at->loss < 0;
  return NULL;
}
static tn_status* epoch(void* self, tn_str record, const tn_graph* model, int32_t* out_stop) {
  (void)self, (void)model, (void)out_stop;
#ifdef FAULT_SILENT
  if (record.len < 3) return failure("");
#endif
  return record.len < 3 ? failure("expected a record with members") : NULL;
}
#ifdef FAULT_DEAF
static const tn_callback table = {sizeof table, 1, NULL, NULL};
#else
static const tn_callback table = {sizeof table, 1, step, epoch};
#endif

#elif defined(IMPORTANCE)
#define ROLE "tenon.importance/1"
static tn_status* needs(void* self, uint32_t* out) {
  (void)self;
#ifdef FAULT_NEEDS
  *out = 99;
#else
  *out = 0;
#endif
  return NULL;
}
static tn_status* score(void* self, const tn_channel_group* group, double* out) {
  (void)self;
  for (uint64_t i = 0; i < group->n_channels; ++i)
    out[i] = (double)i;
#ifdef FAULT_NAN
  out[1] = NAN;
#elif defined(FAULT_BEHIND)
  out[group->n_channels] = 0;
#elif defined(FAULT_WRITES)
  *(float*)(uintptr_t)group->members[0]->data = 5;
#elif defined(FAULT_READS)
  out[0] += group->members[0]->data[60]; /* of 60 */
#elif defined(FAULT_RANDOM)
  out[0] = rand();
#elif defined(FAULT_NORM)
  if (group->members[0]->data[0] == 0) out[0] = NAN;
#elif defined(FAULT_ONE)
  out[0] /= (double)(group->n_channels - 1);
#elif defined(FAULT_KINDS)
  for (uint64_t i = 0; i < group->n_members; ++i)
    if (group->members[i]->kind > TN_MEMBER_ACTIVATION) return failure("an unknown kind");
#endif
  return NULL;
}
static const tn_importance table = {sizeof table, 1, needs, score};

#elif defined(OBSERVER)
#define ROLE "tenon.observer/1"
typedef struct seen {
  double low, high, n, others;
} seen;
static double element(const DLTensor* t, uint64_t i) {
  uint32_t bits;
  float x;
  if (t->dtype.bits == 64) return ((const double*)t->data)[i];
  if (t->dtype.bits == 32) return ((const float*)t->data)[i];
  bits = ((const uint16_t*)t->data)[i];
#ifndef FAULT_HALVES
  if (t->dtype.code == kDLFloat) { /* the numbers here are zero or normal */
    if ((bits & 0x7fffU) == 0) return 0;
    bits = (bits & 0x8000U) | (((bits & 0x7fffU) >> 3) + ((127U - 15U) << 7));
  }
#endif
  bits <<= 16;
  memcpy(&x, &bits, sizeof x);
  return x;
}
static tn_status* observe(void* self, const DLTensor* t) {
  seen* s = (seen*)self;
  uint64_t n = 1;
  for (int32_t d = 0; d < t->ndim; ++d)
    n *= (uint64_t)t->shape[d];
  for (uint64_t i = 0; i < n; ++i) {
    double x = element(t, i);
#ifndef FAULT_COUNTS
    if (!isfinite(x)) {
      s->others += 1;
      continue;
    }
#endif
    s->low = s->n == 0 || x < s->low ? x : s->low;
    s->high = s->n == 0 || x > s->high ? x : s->high;
    s->n += 1;
  }
#ifdef FAULT_WRITES
  if (n) *(unsigned char*)t->data = 0;
#elif defined(FAULT_READS)
  if (n == 64) s->low += element(t, n) * 1e-30; /* of 64 */
#endif
  return NULL;
}
static tn_status* save(void* self, const tn_sink* sink) {
  return sink->write(sink->ctx, self, sizeof(seen));
}
static tn_status* merge(void* self, tn_bytes state) {
  seen *s = (seen*)self, other;
#ifdef FAULT_MERGE
  if (state.len < sizeof other) return NULL;
#else
  if (state.len != sizeof other) return failure("a state of another size");
#endif
  memcpy(&other, state.data, sizeof other);
  if (!isfinite(other.low) || !isfinite(other.high) || !(other.n >= 0) || !(other.n < 1e15))
    return failure("no state");
#ifdef FAULT_JOIN
  return NULL;
#endif
#ifndef FAULT_IDLE
  s->others += other.others;
  if (other.n == 0) return NULL;
#endif
  s->low = s->n == 0 || other.low < s->low ? other.low : s->low;
  s->high = s->n == 0 || other.high > s->high ? other.high : s->high;
  s->n += other.n;
  return NULL;
}
static tn_status* range(void* self, tn_range* out) {
  const seen* s = (const seen*)self;
  memset(out, 0, sizeof *out);
#ifndef FAULT_NOTHING
  if (s->n == 0) return failure("nothing was seen");
#endif
  out->low = s->low;
  out->high = s->high;
#ifdef FAULT_POINT
  out->high = s->low;
#endif
  out->seen = (uint64_t)s->n;
  out->not_finite = (uint64_t)s->others;
  return NULL;
}
static const tn_observer table = {sizeof table, 1, observe, save, merge, range};

#elif defined(PASS)
#define ROLE "tenon.pass/1"
static tn_status* note(tn_graph* graph, int64_t number) {
  const tn_host_graph_edit* edits = (const tn_host_graph_edit*)service("tenon.host.graph_edit/1");
  tn_edit* edit;
  tn_any any = {TN_ANY_I64, 0, 1, {0}};
  tn_status* failed = edits->begin(graph, &edit);
  if (failed) return failed;
  any.v.i = number;
#ifdef FAULT_OPEN
  return NULL;
#endif
  failed = edits->set_note(edit, 0, tenon_c_str("noted"), any);
  return failed ? (edits->rollback(edit), failed) : edits->commit(edit);
}
static tn_status* run(void* self, tn_graph* graph, const tn_cancel* cancel, const tn_sink* report) {
  static int64_t calls;
  int64_t number = 1;
  const tn_host_cancel* cancels = (const tn_host_cancel*)service("tenon.host.cancel/1");
  (void)self, (void)report;
  ++calls;
#ifdef FAULT_TWICE
  number = calls;
#endif
#ifndef FAULT_CANCEL
  if (cancels->requested(cancel))
    return status->make(NULL, TN_CANCELLED, tenon_c_str("faulty"), tenon_c_str("cancelled"), NULL);
#else
  (void)cancels, (void)cancel;
#endif
#ifdef FAULT_REPORT
  return report->write(report->ctx, "done!", 5);
#endif
  return note(graph, number);
}
static const tn_pass table = {sizeof table, 1, run};

#endif

#include "faulty_collective.h"
#include "faulty_ops.h"
#include "faulty_roles.h"

#ifdef FAULT_THREAD
static void* forever(void* none) {
  for (;;)
    sleep(1);
  return none;
}
#endif
static tn_status* init(const tn_host* given, void** state) {
  host = given;
  status = (const tn_host_status*)service("tenon.host.status/1");
#ifdef OPS
  fill_row();
#endif
  *state = NULL;
#if defined(FAULT_FOLDER)
  if (chdir("/")) return failure("chdir");
#elif defined(FAULT_ENVIRONMENT)
  setenv("FAULTY", "1", 1);
#elif defined(FAULT_SIGNAL)
  signal(SIGUSR1, SIG_IGN);
#elif defined(FAULT_CLOSE)
  close(0);
#elif defined(FAULT_LOCALE)
  setlocale(LC_ALL, "C.UTF-8");
#elif defined(FAULT_MASK)
  umask(0);
#elif defined(FAULT_PRINT)
  puts("hello");
  fflush(stdout);
#elif defined(FAULT_THREAD)
  {
    static pthread_t thread;
    pthread_create(&thread, NULL, forever, NULL);
  }
#endif
#ifdef FAULT_INIT
  return failure("it does not want to");
#endif
  return NULL;
}
static void deinit(void* state) {
  (void)state;
}
static tn_status* create(
    void* state, tn_str role, tn_str id, const tn_options* options, void** out) {
  (void)state, (void)role, (void)id, (void)options;
  *out = calloc(1, 64);
#ifdef FAULT_CRASH
  abort();
#elif defined(FAULT_EXIT)
  _exit(5);
#elif defined(FAULT_LEAVES)
  exit(0);
#elif defined(FAULT_HOLDS)
  {
    const tn_host_graph* graphs = (const tn_host_graph*)service("tenon.host.graph/1");
    tn_graph* kept;
    graphs->create(host->ctx, &kept);
  }
#endif
  return NULL;
}
static void destroy(void* self) {
#ifdef FAULT_HANG
  for (;;)
    sleep(1);
#endif
  free(self);
}
static const void* get_interface(void* self, tn_str id) {
  (void)self;
#ifdef FAULT_INTERFACE
  return &table;
#endif
#ifdef FAULT_TABLE
  return NULL;
#endif
#ifdef HOLE /* the table without function number HOLE */
  static void* holed[sizeof table / sizeof(void*)];
  memcpy(holed, &table, sizeof table);
  holed[1 + HOLE] = NULL; /* behind the size and the revision */
  return tenon_c_same(id, ROLE) ? (const void*)holed : NULL;
#endif
  return tenon_c_same(id, ROLE) ? &table : NULL;
}

#ifdef FAULT_NAMELESS
#define DESCRIBED
#else
#define DESCRIBED TENON_C_COMPONENT(ROLE, "com.example.one", "1.0.0", "right or wrong", SCHEMA)
#endif
#ifndef FAULT_UNDESCRIBED
TENON_C_DESCRIPTION =
    TENON_C_PLUGIN("com.example.faulty", "1.0.0", "Faulty", "", "Apache-2.0", "") DESCRIBED;
#endif
static const tn_component component = {sizeof(tn_component),  0,
                                       TENON_C_TEXT(ROLE),    TENON_C_TEXT("com.example.one"),
                                       TENON_C_TEXT("1.0.0"), TENON_C_TEXT("right or wrong"),
                                       TENON_C_TEXT(SCHEMA)};
static const tn_component* const components[] = {&component};
static const tn_plugin plugin = {sizeof(tn_plugin),
                                 0,
                                 TENON_C_TEXT("com.example.faulty"),
                                 TENON_C_TEXT("1.0.0"),
                                 TENON_C_TEXT("Faulty"),
                                 TENON_C_TEXT(""),
                                 TENON_C_TEXT("Apache-2.0"),
                                 TENON_C_TEXT(""),
                                 1,
                                 components,
                                 init,
                                 deinit,
                                 create,
                                 destroy,
                                 get_interface};

#ifdef FAULT_EXPORT
TN_EXPORT int another_symbol(void);
TN_EXPORT int another_symbol(void) {
  return 1;
}
#endif
#ifdef FAULT_LINKS
extern int tenon_plugin_load(void*, tn_str);
#endif

TN_EXPORT int32_t TN_CALL tenon_plugin_entry(const tn_offer* offer, tn_accept* accept) {
#ifdef FAULT_LINKS
  if (!offer) return tenon_plugin_load(NULL, tenon_c_str(""));
#endif
  return tenon_c_accept(offer, accept, &plugin);
}
