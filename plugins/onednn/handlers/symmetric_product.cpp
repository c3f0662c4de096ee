// SPDX-License-Identifier: Apache-2.0
// A matrix times its own transpose: blocks on and above the diagonal are products, what is below is
// copied, so that the result is symmetric to the bit. The square is halved again and again (as in
// Elmroth, Gustavson, Jonsson, Kagstrom, "Recursive blocked algorithms and hybrid data structures",
// 2004, section 3), so that nearly all work lies in few large products.

#include "../centred_products.hpp"
#include "kernels/copy.h"
#include "product.hpp"

namespace tenon::onednn {
namespace {

constexpr int64_t kLeaf = 128;  // a square that is not halved further
constexpr int64_t kRound = 16;

struct Block {
  int64_t row, column, rows, columns;
};

class SymmetricBuilder {
 public:
  SymmetricBuilder(Lowering& lowering, int node, const View& left)
      : lowering_(lowering), node_(lowering.graph().nodes[node]), left_(left) {
    int value = node_.outputs[0];
    dst_ = lowering_.make(value, lowering_.stored_type(value),
                          row_major_strides(lowering_.graph().values[value].dims));
  }

  void build() {
    split(0, dst_.dims[0]);
    mirror();
  }

 private:
  void split(int64_t at, int64_t n) {
    if (n <= kLeaf) return multiply({at, at, n, n});
    int64_t half = (n / 2 + kRound - 1) / kRound * kRound;
    multiply({at, at + half, half, n - half});
    split(at, half);
    split(at + half, n - half);
  }

  void multiply(const Block& block) {
    int64_t k = left_.dims[1];
    View a = rows_of_left(block.row, block.rows);
    View b = turned(rows_of_left(block.column, block.columns));
    View c = dst_;
    c.dims = {block.rows, block.columns};
    c.offset = block.row * dst_.strides[0] + block.column;
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::matmul::primitive_desc pd(lowering_.engine(), descriptor(a), descriptor(b), descriptor(c),
                                    attr);
    double flops = 2.0 * static_cast<double>(block.rows * block.columns * k);
    std::string kernel = std::string(pd.impl_info_str()) + " (symmetric)";
    lowering_.add_primitive(node_.name, kernel.c_str(), dnnl::matmul(pd), pd.scratchpad_desc(),
                            {{DNNL_ARG_SRC, place_of(a), pd.src_desc()},
                             {DNNL_ARG_WEIGHTS, place_of(b), pd.weights_desc()},
                             {DNNL_ARG_DST, place_of(c), pd.dst_desc()}},
                            flops);
  }

  View rows_of_left(int64_t row, int64_t rows) const {
    View view = left_;
    view.dims[0] = rows;
    view.offset += row * left_.strides[0];
    return view;
  }

  void mirror() {
    Step step{.name = node_.name, .kernel = "tenon:mirror"};
    step.bytes = static_cast<double>(dst_.bytes());
    step.places = {place_of(dst_)};
    step.kernel_function = [bytes = kernels::element_bytes(dst_.type), n = dst_.dims[0]](
                               const kernels::Context& context,
                               void* const* pointers) -> const char* {
      kernels::mirror_upper(context, pointers[0], bytes, n);
      return nullptr;
    };
    lowering_.add_step(std::move(step));
  }

  Lowering& lowering_;
  const Node& node_;
  View left_;  // [n, k]; the other operand is its transpose
  View dst_;
};

}  // namespace

bool lower_symmetric_product(Lowering& lowering, const Product& product) {
  if (product.bias != kNone) return false;
  View a = lowering.view(product.a);
  View b = lowering.view(product.b);
  if (a.dims.size() != 2 || b.dims.size() != 2 || a.is_quantized()) return false;
  if (product.transpose_a) a = turned(a);
  if (product.transpose_b) b = turned(b);
  const View other = turned(b);
  bool is_same = a.buffer == b.buffer && a.offset == b.offset && a.type == b.type &&
                 !b.is_quantized() && a.dims == other.dims && a.strides == other.strides;
  bool is_matrix = a.strides[0] == 1 || a.strides[1] == 1;
  if (!is_same || !is_matrix || !pays_to_halve(a.dims[0], a.dims[1])) return false;
  View read = lowering.read(product.a, lowering.real_type(), lowering.view(product.a).strides);
  SymmetricBuilder(lowering, product.node, product.transpose_a ? turned(read) : read).build();
  return true;
}

}  // namespace tenon::onednn
