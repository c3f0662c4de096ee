// SPDX-License-Identifier: Apache-2.0
// Products of f32 numbers on tiles; contract in ../bf16x6_product.h. The parts of both operands of
// a unit stay in L2 for a piece of k. Blocks of rows and of columns are split in turn, each beside
// the products of the block before it with all those of the other operand that are there, so that
// there is about as much to split at any time. A step of k of a block is 24 products of tiles: six
// pairs of parts, the smallest ones first, in an order in which a pair follows from the one before
// by loading one side.

#include "blocks.h"
#include "split_parts.h"

namespace tenon::onednn::kernels::amx {
namespace {

constexpr int64_t kPart = 16 * kTileDepth;
constexpr int kTakes = 3;  // of what runs beside the products, in each step

#define TENON_LOAD_LEFT(part)                                                                     \
  do {                                                                                            \
    _tile_loadd(4, left + (part) * kPart, kTileDepth);                                            \
    if constexpr (has_lower) _tile_loadd(5, left + kSplitTileBytes + (part) * kPart, kTileDepth); \
  } while (false)
#define TENON_LOAD_RIGHT(part)                                            \
  do {                                                                    \
    _tile_loadd(6, right + (part) * kPart, kTileDepth);                   \
    _tile_loadd(7, right + kSplitTileBytes + (part) * kPart, kTileDepth); \
  } while (false)
#define TENON_MULTIPLY_PARTS() \
  do {                         \
    _tile_dpbf16ps(0, 4, 6);   \
    _tile_dpbf16ps(1, 4, 7);   \
    if constexpr (has_lower) { \
      _tile_dpbf16ps(2, 5, 6); \
      _tile_dpbf16ps(3, 5, 7); \
    }                          \
  } while (false)

// The sums of a row and one panel, in f32 on vectors.
class VectorSums {
 public:
  VectorSums(const SplitProductArgs& args, int64_t panel)
      : b_(args.b), from_(args.b.panel(panel)), columns_(mask_of(args.n - panel * kTilePanel)) {}
  // The next n elements of the row, `step` apart; null: zeros.
  void add(const float* a, int64_t n, int64_t step = 1) {
    for (int64_t i = 0; a != nullptr && i < n; ++i) {
      const __m512 x = _mm512_set1_ps(a[i * step]);
      low_ = _mm512_fmadd_ps(x, columns(k_ + i, 0), low_);
      high_ = _mm512_fmadd_ps(x, columns(k_ + i, 1), high_);
    }
    k_ += n;
  }
  void store(int32_t* sums) const {
    _mm512_storeu_ps(sums, low_);
    _mm512_storeu_ps(sums + 16, high_);
  }

 private:
  static uint32_t mask_of(int64_t columns) {
    return columns < kTilePanel ? (uint32_t{1} << columns) - 1 : ~uint32_t{0};
  }
  __m512 columns(int64_t k, int half) const {
    const auto mask = static_cast<__mmask16>(columns_ >> 16 * half);
    if (!b_.is_transposed) return _mm512_maskz_loadu_ps(mask, from_ + k * b_.stride + 16 * half);
    float each[16] = {};
    for (int i = 0; i < 16; ++i)
      if ((mask >> i & 1) != 0) each[i] = from_[(16 * half + i) * b_.stride + k];
    return _mm512_loadu_ps(each);
  }

  const SplitRight& b_;
  const float* from_;
  uint32_t columns_;
  int64_t k_ = 0;
  __m512 low_ = _mm512_setzero_ps(), high_ = _mm512_setzero_ps();
};

void multiply_on_vectors(const SplitProductArgs& args, int64_t row, int64_t panel, int32_t* to) {
  VectorSums sums(args, panel);
  if (args.has_windows) {
    const WindowRow seen(args, row);
    const int64_t channels = args.windows.channels;
    for (int64_t tap = 0; tap < args.k / channels; ++tap)
      sums.add(seen.pixel(tap), channels);
  } else if (args.a_is_transposed) {
    sums.add(args.a + row, args.k, args.a_stride);
  } else {
    sums.add(args.a + row * args.a_stride, args.k);
  }
  sums.store(to);
}

template <class To, Shape shape, class From>
class Unit {
 public:
  Unit(const SplitProductArgs& args, const SplitUnit& unit)
      : args_(args),
        unit_(unit),
        n_steps_(split_steps(args.k)),
        piece_steps_(split_piece_steps(args.k)),
        n_rows_(split_blocks(unit.n_rows)),
        sums_(reinterpret_cast<int32_t*>(parts_of(Side::kPanels, unit.n_panels))),
        blocks_(args.epilogue, args.n, {.first = unit.row}, true) {}

