// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a student may learn of a value inside its teacher: one row of a table for each way.

#include <string_view>

#include "soft.hpp"

namespace tenon::distiller {

enum class Adapter { kAuto, kAlways, kNone };

struct MatchPlan {
  Adapter adapter = Adapter::kAuto;  // hint
  double distance = 25, angle = 50;  // relation
  double softness = 0.07;            // contrast
  int64_t width = 128;               // contrast
  uint64_t seed = 0;                 // of the first numbers of what is trained beside the student
  static MatchPlan read(const Options& options);
};

// The two values, what may be trained beside the student, and which of the pairs this is.
struct Matched {
  const Objective& objective;
  Value student, teacher;
  uint64_t place = 0;
};

struct Match {
  std::string_view name;  // in the option "match"
  Result<Value> (*loss)(EditView edit, const Matched& pair, const MatchPlan& plan);
};

// The row of this name; says which there are when there is none.
Result<const Match*> find_match(std::string_view name);

inline constexpr double kTiny = 1e-12;  // squared lengths under it have no direction

// For messages.
std::string text_of(const Matched& pair);
// Rank 4 and up has its channels on axis 1, as convolutions; rank 2 and 3 at the end, as products.
size_t channel_axis(const Type& type);
// x over its length along the last axis; nothing stays nothing.
Value unit(Precise& b, Value x);
// [N, all that a sample has]
Value flat(Precise& b, Value x);
// A trained matrix [from, to], normal with variance 1 / from: what comes out has the size of what
// goes in. With a rank above 3 it is the weight of a 1x1 convolution, [to, from, 1, ...].
Result<Value> trained_map(EditView edit,
                          const Objective& objective,
                          std::string_view name,
                          size_t rank,
                          int64_t from,
                          int64_t to,
                          uint64_t seed,
                          uint64_t stream);

}  // namespace tenon::distiller
