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

// Note of the graph where a loss leaves labels out: the name of the value, a scalar, that holds the
// share of those that count. Batches that are put together weigh as much as that.
inline constexpr std::string_view kShareNote = "counted_share";

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
