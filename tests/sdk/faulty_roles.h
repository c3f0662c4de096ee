/* SPDX-License-Identifier: Apache-2.0
 * The roles of files and of training for faulty_plugin.c: right, or wrong in one way. */
#if defined(READER)
#define ROLE "tenon.reader/1"
static int32_t probe(void* self, tn_bytes head, tn_str name) {
  (void)self, (void)name;
#ifdef FAULT_PROBE
  return 50;
#elif defined(FAULT_READS)
  return memcmp(head.data, "FLTY", 4) == 0 ? 100 : 0;
#endif
  return head.len >= 4 && memcmp(head.data, "FLTY", 4) == 0 ? 100 : 0;
}
static tn_status* read_file(void* self, tn_blob* blob, tn_graph* into, const tn_cancel* cancel) {
  (void)self, (void)blob, (void)into, (void)cancel;
#ifdef FAULT_READ
  abort();
#endif
  return failure("no file of this format");
}
static const tn_reader table = {sizeof table, 1, probe, read_file};
#elif defined(DATASET)
#define ROLE "tenon.dataset/1"
#define SAMPLES 5
#ifdef FAULT_SHARED
static volatile float shared;
#endif
static uint64_t size(void* self) {
  (void)self;
  return SAMPLES;
}
static tn_status* fields(void* self, const tn_sink* sink) {
#ifdef FAULT_FIELDS
  static const char text[] = "[\"x\"]";
#else
  static const char text[] = "[{\"name\": \"x\", \"dtype\": \"float32\", \"shape\": [2]}]";
#endif
  (void)self;
  return sink->write(sink->ctx, text, sizeof text - 1);
}
static tn_status* batch(
    void* self, const uint64_t* index, uint64_t n, uint64_t seed, const tn_outputs* outputs) {
  int64_t shape[2] = {0, 2};
  DLTensor proto, out;
  tn_status* failed;
  (void)self, (void)seed;
#ifndef FAULT_RANGE
  for (uint64_t i = 0; i < n; ++i)
    if (index[i] >= SAMPLES) return failure("no such sample");
#endif
  memset(&proto, 0, sizeof proto);
  proto.device.device_type = kDLCPU;
  proto.ndim = 2;
  proto.dtype.code = kDLFloat;
  proto.dtype.bits = 32;
  proto.dtype.lanes = 1;
  proto.shape = shape;
  shape[0] = (int64_t)n;
#ifdef FAULT_SHAPE
  shape[1] = 3;
#elif defined(FAULT_ROWS)
  shape[0] += 1;
#endif
  failed = outputs->get(outputs->ctx, 0, &proto, &out);
#ifdef FAULT_OUTPUTS
  if (failed) return (status->release(failed), NULL);
#endif
  if (failed) return failed;
  for (uint64_t i = 0; i < n; ++i) {
    float* sample = (float*)out.data + 2 * i;
    sample[0] = (float)index[i];
    sample[1] = 1;
#ifdef FAULT_ORDER
    sample[0] = (float)i;
#elif defined(FAULT_SHARED)
    shared = sample[0];
    sched_yield();
    sample[0] = shared;
#endif
#ifdef FAULT_RANDOM
    sample[1] = (float)rand();
#elif defined(FAULT_BEHIND)
    sample[2] = 1;
#endif
  }
  return NULL;
}
static const tn_dataset table = {sizeof table, 1, size, fields, batch};
#elif defined(METRIC)
#define ROLE "tenon.metric/1"
static tn_status* update(void* self,
                         const DLTensor* const* out,
                         uint64_t n_out,
                         const DLTensor* const* label,
                         uint64_t n_label) {
  double* sum = (double*)self;
#if defined(FAULT_OUTPUTS)
  if (n_label != 1) return failure("expected labels");
#elif !defined(FAULT_LABELS)
  if (n_out != 1 || n_label != 1) return failure("expected one output and its labels");
#endif
#ifndef FAULT_LABELS
  if (out[0]->ndim != 2 || label[0]->ndim != 1 || out[0]->shape[0] != label[0]->shape[0] ||
      out[0]->dtype.bits != 32)
    return failure("expected float32 scores [n, k] and labels [n]");
#endif
#ifdef FAULT_WRITES
  ((float*)out[0]->data)[0] = 7;
#elif defined(FAULT_READS)
  sum[0] += ((const float*)out[0]->data)[64]; /* of 60, on lines of 64 bytes */
#endif
  (void)label;
  sum[0] += ((const float*)out[0]->data)[0];
  sum[1] += 1;
  return NULL;
}
static tn_status* value(void* self, double* out, int32_t* out_higher_is_better) {
  const double* sum = (const double*)self;
#ifndef FAULT_EMPTY
  if (sum[1] == 0) return failure("nothing was seen");
#endif
  *out = sum[0] / sum[1];
  *out_higher_is_better = 1;
#ifdef FAULT_INFINITE
  *out = NAN;
#elif defined(FAULT_HIGHER)
  *out_higher_is_better = 2;
#endif
  return NULL;
}
static const tn_metric table = {sizeof table, 1, update, value, NULL};
#elif defined(INITIALIZER)
#define ROLE "tenon.initializer/1"
static tn_status* fill(void* self, const tn_initial* of, float* out) {
  uint64_t n = 1;
  (void)self;
  for (uint64_t d = 0; d < of->rank; ++d)
    n *= (uint64_t)of->shape[d];
  for (uint64_t i = 0; i < n; ++i)
#ifdef FAULT_STREAM
    out[i] = (float)((i + of->seed) % 7) / 7;
#else
    out[i] = (float)((i + of->seed + of->stream) % 7) / 7;
#endif
#ifdef FAULT_BEHIND
  out[n] = 0;
#elif defined(FAULT_BEFORE)
  out[-1] = 0;
#elif defined(FAULT_RANDOM)
    out[0] = (float)rand();
#elif defined(FAULT_INFINITE)
    out[0] = INFINITY;
#endif
  return NULL;
}
static const tn_initializer table = {sizeof table, 1, fill};
#elif defined(LOSS) || defined(OPTIMIZER) || defined(LAYER) || defined(KERNEL)
static tn_status* node(
    tn_edit* edit, const char* type, tn_value_id a, tn_value_id b, tn_value_id* out) {
  const tn_host_graph_edit* edits = (const tn_host_graph_edit*)service("tenon.host.graph_edit/1");
  tn_str name = tenon_c_str("keepdims");
  tn_any none = {TN_ANY_I64, 0, 1, {0}};
  tn_value_id in[2];
  tn_node_desc desc;
  in[0] = a;
  in[1] = b;
  memset(&desc, 0, sizeof desc);
  desc.struct_size = sizeof desc;
  desc.type = tenon_c_str(type);
  if (strcmp(type, "StopGradient") == 0) desc.domain = tenon_c_str("tenon");
  desc.inputs = in;
  desc.n_inputs = b ? 2 : 1;
  desc.n_outputs = 1;
  desc.attr_names = &name;
  desc.attr_values = &none;
  desc.n_attrs = strcmp(type, "ReduceMean") == 0 ? 1 : 0;
  return edits->add_node(edit, &desc, NULL, out);
}

