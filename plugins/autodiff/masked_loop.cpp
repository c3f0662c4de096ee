// SPDX-License-Identifier: Apache-2.0
#include "masked_loop.hpp"

namespace tenon::autodiff {
namespace {

// Inputs of the new body: the iteration, a condition that it does not need, whether this example
// goes on, the states, the trip count, captures.
Result<OwnedGraph> masked_body(EditView edit, const LoopForm& form, Graph body, Value trip) {
  TN_TRY(made, Body::begin(edit.ctx()));
  Builder b(made.edit);
  std::vector<Value> theirs = body.inputs(), ours;
  for (size_t i = 0; i < 2; ++i) {
    TN_TRY(input, made.input(theirs[i].type()));
    ours.push_back(input);
  }
  Value count;
  TN_TRY(going, made.input(form.inputs[2].type()));
  for (size_t i = 2; i < theirs.size(); ++i) {
    if (trip && i + 1 == form.parts.captures()) {
      TN_TRY(input, made.input(trip.type()));
      count = input;
    }
    TN_TRY(input, made.input(theirs[i].type()));
    ours.push_back(input);
  }
  if (trip && !count) {
    TN_TRY(input, made.input(trip.type()));
    count = input;
  }
  Value active = b.reshape(going, {});
  if (count) active = b.op("And", {active, b.op("Less", {ours[0], b.reshape(count, {})})});
  ours[1] = active;
  TN_CHECK(b.status());
  TN_TRY(results, made.copy(body, ours));
  Value goes_on = b.op("And", {active, b.reshape(results[0], {})});
  std::vector<Value> out{goes_on, b.reshape(goes_on, going.type().dims)};
  const size_t n_states = form.parts.n_states - 1;
  for (size_t i = 1; i < results.size(); ++i)
    out.push_back(i > n_states ? results[i] : b.op("Where", {active, results[i], ours[i + 1]}));
  if (form.has_mask) out.push_back(b.op("Identity", {active}));
  TN_CHECK(b.status());
  for (Value value : out)
    TN_CHECK(made.output(value));
  TN_CHECK(made.finish());
  return std::move(made.graph);
}

}  // namespace

Result<LoopForm> masked_loop(EditView edit, Node node, Graph body, const Interface& parts) {
  Builder b(edit);
  Value trip = node.input(0), going = node.input(1);
  if (!going) going = b.take(edit.constant<uint8_t>(TN_BOOL, {}, std::vector<uint8_t>{1}));
  TN_CHECK(b.status());
  if (!going.type().is_static() || (trip && !trip.type().is_static()))
    return unsupported("Loop: expected a trip count and a condition of known shapes");
  LoopForm form{{{}, {}, going}, {}, parts, body.outputs().size() > 1 + parts.n_states};
  std::vector<Value> inputs = node.inputs();
  auto captures = inputs.begin() + static_cast<std::ptrdiff_t>(parts.captures());
  form.inputs.insert(form.inputs.end(), inputs.begin() + 2, captures);
  if (trip) form.inputs.push_back(trip);
  form.inputs.insert(form.inputs.end(), captures, inputs.end());
  form.parts.n_states += 1;
  form.parts.n_captures += bool(trip);
  TN_TRY(made, masked_body(edit, form, body, trip));
  form.body = std::move(made);
  return Result<LoopForm>(std::move(form));
}

Value any_of(Builder& b, Value x) {
  Value most = b.op("ReduceMax", {b.cast(x, TN_I32)}, {{"keepdims", 0}});
  return b.op("Greater", {most, b.number(0, TN_I32)});  // the largest of no numbers is below 0
}

Status join_conditions(const OwnedGraph& body) {
  TN_TRY(edit, Edit::begin(body.get()));
  Builder b(edit);
  Value any = any_of(b, edit.graph().outputs()[0]);
  TN_CHECK(b.status());
  TN_CHECK(Status(services.edit->set_output(edit.raw, 0, any.id)));
  return edit.commit();
}

}  // namespace tenon::autodiff
