// SPDX-License-Identifier: Apache-2.0
#include "hints.hpp"

#include <cmath>

#include <nlohmann/json.hpp>

namespace tenon::distiller {
namespace {

std::string both(Value student, Value teacher) {
  return cat("option features: the student's ", student.name(), " is ", type_text(student.type()),
             ", ", teacher.name(), " is ", type_text(teacher.type()));
}

// Rank 4 has its channels on axis 1, as convolutions; rank 2 and 3 at the end, as products.
size_t channel_axis(const Type& type) {
  return type.rank() > 3 ? 1 : type.rank() - 1;
}

Status check(Value student, Value teacher, bool adapted) {
  Type a = student.type(), b = teacher.type();
  if (!a.ranked || !b.ranked || a.rank() != b.rank() || a.rank() < 2)
    return invalid(both(student, teacher) + ": expected the same rank, at least 2");
  size_t channel = channel_axis(a);
  if (adapted && (a.dims[channel] < 0 || b.dims[channel] < 0))
    return invalid(both(student, teacher) + ": an adapter needs to know how many channels");
  if (adapted) a.dims[channel] = b.dims[channel];
  if (may_equal(a, b)) return {};
  return invalid(cat(both(student, teacher), ": expected the same shape",
                     adapted ? " but for the channels" : ""));
}

// Normal with variance 1 / inputs: what comes out has the size of what goes in.
Result<Value> first_weight(
    EditView edit, const Type& student, int64_t from, int64_t to, uint64_t seed, uint64_t place) {
  std::vector<double> draws(static_cast<size_t>(from * to));
  services.random->normal(seed, place, 0, draws.data(), draws.size());
  std::vector<float> numbers;
  for (double x : draws)
    numbers.push_back(static_cast<float>(x / std::sqrt(static_cast<double>(from))));
  std::vector<int64_t> dims{from, to};
  if (student.rank() > 3) {
    dims.assign(student.rank(), 1);
    dims[0] = to;
    dims[1] = from;
  }
  return edit.constant<float>(TN_F32, dims, numbers, cat("distiller/adapter", place));
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

Result<Value> hint_loss(EditView edit,
                        const Objective& objective,
                        Value student,
                        Value teacher,
                        Adapter adapter,
                        uint64_t seed,
                        uint64_t place) {
  Type a = student.type(), b_type = teacher.type();
  bool needed = a.ranked && b_type.ranked && a.rank() == b_type.rank() && a.rank() > 1 &&
                a.dims[channel_axis(a)] != b_type.dims[channel_axis(a)];
  bool has_adapter = adapter == Adapter::kAlways || (adapter == Adapter::kAuto && needed);
  TN_CHECK(check(student, teacher, has_adapter));
  Precise b(edit);
  Value x = b.widened(student, teacher), y = b.widened(teacher, student);
  if (has_adapter) {
    int64_t from = a.dims[channel_axis(a)], to = b_type.dims[channel_axis(a)];
    TN_TRY(weight, first_weight(edit, a, from, to, seed, place));
    TN_CHECK(objective.train(weight));
    x = b.op(a.rank() > 3 ? "Conv" : "MatMul", {x, b.cast(weight, x.dtype())});
  }
  Value difference = b.sub(x, y);
  Value loss = b.mean(b.mul(difference, difference));
  TN_CHECK(b.status());
  return loss;
}

}  // namespace tenon::distiller
