// SPDX-License-Identifier: Apache-2.0
#pragma once
// Blocks of 32 rows times one panel of 32 columns, whose sums stay in tiles 0 to 3 over k. Three of
// them are under way at a time, as tiles and vectors are different units of the CPU: while one is
// multiplied, the sums of the one before it leave their tiles (amid the first step of k, where that
// is free; behind the last one the CPU would wait for them), and those of the one before that are
// scaled, rounded and stored.

#include <type_traits>

#include "epilogue.h"
#include "tiles.h"

namespace tenon::onednn::kernels::amx {

constexpr int64_t kSumsStride = kColumns * sizeof(int32_t);
constexpr int kBlockRows = static_cast<int>(kTileRows);
constexpr int64_t kBlockSums = kTileRows * kTilePanel;

constexpr int64_t least_of(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// Where a tile's sums are among those of its block.
constexpr int sums_at(int tile) {
  return tile / 2 * 16 * kColumns + tile % 2 * 16;
}
#define TENON_STORE_SUMS(tile, sums) _tile_stored(tile, (sums) + sums_at(tile), kSumsStride)

// What becomes of the tiles before a block's first product: where their sums go, where they go on
// from.
struct Begin {
  int32_t* held;          // null: they are empty
  const int32_t* sums;    // of the pieces of k before; null: this is the first piece
  const int32_t* shifts;  // of the panel's columns, which sums begin with; null: zeros
};
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

// The block whose sums are in the tiles.
struct Held {
  int32_t* sums = nullptr;  // where they go
  int64_t row = 0;          // of the unit
  int64_t column = 0;
  int rows = 0;          // 0: the tiles are empty
  bool is_last = false;  // of the pieces of k
};

// Rows that wait for an epilogue of any operations.
class GeneralRest {
 public:
  GeneralRest(const GeneralEpilogue& epilogue, const RowGaps& gaps)
      : epilogue_(epilogue), gaps_(gaps) {}
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
        epilogue_.template store<2>(sums_, gaps_.row(row_), column_);
      else
        epilogue_.template store<1>(sums_, gaps_.row(row_), column_);
      const int done = is_pair ? 2 : 1;
      count -= done;
      rows_ -= done;
      row_ += done;
      sums_ += done * kColumns;
    }
  }

 private:
  const GeneralEpilogue& epilogue_;
  const RowGaps& gaps_;
  const int32_t* sums_ = nullptr;  // [rows, 32]
  int64_t row_ = 0;                // of the unit
  int64_t column_ = 0;
  int rows_ = 0;
};

// What becomes of the sums of a unit's blocks. From: the elements of a residual.
template <bool has_integers, class To, Shape shape, class From>
class Blocks {
 public:
  // columns: of the result. may_overflow: a sum that is scaled may be no 32-bit integer.
  Blocks(const Epilogue& epilogue, int64_t columns, const RowGaps& gaps, bool may_overflow)
      : epilogue_(whole(epilogue, columns)),
        gaps_(gaps),
        general_(epilogue_, has_integers),
        rest_(make_rest(may_overflow)) {}

  // Before blocks of so many rows are multiplied.
  template <class Mend>
  void configure(int rows, const Mend& mend) {
    if (rows != held_.rows) flush(mend);  // a new configuration empties the tiles
    const int upper = rows < 16 ? rows : 16;
    tiles_.configure(upper, rows - upper);
  }
  TENON_INLINE int held_rows() const { return held_.rows; }
  // Where the sums in the tiles go; null: there are none.
  TENON_INLINE int32_t* held() const { return held_.rows > 0 ? held_.sums : nullptr; }
  // Rows that wait for their epilogue; it is applied to some of them.
  TENON_INLINE int waiting() const { return rest_.rows(); }
  TENON_INLINE void take(int rows) { rest_.take(rows); }

  // The next block is in the tiles, and the sums of the one before in memory. mend(held): before
  // their epilogue.
  template <class Mend>
  TENON_INLINE void hold(const Held& next, const Mend& mend) {
    end_held(mend);
    held_ = next;
  }
  // Ends all blocks that are under way.
  template <class Mend>
  void flush(const Mend& mend) {
    rest_.take(kBlockRows);
    if (held_.rows > 0) {
      TENON_STORE_SUMS(0, held_.sums);
      TENON_STORE_SUMS(1, held_.sums);
    }
    if (held_.rows > 16) {
      TENON_STORE_SUMS(2, held_.sums);
      TENON_STORE_SUMS(3, held_.sums);
    }
    end_held(mend);
    rest_.take(kBlockRows);
    held_ = {};
  }

