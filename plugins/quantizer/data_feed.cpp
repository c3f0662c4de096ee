// SPDX-License-Identifier: Apache-2.0
#include "data_feed.hpp"

#include <numeric>

#include <nlohmann/json.hpp>

namespace tenon::quantizer {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words)
    out += (out.empty() ? "" : ", ") + word;
  return out;
}

}  // namespace

Result<DataFeed> DataFeed::make(
    tn_ctx* ctx, const Component& data, Graph graph, uint64_t samples, uint64_t batch) {
  DataFeed feed;
  feed.data_ = &data;
  feed.batch_ = batch;
  uint64_t size = feed.table()->size(feed.data_->self());
  if (size == 0) return invalid(cat("option data: ", feed.data_->id(), " is an empty data set"));
  feed.samples_ = std::min(samples, size);  // a stream has TN_SIZE_UNKNOWN, the largest number
  TN_CHECK(feed.match(graph));
  for (const Input& input : feed.inputs_) {  // a batch size that is part of the model is kept
    if (!input.type.ranked || input.type.dims.empty() || input.type.dims[0] < 0) continue;
    uint64_t fixed = static_cast<uint64_t>(input.type.dims[0]);
    if (fixed > samples && fixed <= size)
      return invalid(cat("option samples: the model wants ", fixed,
                         " samples at once: expected at ", "least ", fixed, ", got ", samples));
    if (fixed == 0 || fixed > size)
      return invalid(
          cat("option data: the model wants ", fixed, " samples at once, the data set has ", size));
    feed.batch_ = fixed;
    feed.samples_ -= feed.samples_ % fixed;
  }
  StringSink fields;
  TN_CHECK(feed.table()->fields(feed.data_->self(), fields.get()));
  feed.buffers_ = std::make_unique<Buffers>(ctx, nlohmann::json::parse(fields.text).size());
  return feed;
}

Status DataFeed::match(Graph graph) {
  if (services.graph->count(graph.raw, TN_LIST_STATES) > 0)
    return unsupported("the model has state, which calibration does not carry");
  StringSink text;
  TN_CHECK(table()->fields(data_->self(), text.get()));
  nlohmann::json fields = nlohmann::json::parse(text.text, nullptr, false);
  if (!fields.is_array()) return {TN_INTERNAL, cat(data_->id(), ": fields() is no JSON array")};
  std::vector<std::string> given, wanted, missing;
  for (const nlohmann::json& field : fields)
    given.push_back(field.value("name", ""));
  std::vector<Value> values = graph.inputs();
  for (size_t i = 0; i < values.size(); ++i) {
    Input input{std::string(graph.input_name(i)), values[i].type()};
    wanted.push_back(input.name);
    auto at = std::find(given.begin(), given.end(), input.name);
    if (at == given.end()) {
      missing.push_back(input.name);
      continue;
    }
    input.field = static_cast<size_t>(at - given.begin());
    std::string dtype = fields[input.field].value("dtype", "");
    if (dtype != dtype_name(input.type.dtype))
      return invalid(cat("option data: field ", input.name, ": the model wants ",
                         dtype_name(input.type.dtype), ", got ", dtype));
    inputs_.push_back(std::move(input));
  }
  if (missing.empty()) return {};
  return invalid(cat("option data: no field for ", joined(missing), " (the data set has ",
                     joined(given), "; the model wants ", joined(wanted), ")"));
}

std::string DataFeed::batch_text(uint64_t b) const {
  return cat("batch ", b, " (samples ", first(b), " to ", last(b) - 1, ")");
}

Result<std::vector<const DLTensor*>> DataFeed::load(uint64_t b) {
  std::vector<uint64_t> index(last(b) - first(b));
  std::iota(index.begin(), index.end(), first(b));
  Status loaded(table()->batch(data_->self(), index.data(), index.size(), 0, buffers_->outputs()));
  if (!loaded.ok()) return std::move(loaded).in(batch_text(b));
  views_.clear();
  for (const Input& input : inputs_) {
    views_.push_back((*buffers_)[input.field].dl());
    const DLTensor& tensor = views_.back();
    bool fits = !input.type.ranked || input.type.rank() == static_cast<size_t>(tensor.ndim);
    for (size_t i = 0; fits && input.type.ranked && i < input.type.rank(); ++i)
      fits = input.type.dims[i] < 0 || input.type.dims[i] == tensor.shape[i];
    if (fits) continue;
    std::string got;
    for (int64_t dim : shape_of(tensor))
      got += cat(got.empty() ? "" : "x", dim);
    return invalid(cat("option data: field ", input.name, ": a batch of it is ", got,
                       ", which the model does not take"));
  }
  std::vector<const DLTensor*> out;
  for (const DLTensor& tensor : views_)
    out.push_back(&tensor);
  return out;
}

}  // namespace tenon::quantizer
