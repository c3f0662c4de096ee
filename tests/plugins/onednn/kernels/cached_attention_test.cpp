// SPDX-License-Identifier: Apache-2.0
// A few rows with a cache, against f64 loops: shared heads, rows of packed queries, keys and
// values, rotations, windows, caches that grow and caches with room.

#include "kernels/cached_attention.h"

#include "levels.h"

namespace tenon::onednn::kernels {
namespace {

struct Case {
  int64_t batch, rows, heads, shared, depth, room, stored;
  std::vector<int32_t> last = {};
  int64_t total = 0, angles = 0;
  bool is_interleaved = false, is_causal = true, has_norms = false, has_positions = false;
  int64_t window = -1;
  float softcap = 0;
  bool has_sinks = false;
};

constexpr int64_t kPositions = 400;

std::vector<float> numbers(int64_t n, uint32_t seed) {
  return uniform(static_cast<uint64_t>(std::max<int64_t>(n, 1)), -1, 1, seed);
}

class Problem {
 public:
  explicit Problem(const Case& c)
      : c_(c),
        row_((c.heads + 2 * c.shared) * c.depth),
        qkv_(numbers(c.batch * c.rows * row_, 1)),
        past_k_(numbers(c.batch * c.shared * c.room * c.depth, 2)),
        past_v_(numbers(c.batch * c.shared * c.room * c.depth, 3)),
        cosines_(numbers(kPositions * c.angles, 4)),
        sines_(numbers(kPositions * c.angles, 5)),
        q_norm_(numbers(c.depth, 6)),
        k_norm_(numbers(c.depth, 7)),
        sinks_(numbers(c.heads, 8)),
        present_k_(static_cast<size_t>(c.batch * c.shared * c.stored * c.depth), 9.0F),
        present_v_(present_k_),
        dst_(static_cast<size_t>(c.batch * c.rows * c.heads * c.depth), 9.0F) {
    for (int64_t i = 0; c.has_positions && i < c.batch * c.rows; ++i)
      positions_.push_back(7 * i % kPositions);
  }

  const char* run(const Context& context) {
    CachedAttentionArgs args{.batch = c_.batch, .rows = c_.rows, .heads = c_.heads};
    args.shared = c_.shared, args.depth = c_.depth, args.room = c_.room, args.stored = c_.stored;
    args.q_pitch = args.k_pitch = args.v_pitch = row_;
    args.q = qkv_.data();
    args.k = args.q + c_.heads * c_.depth;
    args.v = args.k + c_.shared * c_.depth;
    args.past_k = past_k_.data(), args.past_v = past_v_.data();
    args.present_k = present_k_.data(), args.present_v = present_v_.data();
    args.dst = dst_.data();
    args.last = c_.last.data(), args.total = c_.total;
    if (c_.angles > 0) args.cosines = cosines_.data(), args.sines = sines_.data();
    args.positions = kPositions, args.angles = c_.angles;
    args.is_interleaved = c_.is_interleaved, args.is_causal = c_.is_causal;
    if (c_.has_positions) args.position_of = positions_.data();
    if (c_.has_norms) args.q_norm = q_norm_.data(), args.k_norm = k_norm_.data();
    if (c_.has_sinks) args.sinks = sinks_.data();
    args.epsilon = 1e-5F, args.scale = 0.7F, args.softcap = c_.softcap, args.window = c_.window;
    return cached_attention(context, args);
  }

  const std::vector<float>& result() const { return dst_; }
  // The past of one head from this row on holds NaN.
  void spoil(int64_t row) {
    for (std::vector<float>* past : {&past_k_, &past_v_})
      std::fill(past->begin() + row * c_.depth, past->end(), NAN);
  }
  void expect() const {
    for (int64_t b = 0; b < c_.batch; ++b)
      for (int64_t g = 0; g < c_.shared; ++g)
        expect_group(b, g);
  }

