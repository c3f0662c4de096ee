// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the losses of this plugin have in common: which prediction and target they compare, and how
// their nodes are marked.

#include <string>
#include <vector>

#include "tenon/sdk/build.hpp"
#include "tenon/sdk/role/loss.hpp"

namespace tenon::trainer {

// Notes on a target that holds classes: how many there are, and the number that stands for none.
// Whoever feeds the batches checks them, because a graph cannot refuse a number.
inline constexpr std::string_view kClassesNote = "classes";
inline constexpr std::string_view kIgnoredNote = "ignored_class";

// Notes of the graph where a loss divides by what counts (labels that are not ignored, weights of
// classes, positives) and not by all: names of two scalars. The first is the share that counts, the
// second what the loss was divided by, which is that share, and something else where it is 0.
// Batches are put together as sum(samples * divisor * loss) / sum(samples * share).
inline constexpr std::string_view kShareNote = "counted_share", kDivisorNote = "counted_divisor";

// Divides by the share, a scalar, or by 1 where that is 0, and notes both.
Result<Value> divided_by_share(Builder& b, Value parts, Value share);

// The name of a value that the loss has noted of the graph, or empty.
std::string noted(const tn_graph* graph, std::string_view note);

// Makes outputs of both scalars, where there are any, under the names of their notes.
Status show_shares(EditView edit);

// The mean over batches as over one of all their samples.
struct MeanLoss {
  double sum = 0, weight = 0;
  void add(double loss, double samples, double share, double divisor) {
    sum += loss * samples * divisor;
    weight += samples * share;
  }
  double value() const { return weight > 0 ? sum / weight : 0; }
};

struct Compared {
  Value prediction, target;
  Type predicted, wanted;
};

// The first prediction and the one target; both of known rank.
Result<Compared> compared(const Objective& objective);

// Numbers against numbers: both in float32, of one shape.
struct Paired {
  Value prediction, target;
  std::vector<Value> ends;  // for mean_loss
};
Result<Paired> paired(Builder& b, const Objective& objective);

// The same sizes, as far as they are known.
bool fits(const Type& a, const Type& b);

// What goes into a final Softmax or LogSoftmax over this axis, else the value itself: the logarithm
// of a Softmax loses digits.
Value logits_of(Value prediction, int64_t axis);

// The mean of everything, in float32 under mixed precision: the nodes from the ends of the model to
// here are marked for precision.autocast; cast: as its notes.
Result<Value> mean_loss(Builder& b,
                        Value parts,
                        const std::vector<Value>& ends,
                        std::string_view cast = "fp32");

// The axis counted from 0; the classes on it must be known.
Result<int64_t> class_axis(const Compared& of, int64_t axis);

}  // namespace tenon::trainer
