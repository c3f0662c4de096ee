// SPDX-License-Identifier: Apache-2.0
#include "pairing.hpp"

#include <algorithm>

#include "tenon/sdk/number.hpp"

namespace tenon::metrics {

namespace {

Result<Pair> pair_of(const DLTensor& got, const DLTensor& want) {
  TN_TRY(numbers, numbers_as<double>(got));
  TN_TRY(wanted, numbers_as<double>(want));
  std::span<const int64_t> a = shape_of(got), b = shape_of(want);
  return Pair{{{a.begin(), a.end()}, std::move(numbers)},
              {{b.begin(), b.end()}, std::move(wanted)}};
}

Status differing(const DLTensor& got, const DLTensor& want) {
  return invalid(cat("shapes differ: output ", shape_text(shape_of(got)), ", expected ",
                     shape_text(shape_of(want))));
}

}  // namespace

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "[";
  for (int64_t dim : shape)
    text += cat(text.size() > 1 ? ", " : "", dim);
  return text + "]";
}

Result<const DLTensor*> output_at(Tensors out, int64_t i) {
  if (i < 0 || static_cast<size_t>(i) >= out.size())
    return invalid(cat("option output: expected a number below ", out.size(), ", got ", i));
  return out[static_cast<size_t>(i)];
}

Result<const DLTensor*> label_at(Tensors label, int64_t i) {
  if (label.empty()) return invalid("no labels were given");
  return label[std::min(static_cast<size_t>(i), label.size() - 1)];
}

bool are_alike(const DLTensor& got, const DLTensor& want) {
  auto trimmed = [](std::span<const int64_t> shape) {
    return !shape.empty() && shape.back() == 1 ? shape.first(shape.size() - 1) : shape;
  };
  return std::ranges::equal(trimmed(shape_of(got)), trimmed(shape_of(want)));
}

Result<Pair> same_shape(const DLTensor& got, const DLTensor& want) {
  if (!std::ranges::equal(shape_of(got), shape_of(want))) return differing(got, want);
  return pair_of(got, want);
}

Result<Pair> alike(const DLTensor& got, const DLTensor& want) {
  if (!are_alike(got, want)) return differing(got, want);
  return pair_of(got, want);
}

Result<std::vector<int64_t>> chosen(int64_t option, Tensors out, Tensors label) {
  if (option >= 0) return std::vector<int64_t>{option};
  if (out.size() != label.size())
    return invalid(
        cat("expected as many outputs as the reference has: ", label.size(), ", got ", out.size()));
  std::vector<int64_t> all;
  for (size_t i = 0; i < out.size(); ++i)
    all.push_back(static_cast<int64_t>(i));
  return all;
}

}  // namespace tenon::metrics
