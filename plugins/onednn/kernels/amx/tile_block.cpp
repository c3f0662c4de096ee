// SPDX-License-Identifier: Apache-2.0
// Products on tiles; contract in ../tile_product.h. How their blocks follow each other is in
// blocks.h.

#include "blocks.h"
#include "left_rows.h"

namespace tenon::onednn::kernels::amx {
namespace {

constexpr int kStep = 2 * 16 * static_cast<int>(kTileDepth);  // bytes of a panel in one step of k

enum class Kind : uint8_t { kUnsigned, kSigned, kBf16 };

#define TENON_TILE_PRODUCT(sums, left, right) \
  do {                                        \
    if constexpr (kind == Kind::kUnsigned)    \
      _tile_dpbusd(sums, left, right);        \
    else if constexpr (kind == Kind::kSigned) \
      _tile_dpbssd(sums, left, right);        \
    else                                      \
      _tile_dpbf16ps(sums, left, right);      \
  } while (false)

struct Span {  // bytes of each row
  int64_t first;
  int64_t bytes;
  bool is_last;
};

// From: the elements of a residual.
template <Kind kind, class To, Shape shape, class From>
class Unit {
 public:
  Unit(const TileProductArgs& args, const TileUnit& unit)
      : args_(args),
        unit_(unit),
        depth_(unit.depth),
        left_rows_(args, args.k * kBytes, unit.depth, kHasIntegers),
        blocks_(args.epilogue, args.n, gaps_of(args, unit), needs_bound(args, unit)) {}

  void run() {
    left_rows_.begin(unit_);
    Left left = take(0);
    for (int64_t i = 0; i < unit_.n_rows; i += kTileRows) {
      const Left next = i + kTileRows < unit_.n_rows ? take(i + kTileRows) : left;
      multiply_row(left, i, rows_from(i));
      left = next;
    }
    blocks_.flush(kAsIs);
  }

 private:
  static constexpr bool kHasIntegers = kind != Kind::kBf16;
  static constexpr int64_t kBytes = kHasIntegers ? 1 : 2;  // of an element of the left operand
  static constexpr auto kAsIs = [](const Held&) {};

  int rows_from(int64_t i) const { return static_cast<int>(least_of(kTileRows, unit_.n_rows - i)); }
  bool has_taps() const { return args_.row == TileRow::kTaps; }
  Left take(int64_t i) { return left_rows_.take(has_taps() ? i : unit_.row + i, rows_from(i)); }
  static RowGaps gaps_of(const TileProductArgs& args, const TileUnit& unit) {
    if (args.row != TileRow::kTaps) return {.first = unit.row};
    return {.first = unit.row, .width = args.taps.line(), .gap = args.taps.gap()};
  }

  static bool needs_bound(const TileProductArgs& args, const TileUnit& unit) {
    if (!kHasIntegers || shape == Shape::kGeneral) return true;
    // A sum and the shift of its column are no larger than k products of 8 bits each.
    const float most = 2.0F * 255.0F * 128.0F * static_cast<float>(args.k);
    Epilogue epilogue = args.epilogue;
    epilogue.columns = args.n;
    return may_overflow(epilogue, most, unit.panel * kTilePanel, unit.n_panels * kTilePanel);
  }

  // One block of rows and all panels of the unit.
  void multiply_row(const Left& left, int64_t row, int rows) {
    blocks_.configure(rows, kAsIs);
    asm volatile("" ::: "memory");  // what was copied is there
    const bool has_pieces = depth_ > kTilePiece && !has_taps();
    const int64_t piece = has_pieces ? kTilePiece : depth_;
    for (int64_t first = 0; first < depth_; first += piece) {
      const Span span{first, least_of(piece, depth_ - first), first + piece >= depth_};
      for (int64_t i = 0; i < unit_.n_panels; ++i) {
        int32_t* const sums = sums_[has_pieces ? i + turn_ * kTileUnitPanels : turn_];
        const int64_t panel = unit_.panel + i;
        if (rows > 16)
          multiply<true>(left, span, panel, sums);
        else
          multiply<false>(left, span, panel, sums);
        blocks_.hold({sums, row, panel * kTilePanel, rows, span.is_last}, kAsIs);
        if (!has_pieces) turn_ ^= 1;
      }
    }
    if (has_pieces) turn_ ^= 1;
  }

