// SPDX-License-Identifier: Apache-2.0
// If and Loop.
#include <algorithm>

#include "tenon/sdk/steps.hpp"

#include "bodies.hpp"
#include "sampling.hpp"

namespace tenon::ops {
namespace {

Status if_shape(EditView edit, Node node) {
  TN_CHECK(check_operands(node, "cond: bool[one], captures: any..."));
  Graph first = graph_of(node, "then_branch"), second = graph_of(node, "else_branch");
  if (!first.raw || !second.raw) return invalid("expected then_branch and else_branch");
  std::vector<Value> a = first.outputs(), b = second.outputs();
  if (a.size() != b.size() || a.size() < node.n_outputs())
    return invalid(cat("branches: expected ", node.n_outputs(), " outputs each, got ", a.size(),
                       " and ", b.size()));
  std::vector<Type> captures;
  for (uint64_t i = 1; i < node.n_inputs(); ++i)
    captures.push_back(node.input(i).type());
  const std::vector<Type> yes = output_types(first, captures), no = output_types(second, captures);
  for (size_t i = 0; i < node.n_outputs(); ++i)
    TN_CHECK(set_output(edit, node, i, common(yes[i], no[i])));
  return {};
}

Status if_ref(const Call& call) {
  if (element_count(call.in(0)) != 1) return invalid("cond: expected one element");
  TN_TRY(body, body_of(call, *call.data<uint8_t>(0) != 0 ? "then_branch" : "else_branch"));
  const tn_op_call& raw = call.raw();
  return Status(body->run(body->ctx, raw.in + 1, raw.n_in - 1, raw.outputs));
}

Status loop_shape(EditView edit, Node node) {
  TN_CHECK(check_operands(node, "trip_count: i64[one]?, cond: bool[one]?, rest: any..."));
  Graph body = graph_of(node, "body");
  if (!body.raw) return invalid("attribute body: expected a graph, got none");
  std::vector<Value> results = body.outputs();
  TN_TRY(captures, captures_of(node));
  if (node.n_inputs() < 2 + captures)
    return invalid("expected M, cond (each may be left out), states and captures");
  uint64_t n_states = node.n_inputs() - 2 - captures;
  if (results.size() < node.n_outputs() + 1)
    return invalid(cat("body: expected ", node.n_outputs() + 1, " outputs, got ", results.size()));
  const std::optional<int64_t> steps = known_steps(node, body);
  std::vector<Type> given;
  for (uint64_t i = 2; i < node.n_inputs(); ++i)
    given.push_back(node.input(i).type());
  const std::vector<Type> types = repeated_types(body, given, 1, n_states);
  for (uint64_t i = 0; i < node.n_outputs(); ++i) {
    const Type& type = types[i + 1];
    if (i < n_states) {
      TN_CHECK(set_output(edit, node, i, common(node.input(i + 2).type(), type)));
    } else if (type.ranked) {
      Dims dims = dims_of(type);
      // Symbols inside a body are the body's own.
      for (Dim& dim : dims)
        if (!dim.known()) dim = Dim();
      dims.insert(dims.begin(), steps ? Dim(*steps) : Dim());
      TN_CHECK(set_output(edit, node, i, type.dtype, dims));
    } else {
      TN_CHECK(set_output(edit, node, i, type));
    }
  }
  return {};
}

Status loop_ref(const Call& call) {
  TN_TRY(body, body_of(call, "body"));
  auto captures = static_cast<uint64_t>(call.node().attr_int("captures"));
  if (call.n_in() < 2 + captures) return invalid("expected M, cond, states and captures");
  size_t n_states = call.n_in() - 2 - captures, n_out = call.node().n_outputs();
  if (n_out < n_states)
    return invalid(cat("expected at least ", n_states, " outputs, got ", n_out));
  int64_t limit = call.has(0) ? read_ints(call.in(0)).at(0) : INT64_MAX;
  bool go = !call.has(1) || *call.data<uint8_t>(1) != 0;
  std::vector<DLTensor> states;
  for (size_t i = 0; i < n_states; ++i)
    states.push_back(call.in(2 + i));
  std::vector<Tensor> held;
  std::vector<std::vector<Tensor>> scans(n_out - n_states);
  for (int64_t i = 0; go && i < limit; ++i) {
    TN_CHECK(call.cancel().check());
    DenseView index(TN_I64, {}, &i), condition(TN_BOOL, {}, &go);
    std::vector<DLTensor> in{*index, *condition};
    in.insert(in.end(), states.begin(), states.end());
    for (uint64_t c = call.n_in() - captures; c < call.n_in(); ++c)
      in.push_back(call.in(c));
    TN_TRY(results, run_body(call, *body, in, 1 + n_out));
    go = *results[0].data<uint8_t>() != 0;
    held = results;
    for (size_t s = 0; s < n_states; ++s)
      states[s] = held[1 + s].dl();
    for (size_t s = 0; s < scans.size(); ++s)
      scans[s].push_back(results[1 + n_states + s]);
  }
  for (size_t s = 0; s < n_states; ++s)
    TN_CHECK(copy_out(call, s, states[s]));
  std::vector<Type> types(1 + n_out);
  if (!scans.empty() && scans[0].empty()) {  // no iteration says what it would have given
    std::vector<Type> given;
    for (size_t i = 2; i < call.n_in(); ++i)
      given.push_back(type_of(call.in(i)));
    types = repeated_types(graph_of(call.node(), "body"), given, 1, n_states);
  }
  for (size_t s = 0; s < scans.size(); ++s)
    TN_CHECK(join(call, n_states + s, scans[s], 0, false, types[1 + n_states + s]));
  return {};
}

Result<Node> if_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 3);
  TN_TRY(cond, random.input(TN_BOOL, {}));
  TN_TRY(x, random.input(TN_F32, dims));
  auto branch = [&](const char* type) {
    return make_body(edit, [&](const Edit& inner) -> Status {
      TN_TRY(in, inner.input("x", Type(TN_F32, dims)));
      TN_TRY(out, inner.op(type, {in}));
      return inner.output("y", out);
    });
  };
  TN_TRY(yes, branch("Exp"));
  TN_TRY(no, branch("Neg"));
  return edit.add({.type = "If",
                   .inputs = {cond, x},
                   .attrs = {{"then_branch", any_graph(yes.get())},
                             {"else_branch", any_graph(no.get())},
                             {"captures", 1}}});
}

