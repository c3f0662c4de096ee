// SPDX-License-Identifier: Apache-2.0
// Products on tiles; contract in ../tile_product.h. A block is 32 rows times one panel of 32
// columns, whose sums stay in four tiles over all of k. The sums of the block before are scaled,
// rounded and stored between the steps of k: tiles and vectors are different units of the CPU.

#include <type_traits>

#include "ending.h"
#include "tiles.h"

namespace tenon::onednn::kernels::amx {
namespace {

constexpr int kStep = 2 * 16 * static_cast<int>(kTileDepth);  // bytes of a panel in one step of k
constexpr int64_t kSumsStride = kColumns * sizeof(int32_t);
constexpr int64_t kLine = 64;  // bytes
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

constexpr int64_t least_of(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// The sums of a block that wait for their ending.
struct Waiting {
  const int32_t* sums = nullptr;  // [32, 32]
  int64_t row = 0;                // of the result
  int64_t column = 0;
  int rows = 0;  // 0: none wait
};

struct Left {
  const char* at;
  int64_t stride;
};
struct Span {  // bytes of each row
  int64_t first;
  int64_t bytes;
  bool is_last;
};

template <Kind kind, class To, Shape shape>
class Unit {
 public:
  Unit(const TileProductArgs& args, int64_t depth)
      : args_(args),
        depth_(depth),
        epilogue_(args.epilogue),
        general_(epilogue_, args.shifts, kHasIntegers) {
    epilogue_.columns = args.n;
  }

  void run(const TileUnit& unit) {
    const int64_t row_bytes = args_.k * kBytes;
    // Rows that are no whole steps of k: what lies behind them may be NaN, or no memory at all.
    const bool has_tail = row_bytes != depth_;
    for (int64_t i = 0; i < unit.n_rows; i += kTileRows) {
      const int64_t row = unit.row + i;
      const int rows = static_cast<int>(least_of(kTileRows, unit.n_rows - i));
      Left left{static_cast<const char*>(args_.a) + row * args_.a_stride, args_.a_stride};
      if (has_tail && (kind == Kind::kBf16 || row + rows == args_.m)) left = copy(left, rows);
      foresee(left, unit, i + kTileRows);
      multiply_row(left, row, rows, unit);
    }
    Rest(*this, waiting_).take(kBlockRows);
  }

 private:
  static constexpr bool kHasIntegers = kind != Kind::kBf16;
  static constexpr int64_t kBytes = kHasIntegers ? 1 : 2;  // of an element of the left operand

  // What is left to do of a waiting block. Whole blocks have their ending in registers; any other
  // one is for the general ending.
  class PanelRest {
   public:
    TENON_INLINE PanelRest(const Unit& unit, const Waiting& waiting)
        : ending_(unit.epilogue_, unit.args_.shifts, waiting.column),
          sums_(waiting.sums),
          row_(waiting.row),
          to_(unit.place(waiting.row, waiting.column)),
          stride_(unit.epilogue_.dst_stride),
          rows_(waiting.rows) {}
    // So many rows, or those that are left.
    TENON_INLINE void take(int count) {
      for (; count > 0 && rows_ > 0; count -= 2, rows_ -= 2) {
        ending_.store(sums_, row_, to_, stride_);
        row_ += 2;
        sums_ += 2 * kColumns;
        to_ += 2 * stride_;
      }
    }

   private:
    PanelEnding<kHasIntegers, To, shape> ending_;
    const int32_t* sums_;
    int64_t row_;
    To* to_;
    int64_t stride_;
    int rows_;
  };

  class GeneralRest {
   public:
    TENON_INLINE GeneralRest(const Unit& unit, const Waiting& waiting)
        : ending_(unit.general_), waiting_(waiting) {}
    TENON_INLINE void take(int count) {
      for (; count > 0 && done_ < waiting_.rows; count -= 2, done_ += 2) {
        const int32_t* const sums = waiting_.sums + done_ * kColumns;
        if (done_ + 1 < waiting_.rows)
          ending_.template store<2>(sums, waiting_.row + done_, waiting_.column);
        else
          ending_.template store<1>(sums, waiting_.row + done_, waiting_.column);
      }
    }

   private:
    const GeneralEnding& ending_;
    Waiting waiting_;
    int done_ = 0;
  };

  using Rest = std::conditional_t<shape == Shape::kGeneral, GeneralRest, PanelRest>;

  Left copy(const Left& from, int rows) {
    const auto bytes = static_cast<size_t>(args_.k * kBytes);
    for (int row = 0; row < rows; ++row) {
      char* const to = padded_ + row * depth_;
      std::memcpy(to, from.at + row * from.stride, bytes);
      std::memset(to + bytes, 0, static_cast<size_t>(depth_) - bytes);
    }
    return {padded_, depth_};
  }

  // Tiles are loaded from as many places as they have rows, where no hardware sees what comes next:
  // the lines of the next block of rows are asked for between the steps of this one.
  void foresee(const Left& left, const TileUnit& unit, int64_t next) {
    const int64_t rows = least_of(kTileRows, unit.n_rows - next);
    const bool is_dense = args_.a_stride == depth_ && left.at != padded_;
    ahead_left_ = rows > 0 && is_dense ? rows * depth_ / kLine : 0;
    ahead_ = left.at + kTileRows * args_.a_stride;
    const int64_t steps = unit.n_panels * (depth_ / kTileDepth);
    ahead_share_ = (ahead_left_ + steps - 1) / steps;
  }
  TENON_INLINE void prefetch() {
    for (int64_t i = 0; i < ahead_share_ && ahead_left_ > 0; ++i, --ahead_left_, ahead_ += kLine)
      _mm_prefetch(ahead_, _MM_HINT_T1);
  }

  // One block of rows and all panels of the unit.
  void multiply_row(const Left& left, int64_t row, int rows, const TileUnit& unit) {
    const int upper = rows < 16 ? rows : 16;
    tiles_.configure(upper, rows - upper);
    asm volatile("" ::: "memory");  // what was copied is there
    const bool has_pieces = depth_ > kTileWholeRow;
    const int64_t piece = has_pieces ? kTilePiece : depth_;
    for (int64_t first = 0; first < depth_; first += piece) {
      const Span span{first, least_of(piece, depth_ - first), first + piece >= depth_};
      for (int64_t i = 0; i < unit.n_panels; ++i) {
        int32_t* const sums = sums_[has_pieces ? i + turn_ * kTileUnitPanels : turn_];
        block({sums, row, (unit.panel + i) * kTilePanel, rows}, left, span, sums);
        if (span.is_last && !has_pieces) turn_ ^= 1;
      }
    }
    if (has_pieces) turn_ ^= 1;
  }

  TENON_INLINE void block(const Waiting& made, const Left& left, const Span& span, int32_t* sums) {
    const int64_t panel = made.column / kTilePanel;
    if (made.rows > 16)
      multiply<true>(left, span, panel, sums);
    else
      multiply<false>(left, span, panel, sums);
    if (!span.is_last) return;
    waiting_ = made;
    const bool is_whole = made.rows == kBlockRows && made.column + kTilePanel <= args_.n;
    if (shape == Shape::kGeneral || is_whole) return;
    GeneralRest(*this, waiting_).take(kBlockRows);
    waiting_.rows = 0;
  }

  template <bool has_lower>
  TENON_INLINE void begin(const Span& span, const int32_t* sums) {
    if (span.first == 0) {
      _tile_zero(0);
      _tile_zero(1);
      if constexpr (has_lower) {
        _tile_zero(2);
        _tile_zero(3);
      }
      return;
    }
    _tile_loadd(0, sums, kSumsStride);
    _tile_loadd(1, sums + 16, kSumsStride);
    if constexpr (has_lower) {
      _tile_loadd(2, sums + 16 * kColumns, kSumsStride);
      _tile_loadd(3, sums + 16 * kColumns + 16, kSumsStride);
    }
  }

  template <bool has_lower>
  TENON_INLINE void multiply(const Left& left, const Span& span, int64_t panel, int32_t* sums) {
    const char* upper = left.at + span.first;
    const char* lower = upper + 16 * left.stride;
    const char* right =
        static_cast<const char*>(args_.b) + panel * kTilePanel * depth_ + span.first * kTilePanel;
    begin<has_lower>(span, sums);
    const int steps = static_cast<int>(span.bytes / kTileDepth);
    const int share = (waiting_.rows + 2 * steps - 1) / (2 * steps) * 2;
    Rest rest(*this, waiting_);
    for (int step = 0; step < steps; ++step) {
      _tile_loadd(6, right, kTileDepth);
      _tile_loadd(4, upper, left.stride);
      TENON_TILE_PRODUCT(0, 4, 6);
      _tile_loadd(7, right + kStep / 2, kTileDepth);
      TENON_TILE_PRODUCT(1, 4, 7);
      if constexpr (has_lower) {
        _tile_loadd(5, lower, left.stride);
        TENON_TILE_PRODUCT(2, 5, 6);
        TENON_TILE_PRODUCT(3, 5, 7);
      }
      upper += kTileDepth;
      lower += kTileDepth;
      right += kStep;
      rest.take(share);
      prefetch();
    }
    waiting_.rows = 0;
    _tile_stored(0, sums, kSumsStride);
    _tile_stored(1, sums + 16, kSumsStride);
    if constexpr (has_lower) {
      _tile_stored(2, sums + 16 * kColumns, kSumsStride);
      _tile_stored(3, sums + 16 * kColumns + 16, kSumsStride);
    }
  }

  To* place(int64_t row, int64_t column) const {
    return static_cast<To*>(epilogue_.dst.data) + row * epilogue_.dst_stride + column;
  }

  const TileProductArgs& args_;
  int64_t depth_;  // bytes of a row of the left operand, in whole steps
  Epilogue epilogue_;
  GeneralEnding general_;
  Tiles tiles_;
  Waiting waiting_;
  int turn_ = 0;
  const char* ahead_ = nullptr;  // what to ask for next, how many lines, and how many in one step
  int64_t ahead_left_ = 0;
  int64_t ahead_share_ = 0;
  alignas(64) int32_t sums_[2 * kTileUnitPanels][kTileRows * kTilePanel];
  alignas(64) char padded_[kTileRows * kMostTileTail];
};

Shape shape_of(const Epilogue& epilogue) {
  if (epilogue.n_ops == 0) return Shape::kPlain;
  if (epilogue.n_ops > 1) return Shape::kGeneral;
  const EpilogueOp& op = epilogue.ops[0];
  if (op.kind == EpilogueOp::Kind::kShortGelu) return Shape::kGelu;
  const bool is_whole = op.row_stride != 0 && op.column_stride == 1;
  return op.kind == EpilogueOp::Kind::kAdd && is_whole ? Shape::kResidual : Shape::kGeneral;
}

template <Kind kind, class To>
void run_as(const TileProductArgs& args, const TileUnit& unit) {
  switch (shape_of(args.epilogue)) {
    case Shape::kPlain:
      return Unit<kind, To, Shape::kPlain>(args, unit.depth).run(unit);
    case Shape::kGelu:
      return Unit<kind, To, Shape::kGelu>(args, unit.depth).run(unit);
    case Shape::kResidual:
      return Unit<kind, To, Shape::kResidual>(args, unit.depth).run(unit);
    case Shape::kGeneral:
      return Unit<kind, float, Shape::kGeneral>(args, unit.depth).run(unit);
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
      return Unit<kind, float, Shape::kGeneral>(args, unit.depth).run(unit);
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