  void run() {
    blocks_.configure(kBlockRows, mend());
    for (int64_t first = 0; first < n_steps_; first += piece_steps_) {
      begin(first, {Side::kRows, 0});
      finish();
      for (Block block{Side::kPanels, 0}, last{Side::kRows, 0}; exists(block);
           block = after(block)) {
        begin(first, block);
        multiply_all(first, last);
        finish();
        last = block;
        if (!exists(after(block))) multiply_all(first, last);
      }
    }
    blocks_.flush(mend());
  }

 private:
  enum class Side : uint8_t { kRows, kPanels };
  struct Block {
    Side side;
    int64_t at;
  };

  int64_t count(Side side) const { return side == Side::kRows ? n_rows_ : unit_.n_panels; }
  bool exists(const Block& block) const { return block.at < count(block.side); }
  // Rows and panels in turn, then what one side has more of.
  Block after(const Block& block) const {
    const Block other = block.side == Side::kRows ? Block{Side::kPanels, block.at}
                                                  : Block{Side::kRows, block.at + 1};
    return exists(other) ? other : Block{block.side, block.at + 1};
  }
  // How many blocks of the other side were split before this one.
  int64_t partners(const Block& block) const {
    const Side other = block.side == Side::kRows ? Side::kPanels : Side::kRows;
    return least_of(block.at + (block.side == Side::kPanels ? 1 : 0), count(other));
  }

  // Sums of rows or columns whose numbers have no parts; with one of these the whole panel.
  auto mend() const {
    return [this](const Held& held) {
      if (unsplit_in(held) != 0) mend_rows(held);
    };
  }
  uint32_t unsplit_in(const Held& held) const {
    const bool is_panel = unsplit_panels_[held.column / kTilePanel - unit_.panel];
    return is_panel ? ~uint32_t{0} : unsplit_[held.row / kTileRows];
  }
  [[gnu::noinline]] void mend_rows(const Held& held) const {
    const uint32_t unsplit = unsplit_in(held);
    for (int i = 0; i < held.rows; ++i)
      if ((unsplit >> i & 1) != 0)
        multiply_on_vectors(args_, unit_.row + held.row + i, held.column / kTilePanel,
                            held.sums + i * kColumns);
  }

  int rows_of(int64_t block) const {
    return static_cast<int>(least_of(kTileRows, unit_.n_rows - block * kTileRows));
  }
  int steps_from(int64_t step) const {
    return static_cast<int>(least_of(piece_steps_, n_steps_ - step));
  }
  char* parts_of(Side side, int64_t i) const {
    return unit_.memory + (side == Side::kRows ? i : n_rows_ + i) * split_piece_bytes(args_.k);
  }

  // Begins to split a block, for the piece of k that begins with this step.
  void begin(int64_t first, const Block& block) {
    const int steps = steps_from(first);
    const int64_t last = args_.k - (first + steps - 1) * kSplitDepth;
    SplitBlock made = block.side == Side::kRows ? rows(first, block.at) : panel(first, block.at);
    made.n_steps = steps;
    made.last = static_cast<int>(least_of(kSplitDepth, last));
    splitter_.begin(made, parts_of(block.side, block.at));
    split_ = block;
  }
  SplitBlock rows(int64_t first, int64_t at) const {
    const int64_t row = unit_.row + at * kTileRows;
    if (args_.has_windows)
      return {.args = &args_, .row = row, .first = first, .count = rows_of(at)};
    const int64_t k = first * kSplitDepth, stride = args_.a_stride;
    const bool is_transposed = args_.a_is_transposed;
    return {.from = args_.a + (is_transposed ? k * stride + row : row * stride + k),
            .ahead = at + 1 == n_rows_ ? 0 : kTileRows * stride,
            .stride = stride,
            .is_transposed = is_transposed,
            .count = rows_of(at)};
  }
  SplitBlock panel(int64_t first, int64_t at) const {
    const SplitRight& b = args_.b;
    const float* const numbers = b.panel(unit_.panel + at);
    const bool is_last = at + 1 == unit_.n_panels;
    const int64_t columns = args_.n - (unit_.panel + at) * kTilePanel;
    return {.from = numbers + first * kSplitDepth * (b.is_transposed ? 1 : b.stride),
            .ahead = is_last ? 0 : b.panel(unit_.panel + at + 1) - numbers,
            .stride = b.stride,
            .is_right = true,
            .is_transposed = b.is_transposed,
            .has_parts = b.has_parts,
            .count = static_cast<int>(least_of(kTilePanel, columns))};
  }
  void finish() {
    splitter_.take(splitter_.n_takes());
    if (splitter_.unsplit() != 0) {
      if (split_.side == Side::kRows)
        unsplit_[split_.at] |= splitter_.unsplit();
      else
        unsplit_panels_[split_.at] = true;
    }
    splitter_.begin({}, nullptr);
  }

