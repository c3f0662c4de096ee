// SPDX-License-Identifier: Apache-2.0
#include "feed.hpp"

#include <algorithm>
#include <numeric>

#include <nlohmann/json.hpp>

#include "tenon/role/dataset.h"

#include "tenon/sdk/collected.hpp"
#include "tenon/sdk/number.hpp"

namespace tenon::trainer {
namespace {

using nlohmann::json;

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words)
    out += (out.empty() ? "" : ", ") + word;
  return out.empty() ? "none" : out;
}

Result<std::vector<std::string>> target_names(const std::vector<std::string>& wanted,
                                              const std::vector<std::string>& left) {
  if (!wanted.empty()) return wanted;
  if (left.size() <= 1) return left;
  if (std::find(left.begin(), left.end(), "label") != left.end())
    return std::vector<std::string>{"label"};
  return invalid(cat("option target: expected one of ", joined(left), ", got none"));
}

}  // namespace

Result<Feed> Feed::make(tn_ctx* ctx,
                        const Component& data,
                        Graph model,
                        const std::vector<std::string>& targets) {
  Feed feed;
  feed.ctx_ = ctx;
  feed.data_ = &data;
  feed.size_ = data.table<tn_dataset>()->size(data.self());
  if (feed.size_ == TN_SIZE_UNKNOWN)
    return invalid(cat(data.id(), ": expected a data set with a size, got a stream"));
  if (feed.size_ == 0) return invalid(cat(data.id(), " is an empty data set"));
  TN_CHECK(feed.match(model, targets));
  return feed;
}

Status Feed::match(Graph model, const std::vector<std::string>& targets) {
  if (services.graph->count(model.raw, TN_LIST_STATES) > 0)
    return unsupported("the model has state of its own, which training does not carry");
  StringSink text;
  TN_CHECK(data_->table<tn_dataset>()->fields(data_->self(), text.get()));
  json fields = json::parse(text.text, nullptr, false);
  if (!fields.is_array()) return {TN_INTERNAL, cat(data_->id(), ": fields() is no JSON array")};
  n_fields_ = fields.size();
  std::vector<std::string> names, left;
  for (const json& field : fields)
    names.push_back(field.value("name", ""));
  left = names;
  auto take = [&](const std::string& name, uint32_t dtype, std::vector<Field>& to) -> Status {
    auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end())
      return invalid(cat("no field ", name, " (the data set has ", joined(names), ")"));
    Field field{name, dtype, {}, static_cast<size_t>(at - names.begin()), {}, {}};
    field.sample = fields[field.at].value("shape", std::vector<int64_t>{});
    bool holds_floats = fields[field.at].value("dtype", "").find("float") != std::string::npos;
    if (dtype == TN_DTYPE_NONE) field.dtype = holds_floats ? TN_F32 : TN_I64;
    to.push_back(std::move(field));
    std::erase(left, name);
    return {};
  };
  std::vector<Value> values = model.inputs();
  for (size_t i = 0; i < values.size(); ++i)
    TN_CHECK(take(std::string(model.input_name(i)), values[i].dtype(), inputs_)
                 .in(cat("option data: input ", model.input_name(i), " of the model")));
  TN_TRY(wanted, target_names(targets, left));
  for (const std::string& name : wanted)
    TN_CHECK(take(name, TN_DTYPE_NONE, targets_).in("option target"));
  return {};
}

Result<Tensor> Feed::converted(const Field& field, const Tensor& given) const {
  DLTensor t = given.dl();
  if (dtype_of(t) == field.dtype) return given;
  if (field.dtype == TN_F32) {
    TN_TRY(numbers, numbers_as<float>(t));
    return Tensor::of<float>(ctx_, TN_F32, shape_of(t), numbers);
  }
  if (field.dtype == TN_I64 && !is_float(dtype_of(t))) {
    TN_TRY(numbers, numbers_as<int64_t>(t));
    return Tensor::of<int64_t>(ctx_, TN_I64, shape_of(t), numbers);
  }
  return invalid(cat("option data: field ", field.name, ": the model wants ",
                     dtype_name(field.dtype), ", got ", dtype_name(dtype_of(t))));
}

Status Feed::check_labels(const Field& field,
                          const Tensor& labels,
                          std::span<const uint64_t> samples) const {
  if (!field.classes) return {};
  int64_t n = element_count(labels.dl()), each = n / static_cast<int64_t>(samples.size());
  const int64_t* data = labels.data<int64_t>();
  for (int64_t i = 0; i < n; ++i) {
    if ((data[i] >= 0 && data[i] < *field.classes) || (field.ignored && data[i] == *field.ignored))
      continue;
    return invalid(cat("field ", field.name, ": label ", data[i], " of sample ",
                       samples[static_cast<size_t>(i / each)], ": expected 0 to ",
                       *field.classes - 1));
  }
  return {};
}

Result<std::vector<Tensor>> Feed::load(std::span<const uint64_t> samples, uint64_t seed) const {
  Collected fields(ctx_, n_fields_);
  TN_CHECK(Status(data_->table<tn_dataset>()->batch(data_->self(), samples.data(), samples.size(),
                                                    seed, fields.outputs()))
               .in("option data"));
  std::vector<Tensor> out;
  for (const std::vector<Field>* side : {&inputs_, &targets_}) {
    for (const Field& field : *side) {
      if (!fields[field.at])
        return Status(TN_INTERNAL, cat(data_->id(), ": gave nothing for ", field.name));
      TN_TRY(tensor, converted(field, fields[field.at]));
      TN_CHECK(check_labels(field, tensor, samples));
      out.push_back(tensor);
    }
  }
  return out;
}

// Fisher and Yates.
std::vector<uint64_t> shuffled(uint64_t n, uint64_t seed, uint64_t stream) {
  std::vector<uint64_t> order(n);
  std::iota(order.begin(), order.end(), uint64_t{0});
  std::vector<uint32_t> bits(2 * n);
  services.random->bits(seed, stream, 0, bits.data(), bits.size());
  for (uint64_t i = n; i > 1; --i) {
    uint64_t wide = uint64_t{bits[2 * i - 1]} << 32 | bits[2 * i - 2];
    std::swap(order[i - 1], order[wide % i]);
  }
  return order;
}

}  // namespace tenon::trainer
