/* SPDX-License-Identifier: Apache-2.0
 * A C program that holds one compiled model, as contestant.py does in Python: the same lines in and
 * out. contestant.py --from c starts it with the inputs that it has made.
 *
 * usage: bench_contestant MODEL OPTIONS [KIND:BITS:1x3x224x224:FILE]...
 * KIND and BITS are those of DLPack's element types; FILE holds the elements. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tenon/host/eval.h"
#include "tenon/host/graph.h"
#include "tenon/tenon.h"

enum { kMostInputs = 16, kMostRank = 8, kMostOutputs = 16, kLeastRuns = 3, kFirstRuns = 3 };

typedef struct Tensor {
  DLTensor view;
  int64_t shape[kMostRank];
} Tensor;

typedef struct Results {
  Tensor of[kMostOutputs];
} Results;

static void end(const char* what) {
  fprintf(stderr, "bench_contestant: %s\n", what);
  exit(1);
}

static void check(tn_status* status) {
  if (!status) return;
  const tn_str text = tenon_status_message(status);
  fprintf(stderr, "bench_contestant: %.*s\n", (int)text.len, text.data);
  exit(1);
}

static tn_str text(const char* from) {
  const tn_str made = {from, strlen(from)};
  return made;
}

static uint64_t bytes_of(const DLTensor* t) {
  uint64_t n = (t->dtype.bits * t->dtype.lanes + 7) / 8;
  for (int32_t i = 0; i < t->ndim; ++i)
    n *= (uint64_t)t->shape[i];
  return n;
}

/* Memory for a result, kept from one run to the next. */
static tn_status* TN_CALL give(void* ctx, uint64_t i, const DLTensor* proto, DLTensor* out) {
  Tensor* const mine = &((Results*)ctx)->of[i < kMostOutputs ? i : 0];
  if (i >= kMostOutputs || proto->ndim > kMostRank) end("more outputs or dimensions than it holds");
  const uint64_t wanted = bytes_of(proto);
  if (!mine->view.data || bytes_of(&mine->view) < wanted) {
    free(mine->view.data);
    mine->view.data = aligned_alloc(64, (wanted / 64 + 1) * 64);
    if (!mine->view.data) end("no memory for a result");
  }
  void* const data = mine->view.data;
  mine->view = *proto;
  mine->view.data = data;
  mine->view.byte_offset = 0;
  memcpy(mine->shape, proto->shape, sizeof(int64_t) * (size_t)proto->ndim);
  mine->view.shape = mine->shape;
  *out = mine->view;
  return NULL;
}

/* KIND:BITS:1x3x224x224:FILE */
static void read_input(char* from, Tensor* to) {
  char* const parts[] = {strtok(from, ":"), strtok(NULL, ":"), strtok(NULL, ":"), strtok(NULL, "")};
  if (!parts[3]) end("expected KIND:BITS:1x3x224x224:FILE");
  memset(to, 0, sizeof *to);
  to->view.device.device_type = kDLCPU;
  to->view.dtype.code = (uint8_t)atoi(parts[0]);
  to->view.dtype.bits = (uint8_t)atoi(parts[1]);
  to->view.dtype.lanes = 1;
  to->view.shape = to->shape;
  for (char* extent = strtok(parts[2], "x"); extent; extent = strtok(NULL, "x")) {
    if (to->view.ndim == kMostRank) end("more dimensions than it holds");
    to->shape[to->view.ndim++] = atoll(extent);
  }
  const uint64_t n = bytes_of(&to->view);
  to->view.data = aligned_alloc(64, (n / 64 + 1) * 64);
  FILE* const file = fopen(parts[3], "rb");
  if (!file || !to->view.data || fread(to->view.data, 1, n, file) != n) end("cannot read an input");
  fclose(file);
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* The milliseconds of each run, over at least so many and so many seconds, as a line of JSON. */
static void run_for(
    tn_plan* plan, const DLTensor** in, uint64_t n_in, const tn_outputs* outputs, double seconds) {
  const double last = now_ms() + seconds * 1e3;
  double begin = now_ms();
  printf("[");
  for (int i = 0; i < kLeastRuns || begin < last; ++i) {
    check(tenon_run(plan, in, n_in, outputs, NULL));
    const double after = now_ms();
    printf("%s%.6f", i ? ", " : "", after - begin);
    begin = now_ms();
  }
  printf("]\n");
  fflush(stdout);
}

int main(int count, char** words) {
  if (count < 3 || count - 3 > kMostInputs) end("expected MODEL OPTIONS [INPUT]...");
  static Tensor inputs[kMostInputs];
  static Results results;
  const DLTensor* in[kMostInputs];
  const uint64_t n_in = (uint64_t)count - 3;
  for (uint64_t i = 0; i < n_in; ++i) {
    read_input(words[3 + i], &inputs[i]);
    in[i] = &inputs[i].view;
  }
  tenon_session* session = NULL;
  tn_graph* graph = NULL;
  tn_plan* plan = NULL;
  check(tenon_open(text("{}"), &session));
  check(tenon_load(session, text(words[1]), text(""), NULL, &graph));
  check(tenon_compile(session, graph, text(words[2]), &plan));
  const tn_outputs outputs = {&results, give};
  for (int i = 0; i < kFirstRuns; ++i)
    check(tenon_run(plan, in, n_in, &outputs, NULL));
  puts("ready");
  fflush(stdout);
  char line[64];
  while (fgets(line, sizeof line, stdin))
    run_for(plan, in, n_in, &outputs, atof(line));
  const tn_host* const host = tenon_host(session);
  const tn_host_eval* const eval = host->get_interface(host, text("tenon.host.eval/1"));
  eval->release(plan);
  const tn_host_graph* const graphs = host->get_interface(host, text("tenon.host.graph/1"));
  graphs->release(graph);
  tenon_close(session);
  return 0;
}
