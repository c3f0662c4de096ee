// SPDX-License-Identifier: Apache-2.0
#include "source.hpp"

#include <algorithm>
#include <cstring>

#include <nlohmann/json.hpp>

#include "tenon/role/dataset.h"

#include "tenon/sdk/collected.hpp"

namespace tenon::augment {
namespace {

constexpr uint64_t kInner = 0x696e6e6572;  // the number that the next data set's seed is mixed with

uint32_t dtype_named(const std::string& name) {
  for (uint32_t dtype : {TN_F32, TN_F64, TN_F16, TN_BF16, TN_I8, TN_I16, TN_I32, TN_I64, TN_U8,
                         TN_U16, TN_U32, TN_U64, TN_BOOL})
    if (dtype_name(dtype) == name) return dtype;
  return TN_DTYPE_NONE;
}

}  // namespace

Result<Source> Source::open(tn_ctx* ctx, const Options& options) {
  Source out;
  out.ctx_ = ctx;
  TN_TRY(data, component_option(ctx, options, "data", "tenon.dataset/1"));
  out.data_ = std::move(data);
  out.seed_ = static_cast<uint64_t>(options.integer("seed"));
  StringSink text;
  TN_CHECK(Status(out.data_.table<tn_dataset>()->fields(out.data_.self(), text.get())));
  nlohmann::json fields = nlohmann::json::parse(text.text, nullptr, false);
  if (!fields.is_array() || fields.empty())
    return Status(TN_INTERNAL, cat(out.data_.id(), ": fields() is no JSON array of fields"));
  for (const auto& field : fields)
    out.fields_.push_back({field.value("name", ""), dtype_named(field.value("dtype", "")),
                           field.value("shape", std::vector<int64_t>{})});
  return out;
}

uint64_t Source::size() const {
  return data_.table<tn_dataset>()->size(data_.self());
}

Result<size_t> Source::field(const Options& options, std::string_view option) const {
  std::string wanted = options.text(option), known;
  if (wanted.empty()) return size_t{0};
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].name == wanted) return i;
    known += cat(i ? ", " : "", fields_[i].name);
  }
  return invalid(cat("option ", option, ": expected one of ", known, ", got '", wanted, "'"));
}

Result<std::vector<Tensor>> Source::load(std::span<const uint64_t> index, uint64_t seed) const {
  Collected out(ctx_, fields_.size());
  TN_CHECK(Status(data_.table<tn_dataset>()->batch(data_.self(), index.data(), index.size(),
                                                   mixed(seed, kInner), out.outputs())));
  for (size_t i = 0; i < fields_.size(); ++i)
    if (!out[i])
      return Status(TN_INTERNAL, cat(data_.id(), ": gave nothing for ", fields_[i].name));
  return out.take();
}

std::string fields_json(std::span<const Field> fields) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Field& field : fields)
    out.push_back(
        {{"name", field.name}, {"dtype", dtype_name(field.dtype)}, {"shape", field.sample}});
  return out.dump();
}

Status pass_on(const Tensor& from, uint64_t i, const Outputs& outputs) {
  DLTensor t = from.dl();
  TN_TRY(out, outputs.get(i, dtype_of(t), shape_of(t)));
  uint64_t bytes = bytes_of(dtype_of(t), element_count(t));
  if (bytes) std::memcpy(data_of<char>(out), data_of<const char>(t), bytes);
  return {};
}

Result<DLTensor> result_for(const Field& field, uint64_t n, uint64_t i, const Outputs& outputs) {
  std::vector<int64_t> shape = field.sample;
  shape.insert(shape.begin(), static_cast<int64_t>(n));
  return outputs.get(i, field.dtype, shape);
}

}  // namespace tenon::augment
