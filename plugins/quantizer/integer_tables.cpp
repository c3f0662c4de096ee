// SPDX-License-Identifier: Apache-2.0
// Functions of one value as tables of numbers.
#include <algorithm>

#include "integer_rules.hpp"
#include "pointwise_values.hpp"

namespace tenon::quantizer {
namespace {

constexpr int kLeast = 4096, kMost = 32768;  // numbers of a table behind a sum
constexpr double kGrowth = 1.25;  // from one place to the next where a function may be flat

// A function of each element alone: beside it there are numbers, no vectors, and no further axes.
bool is_function_of_one(Node node) {
  if (!is_pointwise_of_one(node) || node.output().dtype() != TN_F32) return false;
  for (uint64_t i = 1; i < node.n_inputs(); ++i)
    if (node.input(i) && node.input(i).type().elements() != 1) return false;
  const Type from = node.input(0).type(), to = node.output().type();
  return from.ranked && to.ranked && from.rank() == to.rank();
}

// What all that reads a value stores it as; nothing where they differ.
std::optional<Stored8> stored_behind(Value v) {
  if (v.is_output() || v.consumer_count() != 1 || !v.consumer(0).is("QuantizeLinear"))
    return std::nullopt;
  return storage_of(v.consumer(0));
}

// Between two neighbours a function passes what lies between them: their steps are its error.
bool is_fine(const Stored8& to, const Tensor& table, int count) {
  const auto* y = table.data<float>();
  for (int i = 1; i < count; ++i)
    if (!(std::abs(to.stored(static_cast<double>(y[i])) -
                   to.stored(static_cast<double>(y[i - 1]))) <= 1))
      return false;
  return true;
}

}  // namespace

Result<Tensor> Rewriting::values(Node node, const std::vector<float>& numbers) {
  return values_at(ctx_, std::span(&node, 1), numbers, {static_cast<int64_t>(numbers.size())});
}

// The least of growing sizes beyond which, up to `most`, the function is stored as one number on
// each side.
Result<double> Rewriting::flat_beyond(Node node, const Stored8& to, double most) {
  std::vector<float> places;
  for (double size = 256 * to.scale;; size *= kGrowth) {
    places.push_back(static_cast<float>(-size));
    places.push_back(static_cast<float>(size));
    if (size >= most) break;
  }
  TN_TRY(results, values(node, places));
  const auto* y = results.data<float>();
  auto stored = [&](size_t i) { return to.stored(static_cast<double>(y[i])); };
  size_t at = places.size() - 2;
  while (at > 0 && stored(at - 2) == stored(at) && stored(at - 1) == stored(at + 1))
    at -= 2;
  return static_cast<double>(places[at + 1]);
}

// False: it would need more numbers.
Result<bool> Rewriting::table_of_sum(Node node,
                                     const Integers& x,
                                     const Stored8& to,
                                     Integers* out) {
  TN_TRY(range, flat_beyond(node, to, x.largest_real()));
  for (int count = kLeast; count <= kMost; count *= 2) {
    const double step = 2 * range / count;
    std::vector<float> numbers;
    for (int i = -count / 2; i < count / 2; ++i)
      numbers.push_back(static_cast<float>(i * step));
    TN_TRY(results, values(node, numbers));
    if (!is_fine(to, results, count)) continue;
    Value index = n_.rescaled(x, step, -count / 2, count / 2 - 1);
    out->value = n_.builder().add(index, n_.builder().number(count / 2, TN_I64));
    const auto* y = results.data<float>();
    out->table.assign(y, y + count);
    return true;
  }
  return false;
}

Status Rewriting::table(Node node) {
  const Integers* x = known(node.input(0));
  if (!x || !is_function_of_one(node)) return refuse(node, "it has no integer form here");
  Integers out;
  if (!x->table.empty() || x->is_stored()) {
    std::vector<float> numbers(x->table.begin(), x->table.end());
    out.value = numbers.empty() ? n_.index_of(*x) : x->value;
    const int64_t first = x->value.dtype() == TN_I8 ? -128 : 0;
    for (int64_t i = 0; i < 256 && x->table.empty(); ++i)
      numbers.push_back(static_cast<float>(x->scale[0] * static_cast<double>(first + i - x->zero)));
    TN_TRY(results, values(node, numbers));
    const auto* y = results.data<float>();
    out.table.assign(y, y + numbers.size());
  } else {
    std::optional<Stored8> to = stored_behind(node.output());
    if (!to) return refuse(node, "a function of a sum whose result is not rounded right behind it");
    TN_TRY(fits, table_of_sum(node, *x, *to, &out));
    if (!fits)
      return refuse(
          node, cat("a function of a sum that is stored in steps too fine for a table of ", kMost,
                    " numbers"));
  }
  TN_CHECK(n_.status());
  if (!std::all_of(out.table.begin(), out.table.end(), [](double y) { return std::isfinite(y); }))
    return refuse(node, "it is not finite everywhere");
  known_[node.output().id] = out;
  return {};
}

}  // namespace tenon::quantizer
