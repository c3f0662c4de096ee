// SPDX-License-Identifier: Apache-2.0
#include "cached_attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernel_table.h"
#include "scratch.h"

namespace tenon::onednn::kernels {
namespace {

constexpr int64_t kPitch = 16;  // floats of the widest register

// One sequence and one head of keys.
class Unit {
 public:
  Unit(const Context& context, const CachedAttentionArgs& args, int64_t index)
      : context_(context),
        args_(args),
        index_(index),
        sequence_(index / args.shared),
        head_(index % args.shared),
        room_(room_of(args)) {}

  // Among the keys.
  static int64_t first_row(const CachedAttentionArgs& args, int64_t sequence) {
    const bool is_first = args.room == 0 || args.total == args.rows;
    return is_first ? 0 : int64_t{args.last[sequence]} + 1 - args.rows;
  }
  static int64_t position(const CachedAttentionArgs& args, int64_t sequence, int64_t row) {
    return args.position_of != nullptr ? args.position_of[sequence * args.rows + row]
                                       : first_row(args, sequence) + row;
  }

  void run() const {
    fill(args_.past_k, args_.present_k);
    fill(args_.past_v, args_.present_v);
    const int64_t first = first_row(args_, sequence_);
    for (int64_t row = 0; row < args_.rows; ++row) {
      prepare(token(args_.k, args_.k_pitch, row) + head_ * args_.depth, args_.k_norm, row,
              room_.row);
      store(room_.row, args_.present_k, first + row);
      store(token(args_.v, args_.v_pitch, row) + head_ * args_.depth, args_.present_v, first + row);
    }
    const float* const keys = reals(args_.present_k, first + args_.rows, room_.keys);
    const float* const values = reals(args_.present_v, first + args_.rows, room_.values);
    for (int64_t row = 0; row < args_.rows; ++row)
      attend(row, first, keys, values);
  }

 private:
  // Of the thread.
  struct Room {
    float *q, *weights, *row, *angles, *keys, *values;
  };
  static Room room_of(const CachedAttentionArgs& args) {
    const int64_t heads = args.heads / args.shared, row = round_up(args.depth, kPitch);
    const int64_t q = round_up(heads * args.depth, kPitch);
    const int64_t weights = heads * round_up(args.stored, kPitch);
    const bool is_half = args.cache != ElementType::kF32;
    const int64_t cache = is_half ? args.stored * args.depth : 0;
    const int64_t angles = is_half ? round_up(2 * args.angles, kPitch) : 0;
    auto* at =
        reinterpret_cast<float*>(scratch_of_thread(4 * (q + weights + row + angles + 2 * cache)));
    Room room{};
    for (auto [part, size] : {std::pair{&room.q, q},
                              {&room.weights, weights},
                              {&room.row, row},
                              {&room.angles, angles},
                              {&room.keys, cache},
                              {&room.values, cache}})
      *part = at, at += size;
    return room;
  }

  const float* token(const float* all, int64_t pitch, int64_t row) const {
    return all + (sequence_ * args_.rows + row) * pitch;
  }

  void fill(const void* past, void* present) const {
    const int64_t bytes = args_.depth * element_bytes(args_.cache);
    const int64_t old = args_.room * bytes, all = args_.stored * bytes;
    auto* const to = static_cast<char*>(present) + index_ * all;
    if (old > 0) std::copy_n(static_cast<const char*>(past) + index_ * old, old, to);
    std::fill_n(to + old, all - old, '\0');
  }
  void store(const float* from, void* present, int64_t row) const {
    context_.table->store_f32(from, args_.depth, {present, args_.cache},
                              (index_ * args_.stored + row) * args_.depth, false);
  }
  const float* angles(const void* of, int64_t position, float* room) const {
    const int64_t at = position * args_.angles;
    if (args_.cache == ElementType::kF32) return static_cast<const float*>(of) + at;
    context_.table->load_f32({of, args_.cache}, at, args_.angles, room);
    return room;
  }
  // The first rows of what is present now.
  const float* reals(const void* present, int64_t rows, float* room) const {
    const int64_t at = index_ * args_.stored * args_.depth;
    if (args_.cache == ElementType::kF32) return static_cast<const float*>(present) + at;
    context_.table->load_f32({present, args_.cache}, at, rows * args_.depth, room);
    return room;
  }