 private:
  // Whole blocks have numbers of their epilogue in registers; all others take the general one.
  using Rest = std::conditional_t<shape == Shape::kGeneral,
                                  GeneralRest,
                                  PanelEpilogue<has_integers, To, shape, From>>;

  static Epilogue whole(Epilogue epilogue, int64_t columns) {
    epilogue.columns = columns;
    return epilogue;
  }
  Rest make_rest(bool may_overflow) const {
    if constexpr (shape == Shape::kGeneral)
      return Rest(general_, gaps_);
    else
      return Rest(epilogue_, gaps_, may_overflow);
  }

  template <class Mend>
  TENON_INLINE void end_held(const Mend& mend) {
    if (!held_.is_last) return;
    mend(held_);
    const bool is_whole =
        held_.rows == kBlockRows && held_.column + kTilePanel <= epilogue_.columns;
    if (shape == Shape::kGeneral || is_whole)
      return rest_.wait(held_.sums, held_.row, held_.column, held_.rows);
    GeneralRest rest(general_, gaps_);
    rest.wait(held_.sums, held_.row, held_.column, held_.rows);
    rest.take(kBlockRows);
  }

  Epilogue epilogue_;
  RowGaps gaps_;
  GeneralEpilogue general_;
  Rest rest_;
  Tiles tiles_;
  Held held_;
};

inline Shape shape_of(const Epilogue& epilogue) {
  if (epilogue.n_ops == 0) return Shape::kPlain;
  if (epilogue.n_ops > 1) return Shape::kGeneral;
  const EpilogueOp& op = epilogue.ops[0];
  if (op.kind == EpilogueOp::Kind::kTableGelu) return Shape::kGelu;
  if (op.kind == EpilogueOp::Kind::kGeluErf) return Shape::kErfGelu;
  const bool is_whole = op.row_stride != 0 && op.column_stride == 1;
  return op.kind == EpilogueOp::Kind::kAdd && is_whole ? Shape::kResidual : Shape::kGeneral;
}

// run.operator()<To, shape, From>() with the types and the shape of an epilogue.
template <class Run>
void with_general_epilogue(const Run& run) {
  run.template operator()<float, Shape::kGeneral, float>();
}
// Bytes are added to bytes and floats to floats; all else is rare.
template <class To, class Run>
void with_residual(const Epilogue& epilogue, const Run& run) {
  const ElementType from = epilogue.ops[0].other.type;
  if constexpr (sizeof(To) == 1) {
    if (from == ElementType::kU8) return run.template operator()<To, Shape::kResidual, uint8_t>();
    if (from == ElementType::kS8) return run.template operator()<To, Shape::kResidual, int8_t>();
  } else {
    if (from == ElementType::kBf16) return run.template operator()<To, Shape::kResidual, Bf16>();
    if (from == ElementType::kF32) return run.template operator()<To, Shape::kResidual, float>();
  }
  with_general_epilogue(run);
}
template <class To, class Run>
void with_epilogue_as(const Epilogue& epilogue, const Run& run) {
  switch (shape_of(epilogue)) {
    case Shape::kPlain:
      return run.template operator()<To, Shape::kPlain, float>();
    case Shape::kGelu:
      return run.template operator()<To, Shape::kGelu, float>();
    case Shape::kErfGelu:
      if constexpr (sizeof(To) == sizeof(float))
        return run.template operator()<To, Shape::kErfGelu, float>();
      return with_general_epilogue(run);
    case Shape::kResidual:
      return with_residual<To>(epilogue, run);
    case Shape::kGeneral:
      return with_general_epilogue(run);
  }
}
template <class Run>
void with_epilogue(const Epilogue& epilogue, const Run& run) {
  switch (epilogue.dst.type) {
    case ElementType::kU8:
      return with_epilogue_as<uint8_t>(epilogue, run);
    case ElementType::kS8:
      return with_epilogue_as<int8_t>(epilogue, run);
    case ElementType::kBf16:
      return with_epilogue_as<Bf16>(epilogue, run);
    case ElementType::kF32:
      return with_epilogue_as<float>(epilogue, run);
    default:
      return with_general_epilogue(run);
  }
}

}  // namespace tenon::onednn::kernels::amx
