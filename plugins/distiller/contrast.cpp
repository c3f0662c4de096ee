// SPDX-License-Identifier: Apache-2.0
#include "contrast.hpp"

#include "tenon/sdk/contrast.hpp"

namespace tenon::distiller {
namespace {

// The mean over places, mapped to so many numbers of length 1: [N, width].
Result<Value> embedded(EditView edit,
                       Precise& b,
                       const Matched& pair,
                       Value x,
                       bool is_teacher,
                       const MatchPlan& plan) {
  Type type = x.type();
  size_t channel = type.ranked && type.rank() > 1 ? channel_axis(type) : 0;
  if (channel == 0 || type.dims[channel] < 1)
    return invalid(text_of(pair) +
                   ": expected a vector of known size for each sample of both, for match contrast");
  std::vector<int64_t> places;
  for (size_t i = 1; i < type.rank(); ++i)
    if (i != channel) places.push_back(static_cast<int64_t>(i));
  if (!places.empty()) x = b.op("ReduceMean", {x, b.ints(places)}, {{"keepdims", 0}});
  TN_TRY(map,
         trained_map(edit, pair.objective,
                     cat("distiller/contrast", pair.place, is_teacher ? "/teacher" : "/student"), 2,
                     type.dims[channel], plan.width, plan.seed,
                     2 * pair.place + (is_teacher ? 1 : 0)));
  return unit(b, b.op("MatMul", {x, b.cast(map, x.dtype())}));
}

}  // namespace

Result<Value> contrast_loss(EditView edit, const Matched& pair, const MatchPlan& plan) {
  Precise b(edit);
  TN_TRY(s, embedded(edit, b, pair, b.widened(pair.student, pair.teacher), false, plan));
  TN_TRY(t, embedded(edit, b, pair, b.widened(pair.teacher, pair.student), true, plan));
  Value loss = b.mean(info_nce(b, s, t, b.number(plan.softness, s.dtype()), true));
  TN_CHECK(b.status());
  return loss;
}

}  // namespace tenon::distiller