  // One head of a token, with its norm and its position.
  void prepare(const float* from, const float* norm, int64_t row, float* to) const {
    std::copy_n(from, args_.depth, to);
    if (norm != nullptr) normalize(norm, to);
    if (args_.cosines != nullptr) rotate(position(args_, sequence_, row), to);
  }
  void normalize(const float* norm, float* x) const {
    double squares = 0;
    for (int64_t i = 0; i < args_.depth; ++i)
      squares += double{x[i]} * double{x[i]};
    const auto mean = static_cast<float>(squares / static_cast<double>(args_.depth));
    const float factor = 1 / std::sqrt(mean + args_.epsilon);
    for (int64_t i = 0; i < args_.depth; ++i)
      x[i] = x[i] * factor * norm[i];
  }
  void rotate(int64_t position, float* x) const {
    const float* const cosines = angles(args_.cosines, position, room_.angles);
    const float* const sines = angles(args_.sines, position, room_.angles + args_.angles);
    const int64_t step = args_.is_interleaved ? 2 : 1;
    const int64_t apart = args_.is_interleaved ? 1 : args_.angles;
    for (int64_t i = 0; i < args_.angles; ++i) {
      float& one = x[i * step];
      float& other = x[i * step + apart];
      const float real = one * cosines[i] - other * sines[i];
      other = one * sines[i] + other * cosines[i];
      one = real;
    }
  }

  void attend(int64_t row, int64_t first, const float* keys, const float* values) const {
    const int64_t heads = args_.heads / args_.shared, depth = args_.depth;
    const int64_t own = first + row;
    const int64_t end = args_.is_causal ? own + 1 : first + args_.rows;
    const int64_t begin = args_.window < 0 ? 0 : std::max<int64_t>(own + 1 - args_.window, 0);
    for (int64_t i = 0; i < heads; ++i) {
      const int64_t head = head_ * heads + i;
      float* const to = room_.q + i * depth;
      prepare(token(args_.q, args_.q_pitch, row) + head * depth, args_.q_norm, row, to);
      std::transform(to, to + depth, to, [this](float x) { return x * args_.scale; });
    }
    context_.table->cached_attention_row(
        {.q = room_.q,
         .k = keys + begin * depth,
         .v = values + begin * depth,
         .weights = room_.weights,
         .dst = args_.dst + token_of_result(row) + head_ * heads * depth,
         .heads = heads,
         .depth = depth,
         .keys = end - begin,
         .weights_pitch = round_up(end - begin, kPitch),
         .sinks = args_.sinks == nullptr ? nullptr : args_.sinks + head_ * heads,
         .softcap = args_.softcap});
  }
  int64_t token_of_result(int64_t row) const {
    return (sequence_ * args_.rows + row) * args_.heads * args_.depth;
  }

  const Context& context_;
  const CachedAttentionArgs& args_;
  int64_t index_, sequence_, head_;
  Room room_;
};

const char* why_not(const CachedAttentionArgs& args) {
  for (int64_t sequence = 0; sequence < args.batch; ++sequence) {
    const int64_t first = Unit::first_row(args, sequence);
    if (first < 0 || first + args.rows > args.stored)
      return "seqlens_k: expected the last key's place in the cache, got one outside of it";
    for (int64_t row = 0; args.cosines != nullptr && row < args.rows; ++row) {
      const int64_t position = Unit::position(args, sequence, row);
      if (position < 0 || position >= args.positions)
        return "position: expected a row of cos_cache, got one outside of it";
    }
  }
  return nullptr;
}

}  // namespace

const char* cached_attention(const Context& context, const CachedAttentionArgs& args) {
  if (const char* why = why_not(args)) return why;
  const int64_t bytes = 4 * args.stored * args.depth * static_cast<int64_t>(sizeof(float));
  parallel_for(context.parallel, args.batch * args.shared, grain_rows(bytes),
               [&](int64_t lo, int64_t hi) {
                 for (int64_t i = lo; i < hi; ++i)
                   Unit(context, args, i).run();
               });
  return nullptr;
}

}  // namespace tenon::onednn::kernels
