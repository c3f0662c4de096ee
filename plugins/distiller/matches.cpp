// SPDX-License-Identifier: Apache-2.0
#include "matches.hpp"

#include <array>
#include <cmath>

#include "contrast.hpp"
#include "hints.hpp"
#include "relations.hpp"

namespace tenon::distiller {
namespace {

constexpr std::array kMatches{
    Match{"hint", hint_loss},         Match{"attention", attention_loss},
    Match{"relation", relation_loss}, Match{"similarity", similarity_loss},
    Match{"contrast", contrast_loss},
};

}  // namespace

MatchPlan MatchPlan::read(const Options& options) {
  std::string adapter = options.text("adapter");
  return {.adapter = adapter == "always" ? Adapter::kAlways
                     : adapter == "none" ? Adapter::kNone
                                         : Adapter::kAuto,
          .distance = options.number("distance"),
          .angle = options.number("angle"),
          .softness = options.number("softness"),
          .width = options.integer("width"),
          .seed = static_cast<uint64_t>(options.integer("seed"))};
}

Result<const Match*> find_match(std::string_view name) {
  std::string names;
  for (const Match& one : kMatches) {
    if (one.name == name) return &one;
    names += cat(names.empty() ? "" : ", ", one.name);
  }
  return invalid(cat("option match: expected one of ", names, ", got '", name, "'"));
}

std::string text_of(const Matched& pair) {
  return cat("option features: the student's ", pair.student.name(), " is ",
             type_text(pair.student.type()), ", ", pair.teacher.name(), " is ",
             type_text(pair.teacher.type()));
}

size_t channel_axis(const Type& type) {
  return type.rank() > 3 ? 1 : type.rank() - 1;
}

Value unit(Precise& b, Value x) {
  Value squares = b.op("ReduceSum", {b.mul(x, x), b.ints({-1})}, {{"keepdims", 1}});
  Value length = b.op("Sqrt", {b.op("Max", {squares, b.number(kTiny, x.dtype())})});
  return b.op("Div", {x, length});
}

Value flat(Precise& b, Value x) {
  return b.op("Reshape", {x, b.ints({0, -1})});
}

Result<Value> trained_map(EditView edit,
                          const Objective& objective,
                          std::string_view name,
                          size_t rank,
                          int64_t from,
                          int64_t to,
                          uint64_t seed,
                          uint64_t stream) {
  std::vector<double> draws(static_cast<size_t>(from * to));
  services.random->normal(seed, stream, 0, draws.data(), draws.size());
  std::vector<float> numbers;
  for (double x : draws)
    numbers.push_back(static_cast<float>(x / std::sqrt(static_cast<double>(from))));
  std::vector<int64_t> dims{from, to};
  if (rank > 3) {
    dims.assign(rank, 1);
    dims[0] = to;
    dims[1] = from;
  }
  TN_TRY(made, edit.constant<float>(TN_F32, dims, numbers, name));
  TN_CHECK(objective.train(made));
  return made;
}

}  // namespace tenon::distiller
