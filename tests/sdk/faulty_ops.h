/* SPDX-License-Identifier: Apache-2.0
 * The role of operators for faulty_plugin.c: right, or wrong in one way. */
#ifdef OPS
#ifdef FAULT_KERNEL
#define TIMES 3
#else
#define TIMES 2
#endif
/* With PAIR the operator has two results, both 2 x. */
#ifdef FAULT_ALONE
#define PAIR
#endif
#ifdef PAIR
#define OUTPUTS 2
#else
#define OUTPUTS 1
#endif
#define ROLE "tenon.ops/1"
static tn_status* node(tn_edit* edit,
                       const char* domain,
                       const char* type,
                       tn_value_id a,
                       tn_value_id b,
                       tn_value_id* out) {
  const tn_host_graph_edit* edits = (const tn_host_graph_edit*)service("tenon.host.graph_edit/1");
  tn_value_id in[2];
  tn_node_id made;
  tn_node_desc desc;
  in[0] = a;
  in[1] = b;
  memset(&desc, 0, sizeof desc);
  desc.struct_size = sizeof desc;
  desc.domain = tenon_c_str(domain);
  desc.type = tenon_c_str(type);
  desc.inputs = in;
  desc.n_inputs = b ? 2 : 1;
  desc.n_outputs = *domain ? OUTPUTS : 1;
  return edits->add_node(edit, &desc, &made, out);
}
static tn_value_id input_of(tn_edit* edit, tn_node_id id) {
  const tn_host_graph_edit* edits = (const tn_host_graph_edit*)service("tenon.host.graph_edit/1");
  const tn_host_graph* graphs = (const tn_host_graph*)service("tenon.host.graph/1");
  return graphs->io_at(edits->graph(edit), id, TN_LIST_INPUTS, 0);
}
static tn_status* decompose(void* self, tn_edit* edit, tn_node_id id, tn_value_id* out) {
  tn_value_id x = input_of(edit, id);
  (void)self;
#ifdef FAULT_DECOMPOSE
  return node(edit, "", "Mul", x, x, out);
#endif
  return node(edit, "", "Add", x, x, out);
}
static tn_status* vjp(void* self,
                      tn_edit* edit,
                      tn_node_id id,
                      const tn_value_id* g,
                      const uint8_t* wanted,
                      tn_value_id* out) {
  (void)self, (void)id, (void)wanted;
#ifdef FAULT_VJP
  return node(edit, "", "Identity", g[0], 0, out);
#endif
#ifdef PAIR
  {
    tn_value_id sum = g[0] ? g[0] : g[1];
    tn_status* failed = NULL;
#ifndef FAULT_ALONE
    if (g[0] && g[1])
#endif
      failed = node(edit, "", "Add", g[0], g[1], &sum);
    return failed ? failed : node(edit, "", "Add", sum, sum, out);
  }
#endif
  return node(edit, "", "Add", g[0], g[0], out);
}
static tn_status* batch(void* self,
                        tn_edit* edit,
                        tn_node_id id,
                        const tn_value_id* in,
                        const uint8_t* batched,
                        tn_value_id* out,
                        uint8_t* out_batched) {
  (void)self, (void)id, (void)batched;
  *out_batched = 1;
#ifdef FAULT_BATCH
  return node(edit, "", "Identity", in[0], 0, out);
#endif
  return node(edit, "com.example", "Twice", in[0], 0, out);
}
/* y = 2 x, in f32 and f64; other types are left to decompose. */
static tn_status* kernel(void* self, const tn_op_call* call) {
  const DLTensor* x = call->in[0];
  DLTensor y;
  int64_t n = 1;
  tn_status* failed;
  (void)self;
  if (x->dtype.code != kDLFloat || x->dtype.bits < 32)
    return status->make(NULL, TN_UNIMPLEMENTED, tenon_c_str("faulty"), tenon_c_str("f32"), NULL);
  for (int32_t d = 0; d < x->ndim; ++d)
    n *= x->shape[d];
#ifdef PAIR
  failed = call->outputs->get(call->outputs->ctx, 1, x, &y);
  if (failed) return failed;
  for (int64_t i = 0; i < n; ++i) {
    if (x->dtype.bits == 64)
      ((double*)y.data)[i] = 2 * ((const double*)x->data)[i];
    else
      ((float*)y.data)[i] = 2 * ((const float*)x->data)[i];
  }
#endif
  failed = call->outputs->get(call->outputs->ctx, 0, x, &y);
  for (int64_t i = 0; !failed && i < n; ++i) {
    if (x->dtype.bits == 64)
      ((double*)y.data)[i] = 2 * ((const double*)x->data)[i];
    else
      ((float*)y.data)[i] = TIMES * ((const float*)x->data)[i];
  }
#if defined(FAULT_INPUT)
  ((float*)x->data)[0] = 5;
#elif defined(FAULT_BEYOND)
  if (!failed) ((float*)y.data)[n] = 5;
#elif defined(FAULT_BEFORE)
  if (!failed) ((float*)y.data)[-1] = 5;
#elif defined(FAULT_READS)
  if (!failed) ((float*)y.data)[0] += 0 * ((const float*)x->data)[n + 64];
#elif defined(FAULT_LEAK)
  if (!malloc(100)) return failure("no memory");
#elif defined(FAULT_QUIT)
  exit(0);
#endif
  return failed;
}
static tn_status* sample_of(tn_edit* edit, uint64_t seed, uint32_t rank, tn_node_id* out) {
  const tn_host_graph_edit* edits = (const tn_host_graph_edit*)service("tenon.host.graph_edit/1");
  int64_t dims[3];
  tn_value_id x, y[OUTPUTS];
  tn_type type;
  tn_status* failed;
  dims[0] = dims[2] = 2;
  dims[1] = 1 + (int64_t)(seed % 4);
  memset(&type, 0, sizeof type);
  type.struct_size = sizeof type;
  type.kind = TN_KIND_TENSOR;
  type.dtype = TN_F32;
  type.rank = rank;
  type.dims = dims;
  failed = edits->add_input(edit, tenon_c_str("x"), &type, &x);
  if (!failed) failed = node(edit, "com.example", "Twice", x, 0, y);
  if (!failed) {
    const tn_host_graph* graphs = (const tn_host_graph*)service("tenon.host.graph/1");
    *out = graphs->producer(edits->graph(edit), y[0], NULL);
  }
  return failed;
}
static tn_status* sample(void* self, tn_edit* edit, uint64_t seed, tn_node_id* out) {
  (void)self;
  return sample_of(edit, seed, 2, out);
}
#if defined(VERSIONS) || defined(FAULT_OLDER)
static tn_status* older_sample(void* self, tn_edit* edit, uint64_t seed, tn_node_id* out) {
  (void)self;
  return sample_of(edit, seed, 3, out);
}
#endif
static tn_status* cost(
    void* self, const tn_graph* graph, tn_node_id id, double* flops, double* bytes) {
  (void)self, (void)graph, (void)id;
  *flops = 1;
  *bytes = 8;
#if defined(FAULT_COST)
  *flops = -1;
#elif defined(FAULT_BYTES)
  *bytes = NAN;
#endif
  return NULL;
}
#if defined(FAULT_AXES) || defined(FAULT_OPEN)
static tn_status* shape(void* self, tn_edit* edit, tn_node_id id) {
  const tn_host_graph_edit* edits = (const tn_host_graph_edit*)service("tenon.host.graph_edit/1");
  const tn_host_graph* graphs = (const tn_host_graph*)service("tenon.host.graph/1");
  tn_type type;
  tn_status* failed;
  (void)self;
  memset(&type, 0, sizeof type);
  type.struct_size = sizeof type;
  failed = graphs->value_type(edits->graph(edit), input_of(edit, id), &type);
  if (failed) return failed;
#ifdef FAULT_OPEN
  {
    int64_t dims[2];
    dims[0] = type.dims[0];
    dims[1] = type.dims[1] < 0 ? 9 : type.dims[1];
    type.dims = dims;
    type.symbols = NULL;
    return edits->set_type(edit, graphs->io_at(edits->graph(edit), id, TN_LIST_OUTPUTS, 0), &type);
  }
#else
  return edits->set_type(edit, graphs->io_at(edits->graph(edit), id, TN_LIST_OUTPUTS, 0), &type);
#endif
}
#endif
static tn_op row;
#if defined(VERSIONS) || defined(FAULT_OLDER)
/* Version 1, which takes three dimensions or more, beside version 3. */
static tn_op older;
static tn_status* older_kernel(void* self, const tn_op_call* call) {
  if (call->in[0]->ndim < 3) return failure("three dimensions or more");
#ifdef FAULT_OLDER
  abort();
#endif
  return kernel(self, call);
}
static const tn_op* const rows[] = {&row, &older};
#else
static const tn_op* const rows[] = {&row};
#endif
static const tn_ops table = {sizeof table, 1, sizeof rows / sizeof rows[0], rows};
static void fill_row(void) {
  row.struct_size = sizeof row;
  row.domain = tenon_c_str("com.example");
  row.type = tenon_c_str("Twice");
  row.since_version = 1;
  row.attributes = tenon_c_str("[]");
#ifndef FAULT_SAMPLE
  row.traits = TN_OP_POINTWISE;
  row.axes = tenon_c_str("*");
  row.expr = tenon_c_str("x + x");
  row.ref = kernel;
  row.sample = sample;
#endif
  row.cost = cost;
#if defined(FAULT_AXES)
  row.traits = 0;
  row.expr = tenon_c_str("");
  row.axes = tenon_c_str("m n -> n m");
  row.shape = shape;
#elif defined(FAULT_OPEN)
  row.traits = 0;
  row.expr = row.axes = tenon_c_str("");
  row.shape = shape;
#elif defined(FAULT_VIEW)
  row.traits = TN_OP_VIEW;
  row.expr = tenon_c_str("");
#elif defined(FAULT_SHAPES)
  row.traits |= TN_OP_READS_SHAPE;
#elif defined(PAIR)
  row.traits = 0;
  row.expr = tenon_c_str("");
  row.axes = tenon_c_str("n m -> n m, n m");
#elif defined(FAULT_QUANT)
  row.quant = tenon_c_str("same_scales");
#elif defined(FAULT_CAST)
  row.cast = tenon_c_str("cpu=lower");
#elif defined(FAULT_RECOMPUTE)
  row.recompute = tenon_c_str("free");
#endif
  row.vjp = vjp;
#ifndef PAIR
  row.decompose = decompose;
  row.batch = batch;
#endif
#if defined(VERSIONS) || defined(FAULT_OLDER)
  older = row;
  older.ref = older_kernel;
  older.sample = older_sample;
  row.since_version = 3;
#endif
#ifdef INTEGERS /* an expression of integers, without a sample */
  row.expr = tenon_c_str("x & 6");
  row.ref = NULL;
  row.sample = NULL;
  row.cost = NULL;
  row.decompose = NULL;
  row.vjp = NULL;
  row.batch = NULL;
#endif
}
#endif
