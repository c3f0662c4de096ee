// SPDX-License-Identifier: Apache-2.0
#include "curriculum.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

#include <nlohmann/json.hpp>

#include "tenon/sdk/number.hpp"

namespace tenon::trainer {
namespace {

using nlohmann::json;

// Streams of random numbers: those below are of the orders of epochs.
constexpr uint64_t kDrawStream = uint64_t{1} << 48;

Status bad(std::string_view what) {
  return invalid(cat("option curriculum: ", what));
}

// The whole step of so many to the longest that this length reaches, at least the first.
uint64_t bucket_of(uint64_t wanted, uint64_t longest, uint64_t buckets) {
  if (buckets == 0 || wanted >= longest) return std::min(wanted, longest);
  uint64_t best = 0;
  for (uint64_t k = 1; k <= buckets; ++k) {
    uint64_t length = (longest * k + buckets - 1) / buckets;
    if (k == 1 || length <= wanted) best = length;
  }
  return best;
}

// The bucket that has room for so much.
uint64_t bucket_above(uint64_t needed, uint64_t longest, uint64_t buckets) {
  if (buckets == 0) return std::max<uint64_t>(needed, 1);
  for (uint64_t k = 1; k < buckets; ++k)
    if (uint64_t length = (longest * k + buckets - 1) / buckets; length >= needed) return length;
  return longest;
}

// How many steps [samples, steps, ...] are to the last one where a number is not 0.
uint64_t steps_in_use(const DLTensor& rows) {
  auto n_rows = static_cast<size_t>(rows.shape[0]), n_steps = static_cast<size_t>(rows.shape[1]);
  size_t bytes = static_cast<size_t>(bytes_of(dtype_of(rows), element_count(rows)));
  size_t step = bytes / std::max<size_t>(n_rows * n_steps, 1), used = 0;
  const char* data = data_of<const char>(rows);
  for (size_t row = 0; row < n_rows; ++row)
    for (size_t at = n_steps; at > used; --at) {
      const char* begin = data + (row * n_steps + at - 1) * step;
      if (std::any_of(begin, begin + step, [](char byte) { return byte != 0; })) used = at;
    }
  return used;
}

// Marks the fields whose samples have the first axis of the first input's; its size.
Result<int64_t> mark_shortened(std::vector<Field>& inputs,
                               std::vector<Field>& targets,
                               std::string_view who) {
  if (inputs.empty() || inputs[0].sample.empty())
    return invalid(cat(who, ": expected samples with an axis of steps"));
  int64_t longest = inputs[0].sample[0];
  for (std::vector<Field>* fields : {&inputs, &targets})
    for (Field& field : *fields)
      field.is_shortened = !field.sample.empty() && field.sample[0] == longest;
  return longest;
}

// By a field of the data set.
Result<std::vector<double>> scores_of(Feed& feed, const std::vector<uint64_t>& samples) {
  const uint64_t at_once = feed.batch();
  std::vector<double> out;
  for (uint64_t begin = 0; begin < samples.size(); begin += at_once) {
    uint64_t n = std::min<uint64_t>(at_once, samples.size() - begin);
    TN_TRY(batch, feed.load({samples.data() + begin, n}, 0));
    TN_TRY(numbers, numbers_as<double>(batch.extras[0]));
    const auto each = static_cast<std::ptrdiff_t>(numbers.size() / n);
    for (uint64_t i = 0; i < n; ++i) {
      auto row = numbers.begin() + static_cast<std::ptrdiff_t>(i) * each;
      out.push_back(std::accumulate(row, row + each, 0.0));
      if (!std::isfinite(out.back()))
        return bad(cat("score: sample ", samples[begin + i], ": expected a finite number, got ",
                       out.back()));
    }
  }
  return out;
}

}  // namespace

Result<CurriculumChoice> CurriculumChoice::from(std::string_view text) {
  CurriculumChoice out;
  out.text = text;
  if (text.empty()) return out;
  json given = json::parse(text, nullptr, false);
  for (const auto& [key, value] : given.items()) {
    if (key == "buckets" && value.is_number_unsigned()) {
      out.buckets = value;
    } else if (key == "score" && value.is_string()) {
      out.score_field = value;
    } else if (key == "fit" && value.is_string()) {
      out.fit_field = value;
    } else if (key == "score" && value.is_array()) {
      for (const json& one : value) {
        if (!one.is_number() || !std::isfinite(one.get<double>()))
          return bad(cat("score: sample ", out.scores.size(), ": expected a finite number, got ",
                         one.dump()));
        out.scores.push_back(one);
      }
    } else if (key == "score" || key == "buckets" || key == "fit") {
      return bad(cat(key, ": expected ",
                     key == "score" ? "a field of the data set, or a number for each sample"
                     : key == "fit" ? "an input of the model"
                                    : "a whole number",
                     ", got ", value.dump()));
    } else {
      return bad(cat("expected score, fit, buckets, got '", key, "'"));
    }
  }
  return out;
}

Status Curriculum::set_lengths(const CurriculumChoice& choice,
                               const Value& value,
                               uint64_t updates,
                               std::vector<Field>& inputs,
                               std::vector<Field>& targets) {
  if (!value) return {};
  TN_TRY(longest, mark_shortened(inputs, targets, cat("option schedules: ", kLength)));
  for (uint64_t update = 0; update < updates; ++update) {
    TN_TRY(wanted, value(update));
    if (!(wanted >= 1))
      return invalid(cat("option schedules: ", kLength, ": step ", update + 1,
                         ": expected at least 1, got ", wanted));
    auto whole = static_cast<uint64_t>(std::min(wanted, static_cast<double>(longest)));
    uint64_t length = bucket_of(whole, static_cast<uint64_t>(longest), choice.buckets);
    lengths_.push_back(static_cast<uint32_t>(length));
  }
  return {};
}

Status Curriculum::set_fit(const CurriculumChoice& choice,
                           std::vector<Field>& inputs,
                           std::vector<Field>& targets) {
  if (choice.fit_field.empty()) return {};
  TN_TRY(longest, mark_shortened(inputs, targets, "option curriculum: fit"));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].name == choice.fit_field && inputs[i].is_shortened) fit_ = i;
  if (!fit_)
    return bad(cat("fit: expected an input with an axis of ", longest, " steps, got '",
                   choice.fit_field, "'"));
  buckets_ = choice.buckets;
  if (lengths_.empty()) lengths_.push_back(static_cast<uint32_t>(longest));
  return {};
}

