// SPDX-License-Identifier: Apache-2.0
#include "ctc.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel_table.h"
#include "scratch.h"

namespace tenon::onednn::kernels {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

double log_add(double a, double b) {
  const double high = std::max(a, b);
  if (high == kNever) return kNever;
  return high + std::log1p(std::exp(std::min(a, b) - high));
}

// One sample, in memory of its thread.
class Sample {
 public:
  Sample(const Ctc& args, int64_t i, char* memory)
      : args_(args),
        scores_(args.scores + i * args.frames * args.classes),
        frames_(args.lengths ? args.lengths[i] : args.frames),
        labels_(reinterpret_cast<int64_t*>(memory)) {
    const int64_t most = most_states(args);
    log_p_ = reinterpret_cast<double*>(labels_ + most);
    forward_ = log_p_ + args.frames * most;
    backward_ = forward_ + args.frames * most;
    largest_ = reinterpret_cast<float*>(backward_ + args.frames * most);
    sums_ = largest_ + args.frames;
    read_labels(args.targets + i * args.longest);
  }
  static int64_t bytes(const Ctc& args) {
    return most_states(args) * 8 * (1 + 3 * args.frames) + 8 * args.frames;
  }

  // softmax: where the probabilities of all classes go, or null.
  void read_scores(const Context& context, float* softmax) {
    context.table->softmax_sums({scores_, frames_, args_.classes, largest_, sums_, softmax});
    for (int64_t t = 0; t < frames_; ++t) {
      const double off = double{largest_[t]} + std::log(double{sums_[t]});
      for (int64_t s = 0; s < states_; ++s)
        log_p_[t * states_ + s] = double{scores_[t * args_.classes + labels_[s]]} - off;
    }
  }

  double loss() {
    walk(forward_, 0, 1);
    if (frames_ == 0) return states_ == 1 ? 0 : -kNever;
    const double* last = forward_ + frames_ * states_ - 1;
    return -(states_ > 1 ? log_add(last[0], last[-1]) : last[0]);
  }

  // Takes from the probabilities what the paths say of each class.
  void subtract_paths(double loss, float* softmax) {
    walk(backward_, frames_ - 1, -1);
    for (int64_t i = 0; i < frames_ * states_; ++i) {
      const double both = forward_[i] + backward_[i];
      // A class of probability 0 is on no path.
      if (both == kNever && loss != -kNever) continue;
      softmax[i / states_ * args_.classes + labels_[i % states_]] -=
          static_cast<float>(std::exp(both - log_p_[i] + loss));
    }
  }

  int64_t frames() const { return frames_; }

 private:
  static int64_t most_states(const Ctc& args) { return 2 * args.longest + 1; }

  void read_labels(const int64_t* target) {
    labels_[0] = args_.blank;
    for (int64_t s = 0; s < args_.longest && target[s] >= 0; ++s) {
      labels_[states_++] = target[s];
      labels_[states_++] = args_.blank;
    }
  }

  // a from the first frame and state (step 1), or from the last ones (-1).
  void walk(double* a, int64_t first_frame, int64_t step) const {
    const int64_t first = step > 0 ? 0 : states_ - 1;
    const auto state = [&](int64_t i) { return first + i * step; };
    for (int64_t i = 0; i < frames_; ++i) {
      const int64_t t = first_frame + i * step;
      double* now = a + t * states_;
      const double* before = now - step * states_;
      for (int64_t s = 0; s < states_; ++s) {
        double sum = i > 0 ? before[state(s)] : (s < 2 ? 0 : kNever);
        if (i > 0 && s >= 1) sum = log_add(sum, before[state(s - 1)]);
        if (i > 0 && skips(state(s), s, step)) sum = log_add(sum, before[state(s - 2)]);
        now[state(s)] = sum + log_p_[t * states_ + state(s)];
      }
    }
  }
  // Whether a path may pass over a blank between two classes that differ.
  bool skips(int64_t at, int64_t s, int64_t step) const {
    return s >= 2 && labels_[at] != args_.blank && labels_[at] != labels_[at - 2 * step];
  }

  const Ctc& args_;
  const float* scores_;
  int64_t frames_, states_ = 1;
  int64_t* labels_;
  double *log_p_, *forward_, *backward_;  // [frames, states]
  float *largest_, *sums_;                // [frames]
};

void compute(const Context& context, const Ctc& args, int64_t i) {
  Sample sample(args, i, scratch_of_thread(Sample::bytes(args)));
  float* gradient = args.gradients ? args.gradients + i * args.frames * args.classes : nullptr;
  sample.read_scores(context, gradient);
  const double loss = sample.loss();
  const bool counts = !(args.zero_infinity && loss == -kNever);
  if (args.losses) args.losses[i] = counts ? static_cast<float>(loss) : 0.0F;
  if (!gradient) return;
  if (counts) sample.subtract_paths(loss, gradient);
  float* unused = gradient + (counts ? sample.frames() * args.classes : 0);
  std::fill(unused, gradient + args.frames * args.classes, 0.0F);
}

}  // namespace

void ctc(const Context& context, const Ctc& args) {
  parallel_for(context.parallel, args.samples, 1, [&](int64_t lo, int64_t hi) {
    for (int64_t i = lo; i < hi; ++i)
      compute(context, args, i);
  });
}

}  // namespace tenon::onednn::kernels
