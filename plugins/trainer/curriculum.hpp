// SPDX-License-Identifier: Apache-2.0
#pragma once
// Easy things first: sequences that grow (Li et al., arXiv 2108.06084), and samples by a score, of
// which the easiest share is drawn (Bengio et al. 2009; Platanios et al. 2019). Both follow
// schedules over the updates. All of it is a function of seed and step, so nothing of it is kept.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "feed.hpp"

namespace tenon::trainer {

// As schedules name them.
inline constexpr std::string_view kLength = "sequence_length", kShare = "sample_share";

struct CurriculumChoice {
  std::string text;            // the option, a JSON object; empty: none
  std::string score_field;     // of the data set: the sum of a sample's numbers
  std::vector<double> scores;  // or one for each sample
  std::string fit_field;       // an input: batches are cut behind its last number that is not 0
  uint64_t buckets = 8;        // lengths are whole steps of so many to the longest; 0: any

  static Result<CurriculumChoice> from(std::string_view text);
  bool has_score() const { return !score_field.empty() || !scores.empty(); }
};

class Curriculum {
 public:
  // The value at an update; empty: not driven.
  using Value = std::function<Result<double>(uint64_t update)>;

  // Marks the fields that a length shortens: those whose samples have the first axis of the first
  // input's. updates: of the whole run.
  Status set_lengths(const CurriculumChoice& choice,
                     const Value& value,
                     uint64_t updates,
                     std::vector<Field>& inputs,
                     std::vector<Field>& targets);
  // After it: where each batch is cut to its own longest sample. inputs: in the order of a batch.
  Status set_fit(const CurriculumChoice& choice,
                 std::vector<Field>& inputs,
                 std::vector<Field>& targets);
  // samples: those that are trained on.
  Status set_shares(const CurriculumChoice& choice,
                    const Value& value,
                    uint64_t updates,
                    Feed feed,
                    const std::vector<uint64_t>& samples);

  bool has_lengths() const { return !lengths_.empty(); }
  bool has_shares() const { return !shares_.empty(); }
  uint64_t length(uint64_t update) const;  // the most at an update; 0: as long as samples are
  // Of this batch.
  uint64_t length(uint64_t update, std::span<const DLTensor> batch) const;
  double share(uint64_t update) const;  // 1: all samples
  // So many different samples of the easiest ones.
  std::vector<uint64_t> draw(uint64_t update, uint64_t n, uint64_t seed, uint64_t batch) const;

 private:
  std::vector<uint32_t> lengths_;  // by update
  std::optional<size_t> fit_;      // the input
  uint64_t buckets_ = 0;
  std::vector<double> shares_;
  std::vector<uint64_t> easiest_first_;
};

// The first `length` along the second axis.
Result<Tensor> shortened(tn_ctx* ctx, const DLTensor& batch, uint64_t length);

}  // namespace tenon::trainer
