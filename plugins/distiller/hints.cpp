// SPDX-License-Identifier: Apache-2.0
#include "hints.hpp"

#include <nlohmann/json.hpp>

namespace tenon::distiller {
namespace {

Status check(const Matched& pair, bool adapted) {
  Type a = pair.student.type(), b = pair.teacher.type();
  if (!a.ranked || !b.ranked || a.rank() != b.rank() || a.rank() < 2)
    return invalid(text_of(pair) + ": expected the same rank, at least 2");
  size_t channel = channel_axis(a);
  if (adapted && (a.dims[channel] < 0 || b.dims[channel] < 0))
    return invalid(text_of(pair) + ": an adapter needs to know how many channels");
  if (adapted) a.dims[channel] = b.dims[channel];
  if (may_equal(a, b)) return {};
  return invalid(
      cat(text_of(pair), ": expected the same shape", adapted ? " but for the channels" : ""));
}

}  // namespace

Result<std::vector<Pair>> pairs_option(const Options& options) {
  std::vector<Pair> out;
  std::vector<std::string> names = options.texts("features");
  nlohmann::json object;
  if (names.size() == 1) object = nlohmann::json::parse(names[0], nullptr, false);
  if (!object.is_object()) {
    for (const std::string& name : names)
      out.push_back({name, name});
  } else {
    for (const auto& [student, teacher] : object.items()) {
      if (!teacher.is_string())
        return invalid(cat("option features: ", student,
                           ": expected the name of a value of the teacher, got ", teacher.dump()));
      out.push_back({student, teacher.get<std::string>()});
    }
  }
  if (out.empty()) return invalid("option features: expected names of values, got none");
  return out;
}

Result<Value> hint_loss(EditView edit, const Matched& pair, const MatchPlan& plan) {
  Type a = pair.student.type(), b_type = pair.teacher.type();
  bool needed = a.ranked && b_type.ranked && a.rank() == b_type.rank() && a.rank() > 1 &&
                a.dims[channel_axis(a)] != b_type.dims[channel_axis(a)];
  bool has_adapter = plan.adapter == Adapter::kAlways || (plan.adapter == Adapter::kAuto && needed);
  TN_CHECK(check(pair, has_adapter));
  Precise b(edit);
  Value x = b.widened(pair.student, pair.teacher), y = b.widened(pair.teacher, pair.student);
  if (has_adapter) {
    int64_t from = a.dims[channel_axis(a)], to = b_type.dims[channel_axis(a)];
    TN_TRY(weight, trained_map(edit, pair.objective, cat("distiller/adapter", pair.place), a.rank(),
                               from, to, plan.seed, pair.place));
    x = b.op(a.rank() > 3 ? "Conv" : "MatMul", {x, b.cast(weight, x.dtype())});
  }
  Value difference = b.sub(x, y);
  Value loss = b.mean(b.mul(difference, difference));
  TN_CHECK(b.status());
  return loss;
}

}  // namespace tenon::distiller