#if defined(KERNEL)
#define ROLE "tenon.kernel/1"
static tn_status* pattern(void* self, const tn_sink* sink) {
#ifdef FAULT_PATTERN
  static const char text[] = "Relu(x";
#else
  static const char text[] = "Relu(x)";
#endif
  (void)self;
  return sink->write(sink->ctx, text, sizeof text - 1);
}
static tn_status* claim(void* self, const tn_kernel_site* site) {
  const tn_host_graph* graphs = (const tn_host_graph*)service("tenon.host.graph/1");
  tn_type type = {sizeof type, 0, 0, 0, NULL, NULL};
  tn_status* failed = graphs->value_type(site->graph, site->output, &type);
  (void)self;
  if (failed) return failed;
#ifndef FAULT_TYPES
  if (type.dtype != TN_F32) type.rank = 0;
#endif
#ifdef FAULT_SHAPES
  if (type.rank) type.rank = 1;
#elif defined(FAULT_CLAIM)
  type.rank = 0;
#endif
  if (type.rank == 1) return NULL;
  return status->make(NULL, TN_UNIMPLEMENTED, tenon_c_str("com.example.faulty"),
                      tenon_c_str("expected a vector of float32"), NULL);
}
static tn_status* compile(void* self, const tn_kernel_site* site, void** out_exe) {
  (void)self, (void)site;
  *out_exe = NULL;
  return NULL;
}
static tn_status* run(void* self,
                      void* exe,
                      const DLTensor* const* in,
                      uint64_t n_in,
                      DLTensor* out,
                      const tn_cancel* cancel) {
  const float* x = (const float*)((const char*)in[0]->data + in[0]->byte_offset);
  float* y = (float*)((char*)out->data + out->byte_offset);
  (void)self, (void)exe, (void)n_in, (void)cancel;
  for (int64_t i = 0; i < out->shape[0]; ++i)
#ifdef FAULT_RESULT
    y[i] = x[i];
#else
    y[i] = x[i] > 0 ? x[i] : 0;
#endif
#ifdef FAULT_RANDOM
  y[0] += (float)rand() * 1e-15F;
#elif defined(FAULT_BEHIND)
  y[out->shape[0]] = 0;
#elif defined(FAULT_WRITES)
    ((float*)in[0]->data)[0] = 0;
#endif
  return NULL;
}
static void exe_free(void* self, void* exe) {
  (void)self, (void)exe;
}
static tn_status* sample(void* self, tn_edit* edit, uint64_t seed, tn_value_id* out) {
  const tn_host_graph_edit* edits = (const tn_host_graph_edit*)service("tenon.host.graph_edit/1");
  int64_t size = 3 + (int64_t)(seed % 4);
  tn_type type = {sizeof type, TN_KIND_TENSOR, TN_F32, 1, &size, NULL};
  tn_value_id x;
  tn_status* failed = edits->add_input(edit, tenon_c_str("x"), &type, &x);
  (void)self;
#ifdef FAULT_VALUE
  if (!failed) return *out = 0, NULL;
#endif
  return failed ? failed : node(edit, "Relu", x, 0, out);
}
static const tn_kernel table = {sizeof table, 1, pattern, claim, compile, run, exe_free, sample};
#elif defined(LOSS)
#define ROLE "tenon.loss/1"
static tn_status* build(void* self, tn_edit* edit, const tn_objective* given, tn_value_id* out) {
  tn_value_id x;
  (void)self;
#ifdef FAULT_NOTHING
  if (given->n_predictions != 1 && given->n_targets) return *out = given->targets[0], NULL;
#else
  if (given->n_predictions != 1) return failure("expected one prediction");
#endif
  x = given->predictions[0];
#ifdef FAULT_READS
  if (given->predictions[given->n_predictions]) return failure("expected one prediction");
#elif defined(FAULT_TARGETS)
  if (given->targets[0] == x) return failure("expected another target");
#elif defined(FAULT_BEHIND)
  out[1] = x;
#endif
#ifdef FAULT_INFINITE
  {
    tn_status* failed = node(edit, "Sub", x, x, &x);
    if (!failed) failed = node(edit, "Log", x, 0, &x);
    if (failed) return failed;
  }
#endif
#ifdef FAULT_SLOPE
  {
    tn_status* failed = node(edit, "StopGradient", x, 0, &x);
    if (failed) return failed;
  }
#elif defined(FAULT_OUTPUT)
  {
    const tn_host_graph_edit* edits = (const tn_host_graph_edit*)service("tenon.host.graph_edit/1");
    tn_status* failed = edits->add_output(edit, tenon_c_str("scores"), x);
    if (failed) return failed;
  }
#endif
#ifdef FAULT_SCALAR
  return node(edit, "Abs", x, 0, out);
#elif defined(FAULT_VALUE)
  return *out = 0, NULL;
#endif
  return node(edit, "ReduceMean", x, 0, out);
}
static const tn_loss table = {sizeof table, 1, build};
#elif defined(LAYER)
#define ROLE "tenon.layer/1"
static tn_status* build(void* self, tn_edit* edit, const tn_layer_use* use, tn_value_id* out) {
  (void)self;
#ifdef FAULT_READS
  if (use->inputs[use->n_inputs]) return failure("expected one input");
#elif defined(FAULT_BEHIND)
  out[use->n_outputs] = 0;
#endif
#ifndef FAULT_OUTPUTS
  if (use->n_outputs != 1) return failure("expected one output");
#endif
  if (use->n_inputs != 1) return failure("expected one input");
#ifdef FAULT_NAMES
  {
    const tn_host_tensor* tensors = (const tn_host_tensor*)service("tenon.host.tensor/1");
    const tn_host_graph_edit* edits = (const tn_host_graph_edit*)service("tenon.host.graph_edit/1");
    DLTensor proto = {NULL, {kDLCPU, 0}, 0, {kDLFloat, 32, 1}, NULL, NULL, 0}, view;
    tn_value_id weight;
    tn_tensor* made;
    tn_status* failed = tensors->alloc(host->ctx, &proto, &made);
    if (failed) return failed;
    failed = tensors->view(made, &view);
    if (!failed) *(float*)view.data = (float)use->seed;
    if (!failed) failed = edits->add_constant(edit, tenon_c_str("weight"), made, &weight);
    tensors->release(made);
    return failed ? failed : node(edit, "Mul", use->inputs[0], weight, out);
  }
#endif
  return node(edit, "Identity", use->inputs[0], 0, out);
}
static const tn_layer table = {sizeof table, 1, build};

