// SPDX-License-Identifier: Apache-2.0
#include "product_operands.hpp"

#include "cpu.hpp"

namespace tenon::onednn {
namespace {

class OperandReader {
 public:
  explicit OperandReader(const ProductSite& site)
      : lowering_(site.lowering),
        product_(site.product),
        is_alone_(site.epilogue.nodes.empty() && site.product.bias == kNone) {}

  ProductOperands read() {
    a_ = lowering_.view(product_.a);
    b_ = lowering_.view(product_.b);
    bool b_constant = lowering_.is_constant_view(b_);
    if (!b_constant && may_be_int8(a_, b_)) b_ = as_signed(lowering_, product_.b);
    int last = static_cast<int>(b_.dims.size()) - 1;
    int column_axis = product_.transpose_b ? last - 1 : last;
    bool is_right = b_constant ? are_int8_weights(lowering_, b_, column_axis)
                               : b_.type == ElementType::kS8 && may_be_int8(a_, b_);
    made_.int8 = holds_quantized(a_) && a_.channels == nullptr && is_right &&
                 (b_constant ? sums_are_exact(lowering_, a_, b_) : adds_int8_exactly());
    made_.packs_b = b_constant && is_one_matrix(b_);
    made_.b_type = made_.int8 ? ElementType::kS8 : lowering_.real_type();
    if (!made_.int8) {
      a_ = real_matrix(lowering_, product_.a);
      made_.packs_in_run = packs_when_it_runs();
      if (!made_.packs_b && !made_.packs_in_run)
        b_ = real_matrix(lowering_, product_.b);
      else if (b_.is_quantized())
        b_ = lowering_.dequantized_constant(b_);
    }
    if (!is_fast_matrix(a_)) a_ = row_major(product_.a, a_);
    if (!made_.packs_b && !is_fast_matrix(b_)) b_ = row_major(product_.b, b_);
    made_.folds = is_one_matrix(b_) && !product_.transpose_a && !reads_columns();
    if (made_.folds && !is_row_major(a_)) a_ = row_major(product_.a, a_);
    made_.a = a_;
    made_.b = b_;
    return made_;
  }

 private:
  // Weights that are trained in f32 and multiplied in bf16 are converted in every run: then
  // straight into the blocks that the product reads, which makes it 3 to 10 % faster. Those that a
  // loop captures are packed once for all iterations.
  bool packs_when_it_runs() const {
    const bool pays = lowering_.real_type() == ElementType::kBf16 || lowering_.is_invariant(b_);
    const bool fits = !made_.packs_b && !product_.transpose_a && !b_.is_quantized() &&
                      is_fast_matrix(b_) && is_one_matrix(b_);
    return fits && (b_.type == ElementType::kF32 ? pays : packs_for_columns());
  }

  // In bf16 on AMX, a gradient of weights: the second operand is packed in each run where many rows
  // read it. With the rule of reads_columns 1.33 times as fast as a copy of the first operand alone
  // by oneDNN's own times in 150 products that chose nothing, 0.95 at least (M and N 10 to 4096, K
  // 32 to 4096).
  bool packs_for_columns() const {
    constexpr int64_t kLeastRows = 768, kLeastColumns = 256;
    return b_.type == ElementType::kBf16 && is_on_tiles() && has_columns() &&
           b_.strides.back() == 1 && a_.dims[0] >= kLeastRows && b_.dims.back() >= kLeastColumns;
  }
  bool is_on_tiles() const {
    return computes_in_tiles() && lowering_.real_type() == ElementType::kBf16;
  }
  // One matrix whose columns are dense, as gradients of weights have it.
  bool has_columns() const {
    return a_.dims.size() == 2 && a_.strides[0] == 1 && a_.strides[1] != 1;
  }

  View row_major(int value, const View& view) {
    if (!made_.int8) return lowering_.read_row_major(value, lowering_.real_type());
    return lowering_.read_stored(value, row_major_strides(view.dims), view.type);
  }

  // Whether oneDNN reads columns where they lie. Its kernel for AVX2 reads them as fast as rows, so
  // that a copy is lost (a tenth of the time at 2048 x 1536 x 384). Its kernel for AMX copies them
  // for each block of columns of the result: fast for few of these where no other product would
  // share a copy, and for what is larger than the caches (GPT-2's step, whose scores of all words
  // are copied in 22 ms else).
  bool reads_columns() const {
    constexpr int64_t kLarge = int64_t{16} << 20, kFewRows = 128, kFewColumns = 768;
    if (made_.int8 || !has_columns()) return false;
    if (!computes_in_bf16()) return true;
    if (!is_on_tiles() && is_transposed_for_few_columns()) return true;
    if (!computes_in_tiles()) return false;
    const bool is_small = a_.dims[0] <= kFewRows || b_.dims.back() <= kFewColumns;
    const bool is_alone = lowering_.graph().value(product_.a).users.size() == 1;
    return a_.bytes() >= kLarge || (is_on_tiles() && b_.dims.size() == 2 && is_small && is_alone);
  }

  // With few columns in the result, the product is transposed (Matmul::is_faster_transposed): so
  // many numbers of the second operand and of the result are then copied instead of the first
  // operand. The gradient of a layer of 10 classes takes a quarter of the time, that of one a
  // tenth; with more than 128 columns the products take most of it.
  bool is_transposed_for_few_columns() const {
    constexpr int64_t kFewColumns = 128;
    const bool is_plain = is_alone_ && !made_.packs_b && !made_.packs_in_run &&
                          !product_.transpose_b && b_.dims.size() == 2 && b_.strides.back() == 1;
    if (!is_plain || b_.dims.back() > kFewColumns) return false;
    const int64_t m = a_.dims[0], k = a_.dims[1], n = b_.dims[1];
    return m > n && m * k > n * k + m * n;
  }

  Lowering& lowering_;
  const Product& product_;
  const bool is_alone_;
  ProductOperands made_;
  View a_, b_;
};

}  // namespace

ProductOperands read_product_operands(const ProductSite& site) {
  return OperandReader(site).read();
}

}  // namespace tenon::onednn
