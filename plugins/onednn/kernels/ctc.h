// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loss of connectionist temporal classification and its gradient (Graves et al., "Connectionist
// temporal classification", ICML 2006, sections 4.1 and 4.2), over the log softmax of scores:
//   l = blank, y1, blank, ..., blank;  p_t(s) = log softmax_t(l_s)
//   a_t(s) = p_t(s) + logsumexp(a_{t-1}(s), a_{t-1}(s - 1), a_{t-1}(s - 2) where that is no skip of
//            a blank between equal labels);  loss = -logsumexp of the last two at the end
//   d loss / d score_t(k) = softmax_t(k) - sum over s with l_s = k of exp(a + b - p_t + loss)
// where b is a from the end. Exponentials of classes are computed in f32, paths in f64. One sample
// is one piece of work for a thread.

#include "context.h"

namespace tenon::onednn::kernels {

struct Ctc {
  int64_t samples = 0, frames = 0, classes = 0;
  int64_t longest = 0;  // numbers in a row of targets
  int64_t blank = 0;
  bool zero_infinity = false;        // a target that no path can spell counts nothing
  const float* scores = nullptr;     // [samples, frames, classes]
  const int64_t* targets = nullptr;  // [samples, longest]; a target ends at its first negative one
  const int64_t* lengths = nullptr;  // [samples]: frames that count; null: all
  float* losses = nullptr;           // [samples], or null
  float* gradients = nullptr;        // as scores, or null; 0 in frames that do not count
};

// Targets are below classes and not the blank, lengths in 0..frames: the caller has checked it.
void ctc(const Context& context, const Ctc& args);

}  // namespace tenon::onednn::kernels