  // A block times all those of the other side that were split before it.
  void multiply_all(int64_t first, const Block& block) {
    const int64_t n = partners(block);
    const int64_t takes = n * steps_from(first) * kTakes;
    if (n > 0) share_ = static_cast<int>((splitter_.n_takes() + takes - 1) / takes);
    for (int64_t i = 0; i < n; ++i)
      if (block.side == Side::kRows)
        multiply_block(first, block.at, i);
      else
        multiply_block(first, i, block.at);
  }

  void multiply_block(int64_t first, int64_t block, int64_t panel) {
    const char* const left = parts_of(Side::kRows, block);
    const char* const right = parts_of(Side::kPanels, panel);
    const int rows = rows_of(block);
    // Tiles are whole; what they hold of rows that are not there goes nowhere. Without lower rows
    // the products would not store the lower sums of the block before.
    if (rows <= kBlockRows / 2 && blocks_.held_rows() > kBlockRows / 2) blocks_.flush(mend());
    asm volatile("" ::: "memory");  // what was split is there
    const bool is_whole = piece_steps_ == n_steps_;
    const int64_t at = is_whole ? (turn_ ^= 1) : block * unit_.n_panels + panel;
    int32_t* const sums = sums_ + at * kBlockSums;
    const Begin begin{blocks_.held(), first > 0 ? sums : nullptr, nullptr};
    if (rows > kBlockRows / 2)
      multiply<true>(left, right, steps_from(first), begin);
    else
      multiply<false>(left, right, steps_from(first), begin);
    blocks_.hold({sums, block * kTileRows, (unit_.panel + panel) * kTilePanel, rows,
                  first + piece_steps_ >= n_steps_},
                 mend());
  }

  template <bool has_lower>
  void multiply(const char* left, const char* right, int steps, const Begin& begin) {
    const int takes = 2 * kTakes * steps;
    const int share = (blocks_.waiting() + takes - 1) / takes * 2;
    multiply_step<has_lower, true>(left, right, begin, share);
    for (int step = 1; step < steps; ++step) {
      left += kSplitBlockBytes;
      right += kSplitBlockBytes;
      multiply_step<has_lower, false>(left, right, begin, share);
    }
  }

  template <bool has_lower, bool is_first>
  TENON_INLINE void multiply_step(const char* left,
                                  const char* right,
                                  const Begin& begin,
                                  int share) {
    TENON_LOAD_RIGHT(2);
    TENON_LOAD_LEFT(0);
    if constexpr (is_first) {
      TENON_BEGIN_SUMS(0, begin);
      TENON_BEGIN_SUMS(1, begin);
      if constexpr (has_lower) {
        TENON_BEGIN_SUMS(2, begin);
        TENON_BEGIN_SUMS(3, begin);
      }
    }
    TENON_MULTIPLY_PARTS();
    TENON_LOAD_RIGHT(1);
    TENON_MULTIPLY_PARTS();
    take(share);
    TENON_LOAD_LEFT(1);
    TENON_MULTIPLY_PARTS();
    TENON_LOAD_RIGHT(0);
    TENON_MULTIPLY_PARTS();
    take(share);
    TENON_LOAD_LEFT(2);
    TENON_MULTIPLY_PARTS();
    TENON_LOAD_LEFT(0);
    TENON_MULTIPLY_PARTS();
    take(share);
  }
  TENON_INLINE void take(int share) {
    blocks_.take(share);
    splitter_.take(share_);
  }

  const SplitProductArgs& args_;
  const SplitUnit& unit_;
  int64_t n_steps_;
  int64_t piece_steps_;
  int64_t n_rows_;  // blocks
  int32_t* sums_;
  Blocks<false, To, shape, From> blocks_;
  Splitter splitter_;
  int share_ = 0;     // of what is split, at a time
  Block split_ = {};  // what is split
  int64_t turn_ = 0;
  uint32_t unsplit_[kMostSplitRows / kTileRows] = {};  // by block of rows
  bool unsplit_panels_[kMostSplitPanels] = {};
};

}  // namespace

bool have_parts(const float* numbers, int64_t n) {
  constexpr uint32_t kLargest = 0x7f7f7fff;  // what is rounded to a finite bf16, without its sign
  uint32_t most = 0;                         // without an early end, so that it runs on vectors
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t magnitude = __builtin_bit_cast(uint32_t, numbers[i]) & 0x7fffffff;
    most = magnitude > most ? magnitude : most;
  }
  return most <= kLargest;
}

void split_unit(const SplitProductArgs& args, const SplitUnit& unit) {
  auto run = [&]<class To, Shape shape, class From>() { Unit<To, shape, From>(args, unit).run(); };
  if (args.epilogue.dst.type == ElementType::kF32)
    return with_epilogue_as<float>(args.epilogue, run);
  with_general_epilogue(run);
}

}  // namespace tenon::onednn::kernels::amx
