// SPDX-License-Identifier: Apache-2.0
#include "pairing.hpp"

#include <algorithm>

#include "tenon/sdk/number.hpp"

namespace tenon::metrics {

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

Result<Pair> same_shape(const DLTensor& got, const DLTensor& want) {
  auto a = shape_of(got), b = shape_of(want);
  if (!std::equal(a.begin(), a.end(), b.begin(), b.end()))
    return invalid(cat("shapes differ: output ", shape_text(a), ", expected ", shape_text(b)));
  TN_TRY(numbers, numbers_as<double>(got));
  TN_TRY(wanted, numbers_as<double>(want));
  std::vector<int64_t> shape(a.begin(), a.end());
  return Pair{{shape, std::move(numbers)}, {shape, std::move(wanted)}};
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
