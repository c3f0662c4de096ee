// SPDX-License-Identifier: Apache-2.0
#include "casts.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "redirect.hpp"

namespace tenon::precision {
namespace {

Value existing_cast(Value value, uint32_t dtype) {
  for (uint64_t i = 0, n = value.consumer_count(); i < n; ++i) {
    Node user = value.consumer(i);
    if (user.is("Cast") && user.output().dtype() == dtype) return user.output();
  }
  return {};
}

// A constant whose finite numbers stay finite in the type: those beyond its range, such as the
// -3.4e38 of a mask, become its largest. As infinities they would give NaN, where they are
// multiplied by 0 and where Softmax reads nothing else in a row.
Result<Value> within_range(EditView edit, Value value, uint32_t dtype) {
  const Tensor had = value.dtype() == TN_F32 ? value.constant() : Tensor();
  if (!had || (dtype != TN_F16 && dtype != TN_BF16)) return value;
  const float most = dtype == TN_F16 ? 65504.0F : 0x1.FEp127F;
  const auto is_beyond = [most](float x) { return std::isfinite(x) && std::abs(x) > most; };
  const std::span given(had.data<const float>(), static_cast<size_t>(element_count(had.dl())));
  if (std::ranges::none_of(given, is_beyond)) return value;
  std::vector<float> numbers(given.begin(), given.end());
  for (float& x : numbers)
    if (is_beyond(x)) x = std::copysign(most, x);
  return edit.constant<float>(TN_F32, value.type().dims, numbers, value.name());
}

}  // namespace

Result<Value> Casts::to(Value value, uint32_t dtype) {
  if (value.dtype() == dtype) return value;
  auto [at, is_new] = known_.try_emplace({value.id, dtype});
  if (!is_new) return at->second;
  TN_TRY(read, within_range(edit_, value, dtype));
  at->second = existing_cast(read, dtype);
  if (at->second) return at->second;
  std::string name = cat(value.name(), "_", dtype_name(dtype));
  TN_TRY(made, edit_.add({.type = "Cast",
                          .inputs = {read},
                          .attrs = {{"to", any_dtype(dtype)}},
                          .name = name,
                          .scope = value.producer() ? value.producer().scope() : "",
                          .output_names = {name}}));
  made_.push_back(made);
  at->second = made.output();
  return at->second;
}

Status Casts::outputs_to(Value value, const Type& had) {
  TN_TRY(cast, to(value, had.dtype));
  if (cast == value) return {};
  const Type found = cast.type();
  const bool is_found = found.ranked && std::ranges::count(found.dims, TN_DIM_UNKNOWN) <=
                                            std::ranges::count(had.dims, TN_DIM_UNKNOWN);
  if (had.ranked && !is_found) TN_CHECK(edit_.set_type(cast, had));
  return redirect(edit_, value, cast, uses_of(value));  // the cast itself among them
}

Status Casts::erase_unread() {
  const auto unread = std::ranges::partition(made_, [](Node cast) { return cast.is_used(); });
  for (Node cast : unread)
    TN_CHECK(edit_.erase(cast));
  made_.erase(unread.begin(), unread.end());
  return {};
}

}  // namespace tenon::precision