 private:
  using Rows = std::vector<std::vector<double>>;

  std::vector<double> part(const std::vector<float>& from, int64_t at) const {
    return {from.begin() + at, from.begin() + at + c_.depth};
  }
  // `at`: of the head in the row.
  std::vector<double> token(int64_t b, int64_t row, int64_t at) const {
    return part(qkv_, (b * c_.rows + row) * row_ + at * c_.depth);
  }
  int64_t first(int64_t b) const {
    const bool is_first = c_.room == 0 || c_.total == c_.rows;
    return is_first ? 0 : c_.last[static_cast<size_t>(b)] + 1 - c_.rows;
  }
  std::vector<double> prepared(std::vector<double> x,
                               const std::vector<float>& norm,
                               int64_t b,
                               int64_t row) const {
    double squares = 0;
    for (double each : x)
      squares += each * each;
    for (size_t i = 0; c_.has_norms && i < x.size(); ++i)
      x[i] *= norm[i] / std::sqrt(squares / static_cast<double>(c_.depth) + double{1e-5F});
    const int64_t at =
        c_.has_positions ? positions_[static_cast<size_t>(b * c_.rows + row)] : first(b) + row;
    const std::vector<double> old = x;
    for (int64_t i = 0; i < c_.angles; ++i) {
      const auto one = static_cast<size_t>(c_.is_interleaved ? 2 * i : i);
      const auto other = static_cast<size_t>(c_.is_interleaved ? 2 * i + 1 : i + c_.angles);
      const auto angle = static_cast<size_t>(at * c_.angles + i);
      const double cosine = cosines_[angle], sine = sines_[angle];
      x[one] = old[one] * cosine - old[other] * sine;
      x[other] = old[one] * sine + old[other] * cosine;
    }
    return x;
  }
  Rows cache(int64_t b, int64_t g, const std::vector<float>& past, bool is_key) const {
    Rows all(static_cast<size_t>(c_.stored), std::vector<double>(static_cast<size_t>(c_.depth)));
    for (int64_t i = 0; i < c_.room; ++i)
      all[static_cast<size_t>(i)] = part(past, ((b * c_.shared + g) * c_.room + i) * c_.depth);
    for (int64_t row = 0; row < c_.rows; ++row) {
      std::vector<double> x = token(b, row, c_.heads + (is_key ? g : c_.shared + g));
      all[static_cast<size_t>(first(b) + row)] = is_key ? prepared(x, k_norm_, b, row) : x;
    }
    return all;
  }

  void expect_group(int64_t b, int64_t g) const {
    const Rows keys = cache(b, g, past_k_, true), values = cache(b, g, past_v_, false);
    for (int64_t i = 0; i < c_.stored; ++i)
      for (int64_t d = 0; d < c_.depth; ++d) {
        const auto at = static_cast<size_t>(((b * c_.shared + g) * c_.stored + i) * c_.depth + d);
        const auto row = static_cast<size_t>(i), column = static_cast<size_t>(d);
        ASSERT_NEAR(present_k_[at], keys[row][column], 1e-5) << "key " << i;
        ASSERT_EQ(present_v_[at], static_cast<float>(values[row][column])) << "value " << i;
      }
    const int64_t each = c_.heads / c_.shared;
    for (int64_t row = 0; row < c_.rows; ++row)
      for (int64_t head = g * each; head < (g + 1) * each; ++head)
        expect_row(b, row, head, keys, values);
  }