Status Curriculum::set_shares(const CurriculumChoice& choice,
                              const Value& value,
                              uint64_t updates,
                              Feed feed,
                              const std::vector<uint64_t>& samples) {
  if (!value) return {};
  std::vector<double> scores = choice.scores;
  if (!choice.score_field.empty()) {
    TN_TRY(read, scores_of(feed, samples));
    scores = read;
  } else if (scores.size() != feed.size()) {
    return bad(
        cat("score: expected ", feed.size(), " numbers, one for each sample, got ", scores.size()));
  } else {
    for (size_t i = 0; i < samples.size(); ++i)
      scores[i] = choice.scores[samples[i]];
    scores.resize(samples.size());
  }
  std::vector<size_t> order(samples.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  for (size_t i : order)
    easiest_first_.push_back(samples[i]);
  for (uint64_t update = 0; update < updates; ++update) {
    TN_TRY(share, value(update));
    if (!(share > 0))
      return invalid(cat("option schedules: ", kShare, ": step ", update + 1,
                         ": expected a share above 0, got ", share));
    shares_.push_back(std::min(share, 1.0));
  }
  return {};
}

uint64_t Curriculum::length(uint64_t update) const {
  return lengths_.empty() ? 0 : lengths_[std::min<uint64_t>(update, lengths_.size() - 1)];
}

uint64_t Curriculum::length(uint64_t update, std::span<const DLTensor> batch) const {
  uint64_t most = length(update);
  if (!fit_) return most;
  const DLTensor& rows = batch[*fit_];
  return std::min(most,
                  bucket_above(steps_in_use(rows), static_cast<uint64_t>(rows.shape[1]), buckets_));
}

double Curriculum::share(uint64_t update) const {
  return shares_.empty() ? 1 : shares_[std::min<uint64_t>(update, shares_.size() - 1)];
}

// Floyd's way to draw without repetition (Bentley & Floyd 1987), in the order of the draws.
std::vector<uint64_t> Curriculum::draw(uint64_t update,
                                       uint64_t n,
                                       uint64_t seed,
                                       uint64_t batch) const {
  auto part =
      static_cast<uint64_t>(std::ceil(share(update) * static_cast<double>(easiest_first_.size())));
  uint64_t pool = std::clamp<uint64_t>(part, n, easiest_first_.size());
  std::vector<uint32_t> bits(2 * n);
  services.random->bits(seed, kDrawStream + batch, 0, bits.data(), bits.size());
  std::set<uint64_t> taken;
  std::vector<uint64_t> out;
  for (uint64_t i = 0; i < n; ++i) {
    uint64_t last = pool - n + i, wide = uint64_t{bits[2 * i + 1]} << 32 | bits[2 * i];
    uint64_t at = wide % (last + 1);
    if (!taken.insert(at).second) taken.insert(at = last);
    out.push_back(easiest_first_[at]);
  }
  return out;
}

Result<Tensor> shortened(tn_ctx* ctx, const DLTensor& batch, uint64_t length) {
  std::vector<int64_t> dims(batch.shape, batch.shape + batch.ndim);
  int64_t rows = dims[0], steps = dims[1];
  dims[1] = static_cast<int64_t>(length);
  TN_TRY(out, Tensor::zeros(ctx, dtype_of(batch), dims));
  if (rows == 0 || steps == 0) return out;
  auto bytes = static_cast<uint64_t>(bytes_of(dtype_of(batch), element_count(batch)));
  uint64_t row = bytes / static_cast<uint64_t>(rows),
           kept = row / static_cast<uint64_t>(steps) * length;
  DLTensor to = out.dl();
  const auto* source = data_of<const char>(batch);
  auto* target = data_of<char>(to);
  for (int64_t i = 0; i < rows; ++i)
    std::memcpy(target + static_cast<uint64_t>(i) * kept, source + static_cast<uint64_t>(i) * row,
                kept);
  return out;
}

}  // namespace tenon::trainer
