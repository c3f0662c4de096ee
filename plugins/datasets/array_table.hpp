// SPDX-License-Identifier: Apache-2.0
#pragma once
// Named arrays whose first axis counts samples: what npz and CSV files become.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tenon/sdk/role/dataset.hpp"

namespace tenon::datasets {

struct Field {
  std::string name;
  uint32_t dtype = TN_DTYPE_NONE;
  std::vector<int64_t> sample;  // shape of one sample
  std::string_view data;        // all samples, dense; lives in what `owner` or the table keeps
  uint64_t sample_bytes() const { return bytes_of(dtype, element_count(sample)); }
};

std::string fields_json(std::span<const Field> fields);
// The failure for an index that is not below size.
Status check_index(std::span<const uint64_t> index, uint64_t size);

class ArrayTable {
 public:
  // rows: of this field; all fields must have the same number. keeper: what holds the data.
  Status add(Field field, uint64_t rows, std::shared_ptr<const void> keeper);
  uint64_t size() const { return fields_.empty() ? 0 : rows_; }
  const std::vector<Field>& list() const { return fields_; }
  Status fields(Sink& sink) const { return sink.write(fields_json(fields_)); }
  Status batch(std::span<const uint64_t> index, uint64_t seed, const Outputs& outputs) const;

 private:
  std::vector<Field> fields_;
  std::vector<std::shared_ptr<const void>> keepers_;  // shared: a mapped file holds many fields
  uint64_t rows_ = 0;
};

}  // namespace tenon::datasets
