// SPDX-License-Identifier: Apache-2.0
#include "attention.h"

#include <algorithm>

#include "attention_panels.h"
#include "scratch.h"

namespace tenon::onednn::kernels {
namespace {

constexpr int64_t kRowsOfUnit = 64;             // what a thread takes at once
constexpr int64_t kMostPackedFloats = 1 << 17;  // of a pair's keys and values: half a megabyte

// Where a thread's parts lie, in floats from its begin.
struct Layout {
  int64_t keys, values, queries, scores, size;
  int64_t pitch;
};

Layout lay_out(const AttentionArgs& args) {
  const int64_t padded_keys = round_up(args.keys, kAttentionPanel);
  const int64_t padded_width = round_up(args.width, kAttentionPanel);
  Layout made{};
  auto take = [&](int64_t floats) {
    const int64_t at = made.size;
    made.size += round_up(floats, 16);
    return at;
  };
  made.pitch = padded_keys;
  made.keys = take(padded_keys * args.depth);
  made.values = take(padded_width * args.keys);
  made.queries = take(kAttentionRows * args.depth);
  made.scores = take(kAttentionRows * made.pitch);
  return made;
}

// One thread's work: units of rows, one pair after the other.
class Worker {
 public:
  Worker(const Context& context, const AttentionArgs& args)
      : table_(context.table),
        args_(args),
        layout_(lay_out(args)),
        memory_(reinterpret_cast<float*>(
            scratch_of_thread(layout_.size * static_cast<int64_t>(sizeof(float))))) {}

  void run(int64_t pair, int64_t first, int64_t last) {
    const int64_t outer = pair / args_.inner;
    const int64_t inner = pair % args_.inner;
    if (pair != packed_) pack(outer, inner);
    packed_ = pair;
    for (int64_t row = first; row < last; row += kAttentionRows) {
      table_->attention_rows({args_, memory_ + layout_.keys, memory_ + layout_.values,
                              memory_ + layout_.queries, memory_ + layout_.scores, layout_.pitch,
                              outer, inner, row, std::min(kAttentionRows, last - row)});
    }
  }

 private:
  void pack(int64_t outer, int64_t inner) {
    const AttentionStrides& k = args_.k_strides;
    const AttentionStrides& v = args_.v_strides;
    AttentionPanels{table_, args_.keys, args_.depth, k.row, k.column}.pack(
        args_.k + outer * k.outer + inner * k.inner, memory_ + layout_.keys);
    AttentionPanels{table_, args_.width, args_.keys, v.column, v.row}.pack(
        args_.v + outer * v.outer + inner * v.inner, memory_ + layout_.values);
  }

  const KernelTable* table_;
  const AttentionArgs& args_;
  Layout layout_;
  float* memory_;
  int64_t packed_ = -1;
};

}  // namespace

bool takes_attention(const AttentionSizes& args) {
  return args.keys > 0 && args.depth > 0 && args.width > 0 &&
         round_up(args.keys, kAttentionPanel) * args.depth +
                 args.keys * round_up(args.width, kAttentionPanel) <=
             kMostPackedFloats;
}

void attention(const Context& context, const AttentionArgs& args) {
  const int64_t units = (args.rows + kRowsOfUnit - 1) / kRowsOfUnit;
  parallel_for(context.parallel, args.outer * args.inner * units, 1, [&](int64_t lo, int64_t hi) {
    Worker worker(context, args);
    for (int64_t unit = lo; unit < hi; ++unit) {
      const int64_t first = unit % units * kRowsOfUnit;
      worker.run(unit / units, first, std::min(args.rows, first + kRowsOfUnit));
    }
  });
}

}  // namespace tenon::onednn::kernels
