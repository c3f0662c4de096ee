// SPDX-License-Identifier: Apache-2.0
#pragma once
// The data set that an augmentation changes.

#include <span>

#include "tenon/sdk/fields.hpp"

#include "draws.hpp"
#include "image.hpp"

namespace tenon::augment {

class Source {
 public:
  // Options data and seed.
  static Result<Source> open(tn_ctx* ctx, const Options& options);
  uint64_t size() const;
  std::string origin(uint64_t index) const { return origin_of(data_, index); }
  const std::vector<Field>& fields() const { return fields_; }
  // The field that an option names; the first where it names none.
  Result<size_t> field(const Options& options, std::string_view option) const;
  // All fields of these samples. The batch's seed goes on changed, so that two augmentations of
  // one kind, one over the other, draw other numbers.
  Result<std::vector<Tensor>> load(std::span<const uint64_t> index, uint64_t seed) const;
  // Of this augmentation's own draws for a batch.
  uint64_t own_seed(uint64_t batch_seed) const { return mixed(batch_seed, seed_); }

 private:
  tn_ctx* ctx_ = nullptr;
  Component data_;
  std::vector<Field> fields_;
  uint64_t seed_ = 0;
};

std::string fields_json(std::span<const Field> fields);
// Result i as it came.
Status pass_on(const Tensor& from, uint64_t i, const Outputs& outputs);
// A type and shape for results: samples of the field, so many.
Result<DLTensor> result_for(const Field& field, uint64_t n, uint64_t i, const Outputs& outputs);

}  // namespace tenon::augment