  void expect_row(
      int64_t b, int64_t row, int64_t head, const Rows& keys, const Rows& values) const {
    const std::vector<double> q = prepared(token(b, row, head), q_norm_, b, row);
    const int64_t own = first(b) + row, end = c_.is_causal ? own + 1 : first(b) + c_.rows;
    std::vector<double> y(static_cast<size_t>(c_.depth));
    double sum = c_.has_sinks ? std::exp(double{sinks_[static_cast<size_t>(head)]}) : 0;
    for (int64_t key = 0; key < end; ++key) {
      if (c_.window >= 0 && own - key >= c_.window) continue;
      double score = 0;
      for (size_t d = 0; d < y.size(); ++d)
        score += double{0.7F} * q[d] * keys[static_cast<size_t>(key)][d];
      if (c_.softcap != 0) score = double{c_.softcap} * std::tanh(score / double{c_.softcap});
      const double weight = std::exp(score);
      sum += weight;
      for (size_t d = 0; d < y.size(); ++d)
        y[d] += weight * values[static_cast<size_t>(key)][d];
    }
    for (size_t d = 0; d < y.size(); ++d) {
      const auto at = static_cast<size_t>(((b * c_.rows + row) * c_.heads + head) * c_.depth) + d;
      ASSERT_NEAR(dst_[at], y[d] / sum, 2e-5) << "row " << row << ", head " << head;
    }
  }

  Case c_;
  int64_t row_;  // floats of a token: queries, keys, values
  std::vector<float> qkv_, past_k_, past_v_, cosines_, sines_, q_norm_, k_norm_, sinks_;
  std::vector<float> present_k_, present_v_, dst_;
  std::vector<int64_t> positions_;
};

class CachedAttention : public EachLevel {};

TEST_P(CachedAttention, AgreesWithF64) {
  const Case cases[] = {
      {1, 1, 1, 1, 1, 0, 1, {0}, 1},
      {1, 1, 4, 2, 64, 37, 38, {37}, 38, 32},
      {2, 1, 6, 2, 20, 100, 101, {100, 100}, 101, 10, true},
      {2, 3, 3, 1, 33, 20, 23, {22, 22}, 23, 5},
      {3, 2, 4, 4, 16, 50, 50, {3, 49, 20}, 50, 8, false, true, true},
      {1, 3, 5, 1, 8, 6, 6, {2}, 3, 4, true, true, false, true},
      {2, 2, 2, 1, 48, 90, 92, {91, 91}, 92, 24, false, true, false, false, 17},
      {1, 1, 8, 2, 128, 300, 301, {300}, 301, 64, false, true, false, false, 40, 5.0F},
      {1, 2, 6, 2, 40, 75, 77, {76}, 77, 20, false, true, false, false, 30, 0, true},
      {2, 4, 3, 3, 24, 10, 14, {13, 13}, 14, 0, false, false},
      {1, 1, 2, 2, 16, 70, 90, {69}, 90},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::Message()
                 << c.batch << " x " << c.rows << " x " << c.depth << ", " << c.room);
    Problem problem(c);
    ASSERT_EQ(problem.run(context_), nullptr);
    problem.expect();
  }
}

TEST_P(CachedAttention, LooksAtNothingBehindItsOwnKey) {
  // The cache has room for more, which holds what is no number.
  Case c{1, 1, 2, 1, 16, 40, 40, {9}, 40};
  Problem clean(c), dirty(c);
  dirty.spoil(10);
  ASSERT_EQ(clean.run(context_), nullptr);
  ASSERT_EQ(dirty.run(context_), nullptr);
  EXPECT_EQ(clean.result(), dirty.result());
}

TEST_P(CachedAttention, RefusesPlacesOutsideOfTheCache) {
  for (int32_t last : {-1, 40, 1 << 30}) {
    Problem problem({1, 1, 2, 1, 16, 40, 40, {last}, 41});
    EXPECT_NE(problem.run(context_), nullptr) << last;
    EXPECT_EQ(problem.result()[0], 9.0F) << "nothing is written";
  }
  Problem far({1, 1, 2, 1, 16, 450, 451, {450}, 451, 8});
  EXPECT_NE(far.run(context_), nullptr) << "beyond the last position";
}

TENON_EACH_LEVEL(CachedAttention);

}  // namespace
}  // namespace tenon::onednn::kernels
