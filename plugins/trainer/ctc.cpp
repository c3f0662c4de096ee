// SPDX-License-Identifier: Apache-2.0
// "trainer.ctc": connectionist temporal classification (Graves et al. 2006): the negative logarithm
// of the probability that frames give the target's classes, over all ways to align them, by
// tenon:CtcLoss. The mean over samples of loss/length is PyTorch's reduction "mean".
#include "objective.hpp"

namespace tenon::trainer {
namespace {

class Ctc {
 public:
  static Result<Ctc> create(tn_ctx*, const Options& options) {
    return Ctc{options.integer("blank"), options.text("layout") == "tnc",
               options.flag("zero_infinity"), options.text("divide_by") == "length"};
  }

  Result<Value> build(EditView edit, const Objective& objective) const {
    TN_TRY(of, operands(objective));
    Builder b(edit);
    Value scores = b.cast(of.logits, TN_F32);
    if (frames_first_) scores = b.transpose(scores, {1, 0, 2});
    std::vector<Value> inputs{scores, b.cast(of.target, TN_I64)}, ends{of.logits, of.target};
    if (of.lengths) {
      inputs.push_back(b.cast(of.lengths, TN_I64));
      ends.push_back(of.lengths);
    }
    Node node = b.node({.type = "CtcLoss",
                        .inputs = inputs,
                        .attrs = {{"blank", blank_}, {"zero_infinity", zero_infinity_ ? 1 : 0}},
                        .domain = "tenon"});
    TN_CHECK(b.status());
    Value losses = node.output();
    if (by_length_) losses = b.div(losses, lengths_of(b, inputs[1]));
    return mean_loss(b, losses, ends);
  }

 private:
  Ctc(int64_t blank, bool frames_first, bool zero_infinity, bool by_length)
      : blank_(blank),
        frames_first_(frames_first),
        zero_infinity_(zero_infinity),
        by_length_(by_length) {}

  struct Operands {
    Value logits, target, lengths;  // lengths: falsy where all frames count
  };
  Result<Operands> operands(const Objective& objective) const {
    Objective first = objective;
    if (first.targets.size() == 2) first.targets.resize(1);
    TN_TRY(of, compared(first));
    if (of.predicted.rank() != 3 || of.predicted.dims[2] < 1)
      return invalid(
          cat("prediction ", of.prediction.name(), ": expected scores ",
              frames_first_ ? "[frames, samples, classes]" : "[samples, frames, classes]",
              " of known classes, got ", type_text(of.predicted)));
    if (of.wanted.rank() != 2 || is_float(of.wanted.dtype) || of.wanted.dtype == TN_BOOL)
      return invalid(cat("target ", of.target.name(),
                         ": expected classes as integers [samples, longest], padded with -1, got ",
                         type_text(of.wanted)));
    if (blank_ >= of.predicted.dims[2])
      return invalid(cat("option blank: expected a class from 0 to ", of.predicted.dims[2] - 1,
                         ", got ", blank_));
    Value lengths = objective.targets.size() == 2 ? objective.targets[1] : Value{};
    if (lengths && (lengths.type().rank() != 1 || is_float(lengths.dtype())))
      return invalid(cat("target ", lengths.name(), ": expected numbers of frames as integers ",
                         "[samples], got ", type_text(lengths.type())));
    return Operands{logits_of(of.prediction, 2), of.target, lengths};
  }

  // Of the targets, at least 1: what PyTorch divides by.
  static Value lengths_of(Builder& b, Value target) {
    Value counted = b.op("GreaterOrEqual", {target, b.number(0, TN_I64)});
    Value length = b.sum(b.cast(counted, TN_F32), {1}, false);
    return b.op("Max", {length, b.number(1, TN_F32)});
  }

  int64_t blank_;
  bool frames_first_, zero_infinity_, by_length_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_LOSS(ctc,
           tenon::trainer::Ctc,
           "trainer.ctc",
           "classes of frames against a shorter text, however they are aligned",
           R"({
  "properties": {
    "blank": {"type": "integer", "minimum": 0, "default": 0, "description": "the class of the blank"},
    "layout": {"type": "string", "enum": ["ntc", "tnc"], "default": "ntc", "description": "of the scores: samples or frames first"},
    "zero_infinity": {"type": "boolean", "default": false, "description": "zero_infinity: a target that does not fit into its frames has loss 0, not infinity"},
    "divide_by": {"type": "string", "enum": ["length", "one"], "default": "length", "description": "divides a sample's loss by the length of its target, as in PyTorch, or does not"}}})")