// The state doubles, and each iteration leaves a copy of it.
Result<Node> loop_sample(EditView edit, uint64_t seed) {
  Sampler random(edit, seed);
  std::vector<int64_t> dims = random.shape(1, 2);
  TN_TRY(times, edit.constant<int64_t>(TN_I64, {}, std::vector{random.integer(1, 4)}));
  TN_TRY(x, random.input(TN_F32, dims));
  TN_TRY(body, make_body(edit, [&](const Edit& inner) -> Status {
           TN_TRY(i, inner.input("i", Type(TN_I64, {})));
           (void)i;
           TN_TRY(cond, inner.input("cond", Type(TN_BOOL, {})));
           TN_TRY(state, inner.input("state", Type(TN_F32, dims)));
           TN_TRY(next, inner.op("Add", {state, state}));
           TN_TRY(again, inner.op("Identity", {cond}));
           TN_TRY(kept, inner.op("Identity", {next}));
           TN_CHECK(inner.output("again", again));
           TN_CHECK(inner.output("next", next));
           return inner.output("kept", kept);
         }));
  return edit.add({.type = "Loop",
                   .inputs = {times, Value{}, x},
                   .attrs = {{"body", any_graph(body.get())}},
                   .n_outputs = 2});
}

constexpr tn_op kIf = op_row({.type = "If",
                              .since = 25,
                              .traits = kControl,
                              .attributes = R"([{"name": "then_branch", "type": "graph"},
                                                {"name": "else_branch", "type": "graph"},
                                                {"name": "captures", "type": "int", "default": 0}])",
                              .shape = shape<if_shape>,
                              .ref = ref<if_ref>,
                              .sample = sample<if_sample>});
constexpr tn_op kLoop = op_row({.type = "Loop",
                                .since = 25,
                                .traits = kControl,
                                .attributes = R"([{"name": "body", "type": "graph"},
                                                  {"name": "captures", "type": "int", "default": 0}])",
                                .shape = shape<loop_shape>,
                                .ref = ref<loop_ref>,
                                .sample = sample<loop_sample>});

}  // namespace

TENON_OPS(control, &kIf, &kLoop)

}  // namespace tenon::ops
