// SPDX-License-Identifier: Apache-2.0
// Products on tiles; contract in ../tile_product.h. A block is 32 rows times one panel of 32
// columns, whose sums stay in four tiles over all of k. Three blocks are under way at a time, as
// tiles and vectors are different units of the CPU: while one is multiplied, the sums of the one
// before it leave their tiles (amid the first step of k, where that is free; behind the last one
// the CPU would wait for them), and those of the one before that are scaled, rounded and stored.

#include <type_traits>

#include "ending.h"
#include "left_rows.h"
#include "tiles.h"

namespace tenon::onednn::kernels::amx {
namespace {

constexpr int kStep = 2 * 16 * static_cast<int>(kTileDepth);  // bytes of a panel in one step of k
constexpr int64_t kSumsStride = kColumns * sizeof(int32_t);
constexpr int kBlockRows = static_cast<int>(kTileRows);

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

// Where a tile's sums are among those of its block.
constexpr int sums_at(int tile) {
  return tile / 2 * 16 * kColumns + tile % 2 * 16;
}
#define TENON_STORE_SUMS(tile, sums) _tile_stored(tile, (sums) + sums_at(tile), kSumsStride)
#define TENON_BEGIN_SUMS(tile, begin)                                  \
  do {                                                                 \
    if ((begin).held != nullptr) TENON_STORE_SUMS(tile, (begin).held); \
    if ((begin).sums != nullptr)                                       \
      _tile_loadd(tile, (begin).sums + sums_at(tile), kSumsStride);    \
    else if ((begin).shifts != nullptr)                                \
      _tile_loadd(tile, (begin).shifts + (tile) % 2 * 16, 0);          \
    else                                                               \
      _tile_zero(tile);                                                \
  } while (false)

constexpr int64_t least_of(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// The block whose sums are in the tiles.
struct Held {
  int32_t* sums = nullptr;  // where they go
  int64_t row = 0;          // of the unit
  int64_t column = 0;
  int rows = 0;          // 0: the tiles are empty
  bool is_last = false;  // of the pieces of k
};
struct Span {  // bytes of each row
  int64_t first;
  int64_t bytes;
  bool is_last;
};

// Rows that wait for any ending.
class GeneralRest {
 public:
  GeneralRest(const GeneralEnding& ending, const RowGaps& gaps) : ending_(ending), gaps_(gaps) {}
  TENON_INLINE void wait(const int32_t* sums, int64_t row, int64_t column, int rows) {
    sums_ = sums;
    row_ = row;
    column_ = column;
    rows_ = rows;
  }
  TENON_INLINE int rows() const { return rows_; }
  TENON_INLINE void take(int count) {
    while (count > 0 && rows_ > 0) {
      const bool is_pair = rows_ > 1 && gaps_.run(row_) > 1;
      if (is_pair)
        ending_.template store<2>(sums_, gaps_.row(row_), column_);
      else
        ending_.template store<1>(sums_, gaps_.row(row_), column_);
      const int done = is_pair ? 2 : 1;
      count -= done;
      rows_ -= done;
      row_ += done;
      sums_ += done * kColumns;
    }
  }

 private:
  const GeneralEnding& ending_;
  const RowGaps& gaps_;
  const int32_t* sums_ = nullptr;  // [rows, 32]
  int64_t row_ = 0;                // of the unit
  int64_t column_ = 0;
  int rows_ = 0;
};

// From: the elements of a residual.
template <Kind kind, class To, Shape shape, class From = float>
class Unit {
 public:
  Unit(const TileProductArgs& args, const TileUnit& unit)
      : args_(args),
        unit_(unit),
        depth_(unit.depth),
        epilogue_(whole(args)),
        gaps_(gaps_of(args, unit)),
        left_rows_(args, args.k * kBytes, unit.depth, kHasIntegers),
        general_(epilogue_, kHasIntegers),
        rest_(make_rest()) {}

  void run() {
    left_rows_.begin(unit_);
    Left left = take(0);
    for (int64_t i = 0; i < unit_.n_rows; i += kTileRows) {
      const Left next = i + kTileRows < unit_.n_rows ? take(i + kTileRows) : left;
      multiply_row(left, i, rows_from(i));
      left = next;
    }
    flush();
  }

 private:
  static constexpr bool kHasIntegers = kind != Kind::kBf16;
  static constexpr int64_t kBytes = kHasIntegers ? 1 : 2;  // of an element of the left operand
  // Whole blocks have their ending in registers; any other one is for the general ending.
  using Rest = std::conditional_t<shape == Shape::kGeneral,
                                  GeneralRest,
                                  PanelEnding<kHasIntegers, To, shape, From>>;

  int rows_from(int64_t i) const { return static_cast<int>(least_of(kTileRows, unit_.n_rows - i)); }
  bool has_taps() const { return args_.row == TileRow::kTaps; }
  Left take(int64_t i) { return left_rows_.take(has_taps() ? i : unit_.row + i, rows_from(i)); }
  static RowGaps gaps_of(const TileProductArgs& args, const TileUnit& unit) {
    if (args.row != TileRow::kTaps) return {.first = unit.row};
    return {.first = unit.row, .width = args.taps.line(), .gap = args.taps.gap()};
  }

  static Epilogue whole(const TileProductArgs& args) {
    Epilogue epilogue = args.epilogue;
    epilogue.columns = args.n;
    return epilogue;
  }
  Rest make_rest() const {
    if constexpr (shape == Shape::kGeneral) {
      return Rest(general_, gaps_);
    } else {
      // A sum and the shift of its column are no larger than k products of 8 bits each.
      const float most = 2.0F * 255.0F * 128.0F * static_cast<float>(args_.k);
      return Rest(epilogue_, gaps_,
                  !kHasIntegers || may_overflow(epilogue_, most, unit_.panel * kTilePanel,
                                                unit_.n_panels * kTilePanel));
    }
  }

  // One block of rows and all panels of the unit.
  void multiply_row(const Left& left, int64_t row, int rows) {
    const int upper = rows < 16 ? rows : 16;
    if (rows != held_.rows) flush();  // a new configuration empties the tiles
    tiles_.configure(upper, rows - upper);
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
        end_held();
        held_ = {sums, row, panel * kTilePanel, rows, span.is_last};
        if (!has_pieces) turn_ ^= 1;
      }
    }
    if (has_pieces) turn_ ^= 1;
  }