  template <bool has_lower>
  TENON_INLINE void multiply(const Left& left, const Span& span, int64_t panel, int32_t* sums) {
    Half upper = left.upper;
    Half lower = left.lower;
    upper.at += span.first / kTileDepth * upper.step;
    lower.at += span.first / kTileDepth * lower.step;
    const char* right =
        static_cast<const char*>(args_.b) + panel * kTilePanel * depth_ + span.first * kTilePanel;
    const int steps = static_cast<int>(span.bytes / kTileDepth);
    const int share = (blocks_.waiting() + 2 * steps - 1) / (2 * steps) * 2;
    const Begin begin{
        blocks_.held(), span.first > 0 ? sums : nullptr,
        kHasIntegers && args_.shifts != nullptr ? args_.shifts + panel * kTilePanel : nullptr};
    const int64_t* jump = left_rows_.jumps();
    const int run = jump == nullptr ? steps : static_cast<int>(args_.taps.pixel_bytes / kTileDepth);
    int until_jump = run;
    for (int step = 0; step < steps; ++step) {
      if (step == 0)
        multiply_step<has_lower, true>(upper, lower, right, begin);
      else
        multiply_step<has_lower, false>(upper, lower, right, begin);
      upper.at += upper.step;
      lower.at += lower.step;
      right += kStep;
      if (--until_jump == 0 && step + 1 < steps) {
        upper.at += *++jump;
        lower.at += *jump;
        until_jump = run;
      }
      blocks_.take(share);
    }
  }

  template <bool has_lower, bool is_first>
  TENON_INLINE void multiply_step(const Half& upper,
                                  const Half& lower,
                                  const char* right,
                                  const Begin& begin) {
    // The right operand is read once for each block of rows: it leaves L1 to the left one.
    _tile_stream_loadd(6, right, kTileDepth);
    _tile_loadd(4, upper.at, upper.stride);
    if constexpr (is_first) TENON_BEGIN_SUMS(0, begin);
    TENON_TILE_PRODUCT(0, 4, 6);
    _tile_stream_loadd(7, right + kStep / 2, kTileDepth);
    if constexpr (is_first) TENON_BEGIN_SUMS(1, begin);
    TENON_TILE_PRODUCT(1, 4, 7);
    if constexpr (has_lower) {
      _tile_loadd(5, lower.at, lower.stride);
      if constexpr (is_first) TENON_BEGIN_SUMS(2, begin);
      TENON_TILE_PRODUCT(2, 5, 6);
      if constexpr (is_first) TENON_BEGIN_SUMS(3, begin);
      TENON_TILE_PRODUCT(3, 5, 7);
    }
  }

  const TileProductArgs& args_;
  const TileUnit& unit_;
  int64_t depth_;  // bytes of a row of the left operand, in whole steps
  LeftRows left_rows_;
  Blocks<kHasIntegers, To, shape, From> blocks_;
  int turn_ = 0;
  alignas(64) int32_t sums_[2 * kTileUnitPanels][kBlockSums];
};

template <Kind kind>
void run_unit(const TileProductArgs& args, const TileUnit& unit) {
  with_epilogue(args.epilogue, [&]<class To, Shape shape, class From>() {
    Unit<kind, To, shape, From>(args, unit).run();
  });
}

}  // namespace

void tile_unit(const TileProductArgs& args, const TileUnit& unit) {
  switch (args.type) {
    case ElementType::kU8:
      return run_unit<Kind::kUnsigned>(args, unit);
    case ElementType::kS8:
      return run_unit<Kind::kSigned>(args, unit);
    default:
      return run_unit<Kind::kBf16>(args, unit);
  }
}

}  // namespace tenon::onednn::kernels::amx
