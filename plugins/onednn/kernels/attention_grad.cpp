// SPDX-License-Identifier: Apache-2.0
#include "attention_grad.h"

#include "attention_panels.h"
#include "prefetch.h"
#include "scratch.h"

namespace tenon::onednn::kernels {
namespace {

constexpr int64_t kMostFloats = 1 << 18;  // of a pair: a megabyte

// Where a thread's parts lie, in floats from its begin.
struct Layout {
  int64_t keys, values, key_rows, queries, dy, scores, weights_grad, dk, dv, size;
  int64_t pitch, depth, width;  // in whole panels
};

Layout lay_out(const AttentionGradSizes& args) {
  Layout made{};
  auto take = [&](int64_t floats) {
    const int64_t at = made.size;
    made.size += round_up(floats, 16);
    return at;
  };
  made.pitch = round_up(args.keys, kAttentionPanel);
  made.depth = round_up(args.depth, kAttentionPanel);
  made.width = round_up(args.width, kAttentionPanel);
  made.keys = take(made.pitch * args.depth);
  made.values = take(made.pitch * args.width);
  made.key_rows = take(made.depth * args.keys);
  made.queries = take(kAttentionGradRows * made.depth);
  made.dy = take(kAttentionGradRows * made.width);
  made.scores = take(kAttentionGradRows * made.pitch);
  made.weights_grad = take(kAttentionGradRows * made.pitch);
  made.dk = take(made.pitch * made.depth);
  made.dv = take(made.pitch * made.width);
  return made;
}

// One thread's pairs.
class Worker {
 public:
  Worker(const Context& context, const AttentionGradArgs& args)
      : table_(context.table),
        args_(args),
        layout_(lay_out(args)),
        memory_(reinterpret_cast<float*>(
            scratch_of_thread(layout_.size * static_cast<int64_t>(sizeof(float))))) {}

  // has_next: it comes to the next pair behind this one.
  void run(int64_t pair, bool has_next) {
    const int64_t outer = pair / args_.inner;
    const int64_t inner = pair % args_.inner;
    pack(outer, inner);
    if (has_next) {
      const int64_t next_outer = (pair + 1) / args_.inner, next_inner = (pair + 1) % args_.inner;
      prefetch_pair(args_, next_outer, next_inner);
      prefetch_rows(args_.dy, args_.dy_strides, next_outer, next_inner, args_.rows, args_.width);
    }
    std::fill_n(memory_ + layout_.dk, layout_.pitch * layout_.depth, 0.0F);
    std::fill_n(memory_ + layout_.dv, layout_.pitch * layout_.width, 0.0F);
    for (int64_t row = 0; row < args_.rows; row += kAttentionGradRows)
      table_->attention_grad_rows(
          {args_, memory_ + layout_.keys, memory_ + layout_.values, memory_ + layout_.key_rows,
           memory_ + layout_.queries, memory_ + layout_.dy, memory_ + layout_.scores,
           memory_ + layout_.weights_grad, memory_ + layout_.dk, memory_ + layout_.dv,
           layout_.pitch, layout_.depth, layout_.width, outer, inner, row,
           std::min(kAttentionGradRows, args_.rows - row)});
    store(args_.dk, layout_.dk, args_.depth, outer, inner);
    store(args_.dv, layout_.dv, args_.width, outer, inner);
  }

 private:
  void pack(int64_t outer, int64_t inner) {
    const AttentionStrides& k = args_.k_strides;
    const AttentionStrides& v = args_.v_strides;
    const float* const keys = args_.k + outer * k.outer + inner * k.inner;
    const float* const values = args_.v + outer * v.outer + inner * v.inner;
    AttentionPanels{table_, args_.keys, args_.depth, k.row, k.column}.pack(keys,
                                                                           memory_ + layout_.keys);
    AttentionPanels{table_, args_.keys, args_.width, v.row, v.column}.pack(
        values, memory_ + layout_.values);
    AttentionPanels{table_, args_.depth, args_.keys, k.column, k.row}.pack(
        keys, memory_ + layout_.key_rows);
  }

  void store(const AttentionGradTarget& to,
             int64_t sums,
             int64_t columns,
             int64_t outer,
             int64_t inner) const {
    if (to.data == nullptr) return;
    const AttentionStrides& s = to.strides;
    for (int64_t column = 0; column < columns; column += kAttentionPanel)
      for (int64_t key = 0; key < args_.keys; ++key)
        table_->store_f32(memory_ + sums + column * layout_.pitch + key * kAttentionPanel,
                          std::min(kAttentionPanel, columns - column), {to.data, to.type, {}},
                          outer * s.outer + inner * s.inner + key * s.row + column, false);
  }

  const KernelTable* table_;
  const AttentionGradArgs& args_;
  Layout layout_;
  float* memory_;
};

}  // namespace

bool takes_attention_grad(const AttentionGradSizes& args) {
  return args.rows > 0 && args.keys > 0 && args.depth > 0 && args.width > 0 &&
         lay_out(args).size <= kMostFloats;
}

void attention_grad(const Context& context, const AttentionGradArgs& args) {
  parallel_for(context.parallel, args.outer * args.inner, 1, [&](int64_t lo, int64_t hi) {
    Worker worker(context, args);
    for (int64_t pair = lo; pair < hi; ++pair)
      worker.run(pair, pair + 1 < hi);
  });
}

}  // namespace tenon::onednn::kernels