  // The sums of the block that was held are in memory.
  TENON_INLINE void end_held() {
    if (!held_.is_last) return;
    const bool is_whole = held_.rows == kBlockRows && held_.column + kTilePanel <= args_.n;
    if (shape == Shape::kGeneral || is_whole)
      return rest_.wait(held_.sums, held_.row, held_.column, held_.rows);
    GeneralRest rest(general_, gaps_);
    rest.wait(held_.sums, held_.row, held_.column, held_.rows);
    rest.take(kBlockRows);
  }

  // Ends all blocks that are under way.
  void flush() {
    rest_.take(kBlockRows);
    if (held_.rows > 0) {
      TENON_STORE_SUMS(0, held_.sums);
      TENON_STORE_SUMS(1, held_.sums);
    }
    if (held_.rows > 16) {
      TENON_STORE_SUMS(2, held_.sums);
      TENON_STORE_SUMS(3, held_.sums);
    }
    end_held();
    rest_.take(kBlockRows);
    held_ = {};
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
    const int share = (rest_.rows() + 2 * steps - 1) / (2 * steps) * 2;
    const Begin begin{
        held_.rows > 0 ? held_.sums : nullptr, span.first > 0 ? sums : nullptr,
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
      rest_.take(share);
    }
  }

  // What becomes of a tile before its first product: where its sums go, where it goes on from.
  struct Begin {
    int32_t* held;          // null: it is empty
    const int32_t* sums;    // of the pieces of k before; null: this is the first piece
    const int32_t* shifts;  // of the panel's columns, which sums begin with; null: zeros
  };

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
  Epilogue epilogue_;
  RowGaps gaps_;
  LeftRows left_rows_;
  GeneralEnding general_;
  Rest rest_;
  Tiles tiles_;
  Held held_;
  int turn_ = 0;
  alignas(64) int32_t sums_[2 * kTileUnitPanels][kTileRows * kTilePanel];
};

Shape shape_of(const Epilogue& epilogue) {
  if (epilogue.n_ops == 0) return Shape::kPlain;
  if (epilogue.n_ops > 1) return Shape::kGeneral;
  const EpilogueOp& op = epilogue.ops[0];
  if (op.kind == EpilogueOp::Kind::kTableGelu) return Shape::kGelu;
  const bool is_whole = op.row_stride != 0 && op.column_stride == 1;
  return op.kind == EpilogueOp::Kind::kAdd && is_whole ? Shape::kResidual : Shape::kGeneral;
}

template <Kind kind>
void run_general(const TileProductArgs& args, const TileUnit& unit) {
  Unit<kind, float, Shape::kGeneral>(args, unit).run();
}

// Bytes are added to bytes and floats to floats; all else is rare.
template <Kind kind, class To>
void run_with_residual(const TileProductArgs& args, const TileUnit& unit) {
  const ElementType from = args.epilogue.ops[0].other.type;
  if constexpr (sizeof(To) == 1) {
    if (from == ElementType::kU8)
      return Unit<kind, To, Shape::kResidual, uint8_t>(args, unit).run();
    if (from == ElementType::kS8) return Unit<kind, To, Shape::kResidual, int8_t>(args, unit).run();
  } else {
    if (from == ElementType::kBf16) return Unit<kind, To, Shape::kResidual, Bf16>(args, unit).run();
    if (from == ElementType::kF32) return Unit<kind, To, Shape::kResidual, float>(args, unit).run();
  }
  run_general<kind>(args, unit);
}

template <Kind kind, class To>
void run_as(const TileProductArgs& args, const TileUnit& unit) {
  switch (shape_of(args.epilogue)) {
    case Shape::kPlain:
      return Unit<kind, To, Shape::kPlain>(args, unit).run();
    case Shape::kGelu:
      return Unit<kind, To, Shape::kGelu>(args, unit).run();
    case Shape::kResidual:
      return run_with_residual<kind, To>(args, unit);
    case Shape::kGeneral:
      return run_general<kind>(args, unit);
  }
}

template <Kind kind>
void run_unit(const TileProductArgs& args, const TileUnit& unit) {
  switch (args.epilogue.dst.type) {
    case ElementType::kU8:
      return run_as<kind, uint8_t>(args, unit);
    case ElementType::kS8:
      return run_as<kind, int8_t>(args, unit);
    case ElementType::kBf16:
      return run_as<kind, Bf16>(args, unit);
    case ElementType::kF32:
      return run_as<kind, float>(args, unit);
    default:
      return run_general<kind>(args, unit);
  }
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
