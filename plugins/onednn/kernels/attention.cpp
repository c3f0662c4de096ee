// SPDX-License-Identifier: Apache-2.0
#include "attention.h"

#include <algorithm>
#include <cstring>

#include "kernel_table.h"
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

// dst: [panels][length][kAttentionPanel] of a matrix of that length and so many lanes, whose
// elements lie so far apart; zeros in the lanes that the last panel has too many.
struct Packing {
  const KernelTable* table;
  int64_t lanes, length;
  int64_t lane_stride, step_stride;

  void run(const float* src, float* dst) const {
    for (int64_t lane = 0; lane < lanes; lane += kAttentionPanel) {
      const int64_t width = std::min(kAttentionPanel, lanes - lane);
      if (width < kAttentionPanel) std::fill_n(dst, length * kAttentionPanel, 0.0F);
      pack_panel(src + lane * lane_stride, width, dst);
      dst += length * kAttentionPanel;
    }
  }

  void pack_panel(const float* src, int64_t width, float* dst) const {
    if (step_stride == 1 && lane_stride != 1)
      return table->transpose_tile({src, dst, lane_stride, kAttentionPanel, width, length, 4});
    for (int64_t i = 0; i < length; ++i) {
      const float* const row = src + i * step_stride;
      float* const to = dst + i * kAttentionPanel;
      if (lane_stride == 1) {
        std::memcpy(to, row, static_cast<size_t>(width) * sizeof(float));
      } else {
        table->load_strided({row, ElementType::kF32}, 0, lane_stride, width, to);
      }
    }
  }
};

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
    Packing{table_, args_.keys, args_.depth, k.row, k.column}.run(
        args_.k + outer * k.outer + inner * k.inner, memory_ + layout_.keys);
    Packing{table_, args_.width, args_.keys, v.column, v.row}.run(
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
