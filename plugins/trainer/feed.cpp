// SPDX-License-Identifier: Apache-2.0
#include "feed.hpp"

#include <algorithm>
#include <numeric>

namespace tenon::trainer {
namespace {

Result<std::vector<std::string>> target_names(const std::vector<std::string>& wanted,
                                              const tenon::Feed& feed) {
  if (!wanted.empty()) return wanted;
  std::vector<std::string> left;
  std::string listed;
  for (const tenon::Field& field : feed.fields().all) {
    auto takes = [&](const Fed& input) { return input.at == field.at; };
    if (std::any_of(feed.inputs().begin(), feed.inputs().end(), takes)) continue;
    left.push_back(field.name);
    listed += (listed.empty() ? "" : ", ") + field.name;
  }
  if (left.size() <= 1) return left;
  if (std::find(left.begin(), left.end(), "label") != left.end())
    return std::vector<std::string>{"label"};
  return invalid(cat("option target: expected one of ", listed, ", got none"));
}

Status check_labels(const Field& field,
                    const DLTensor& labels,
                    std::span<const uint64_t> samples,
                    const tenon::Feed& feed) {
  if (!field.classes) return {};
  int64_t n = element_count(labels), each = n / static_cast<int64_t>(samples.size());
  const auto* data = data_of<const int64_t>(labels);
  for (int64_t i = 0; i < n; ++i) {
    if ((data[i] >= 0 && data[i] < *field.classes) || (field.ignored && data[i] == *field.ignored))
      continue;
    const uint64_t sample = samples[static_cast<size_t>(i / each)];
    return invalid(
        cat("field ", field.name, ": label ", data[i], " of ", feed.sample_text(sample),
            ": expected 0 to ", *field.classes - 1,
            data[i] < 0 ? "; option ignore_index of cross_entropy leaves labels out" : ""));
  }
  return {};
}

}  // namespace

Result<Feed> Feed::make(tn_ctx* ctx,
                        const Component& data,
                        Graph model,
                        const std::vector<std::string>& targets,
                        bool keeps_double,
                        std::string_view option) {
  FeedPlan plan{.option = option, .user = "training"};
  if (!targets.empty()) plan.labels = targets;
  Feed out;
  TN_TRY(feed, tenon::Feed::make(ctx, data, model, plan));
  out.feed_ = std::move(feed);
  TN_TRY(wanted, target_names(targets, out.feed_));
  const Fields& fields = out.feed_.fields();
  const bool is_double = keeps_double || std::ranges::any_of(model.inputs(), [](Value v) {
                           return v.dtype() == TN_F64;
                         });
  for (const Fed& input : out.feed_.inputs())
    out.inputs_.push_back({input.input, input.dtype, fields.all[input.at].sample, {}, {}});
  for (const std::string& name : wanted) {
    const tenon::Field* field = fields.find(name);
    const bool is_number = field && is_float(field->dtype);
    const uint32_t dtype =
        is_number ? (is_double && field->dtype == TN_F64 ? TN_F64 : TN_F32) : TN_I64;
    TN_CHECK(out.feed_.want(name, dtype)
                 .in(option == "curriculum" ? "option curriculum: score" : "option target"));
    out.targets_.push_back({name, dtype, field->sample, {}, {}});
  }
  return out;
}

Result<tenon::Feed::Batch> Feed::load(std::span<const uint64_t> samples, uint64_t seed) {
  TN_TRY(batch, feed_.load(samples, seed));
  for (size_t i = 0; i < targets_.size(); ++i)
    TN_CHECK(check_labels(targets_[i], batch.extras[i], samples, feed_));
  return batch;
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
