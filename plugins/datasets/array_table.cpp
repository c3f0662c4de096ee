// SPDX-License-Identifier: Apache-2.0
#include "array_table.hpp"

#include <algorithm>
#include <cstring>

#include <nlohmann/json.hpp>

namespace tenon::datasets {

std::string fields_json(std::span<const Field> fields) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Field& field : fields)
    out.push_back(
        {{"name", field.name}, {"dtype", dtype_name(field.dtype)}, {"shape", field.sample}});
  return out.dump();
}

Status check_index(std::span<const uint64_t> index, uint64_t size) {
  for (uint64_t i : index)
    if (i >= size) return {TN_OUT_OF_RANGE, cat("sample ", i, " of a data set that has ", size)};
  return {};
}

Status ArrayTable::add(Field field, uint64_t rows, std::shared_ptr<const void> keeper) {
  if (!fields_.empty() && rows != rows_)
    return invalid(cat("field ", field.name, " has ", rows, " samples, field ", fields_[0].name,
                       " has ", rows_, " (the first axis counts samples)"));
  if (std::ranges::find(fields_, field.name, &Field::name) != fields_.end())
    return invalid(cat("expected fields of different names, got two that are called ", field.name));
  rows_ = rows;
  fields_.push_back(std::move(field));
  keepers_.push_back(std::move(keeper));
  return {};
}

Status ArrayTable::batch(std::span<const uint64_t> index, uint64_t, const Outputs& outputs) const {
  TN_CHECK(check_index(index, size()));
  for (size_t f = 0; f < fields_.size(); ++f) {
    const Field& field = fields_[f];
    std::vector<int64_t> shape = field.sample;
    shape.insert(shape.begin(), static_cast<int64_t>(index.size()));
    TN_TRY(out, outputs.get(f, field.dtype, shape));
    uint64_t bytes = field.sample_bytes();
    if (bytes == 0) continue;
    char* to = data_of<char>(out);
    for (uint64_t i : index) {
      std::memcpy(to, field.data.data() + i * bytes, bytes);
      to += bytes;
    }
  }
  return {};
}

}  // namespace tenon::datasets