#else
#define ROLE "tenon.optimizer/1"
static tn_status* build(void* self, tn_edit* edit, const tn_update* given, tn_value_id* out) {
  (void)self;
#ifdef FAULT_READS
  if (given->parameters[given->n_parameters]) return failure("expected fewer parameters");
#elif defined(FAULT_BEHIND)
  out[given->n_parameters] = 0;
#elif defined(FAULT_WRITES)
  for (uint64_t i = 0; i < given->n_parameters; ++i)
    ((tn_parameter*)given->parameters[i])->reserved0 = 1;
#endif
  for (uint64_t i = 0; i < given->n_parameters; ++i) {
    const tn_parameter* one = given->parameters[i];
    tn_value_id step;
    tn_status* failed = node(edit, "Mul", one->gradient, given->rate, &step);
#ifdef FAULT_TYPE
    if (!failed) failed = node(edit, "Size", step, 0, &out[i]);
    if (failed) return failed;
    continue;
#elif defined(FAULT_INFINITE)
    if (!failed) failed = node(edit, "Div", step, given->rate, &step);
#endif
#ifdef FAULT_UPHILL
    if (!failed) failed = node(edit, "Add", one->value, step, &out[i]);
#else
    if (!failed) failed = node(edit, "Sub", one->value, step, &out[i]);
#endif
    if (failed) return failed;
#ifdef FAULT_VALUE
    out[i] = 0;
#endif
  }
  return NULL;
}
static const tn_optimizer table = {sizeof table, 1, build};
#endif
#endif
