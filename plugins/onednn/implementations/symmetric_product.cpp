// SPDX-License-Identifier: Apache-2.0
// A matrix times its own transpose: its rows are cut into panels, products are made of the blocks
// on and above the diagonal, what is below is copied, so that the result is symmetric to the bit.
// The blocks of one diagonal are one batched product, whose operands are dense: for matrices that
// are cut out of a larger one oneDNN has only its plain gemm, and that makes all its kernels, 35 ms
// long, when a process first needs it.

#include <array>
#include <cstring>
#include <utility>

#include "kernels/copy.h"
#include "lowering/matrix_descriptor.hpp"
#include "product.hpp"
#include "rewrites/centred_products.hpp"

namespace tenon::onednn {
namespace {

constexpr int64_t kMostPanels = 8;  // (8 + 1) / (2 * 8) of the products are left
constexpr int64_t kRound = 16;

struct Move {  // from the buffer of blocks into the result, by bytes
  kernels::StridedCopy copy;
  int64_t from;
  int64_t to;
};

class SymmetricBuilder {
 public:
  SymmetricBuilder(Lowering& lowering, int node, const View& left)
      : lowering_(lowering),
        node_(lowering.graph().nodes[node]),
        left_(left),
        n_(left.dims[0]),
        k_(left.dims[1]) {
    int value = node_.outputs[0];
    dst_ = lowering_.make(value, lowering_.stored_type(value),
                          row_major_strides(lowering_.graph().values[value].dims));
    width_ = ((n_ + kMostPanels - 1) / kMostPanels + kRound - 1) / kRound * kRound;
    n_panels_ = (n_ + width_ - 1) / width_;
  }

  void build() {
    View panels = pack();
    View blocks{.type = dst_.type,
                .dims = {n_panels_ * (n_panels_ + 1) / 2, width_, width_},
                .strides = {width_ * width_, width_, 1}};
    blocks.buffer = lowering_.scratch(blocks.bytes());
    for (int64_t diagonal = 0; diagonal < n_panels_; ++diagonal)
      multiply(panels, diagonal, part(blocks, first_block(diagonal), n_panels_ - diagonal));
    assemble(blocks);
  }

 private:
  int64_t first_block(int64_t diagonal) const {
    return diagonal * n_panels_ - diagonal * (diagonal - 1) / 2;
  }

  static View part(View whole, int64_t first, int64_t count) {
    whole.offset += first * whole.strides[0];
    whole.dims[0] = count;
    return whole;
  }

  // [panels, width, k], rows of zeros at the end.
  View pack() {
    View packed{
        .type = left_.type, .dims = {n_panels_, width_, k_}, .strides = {width_ * k_, k_, 1}};
    packed.buffer = lowering_.scratch(packed.bytes());
    Step step{.name = node_.name, .kernel = "tenon:panels", .always_succeeds = true};
    step.bytes = static_cast<double>(left_.bytes() + packed.bytes());
    step.places = {place_of(left_), place_of(packed)};
    const int64_t bytes = kernels::element_bytes(left_.type);
    const kernels::StridedCopy copy{
        nullptr, nullptr, bytes, 2, {n_, k_}, {left_.strides[0], left_.strides[1]}, {k_, 1}};
    const int64_t used = n_ * k_ * bytes;
    const int64_t padding = packed.bytes() - used;
    step.kernel_function = [copy, used, padding](const kernels::Context& context,
                                                 void* const* pointers) -> const char* {
      kernels::StridedCopy call = copy;
      call.src = pointers[0];
      call.dst = pointers[1];
      kernels::strided_copy(context, call);
      std::memset(static_cast<char*>(pointers[1]) + used, 0, static_cast<size_t>(padding));
      return nullptr;
    };
    lowering_.add_step(std::move(step));
    return packed;
  }

  void multiply(const View& panels, int64_t diagonal, const View& c) {
    View a = part(panels, 0, c.dims[0]);
    View b = part(panels, diagonal, c.dims[0]);
    std::swap(b.dims[1], b.dims[2]);
    std::swap(b.strides[1], b.strides[2]);
    dnnl::matmul::primitive_desc pd(lowering_.engine(), matrix_descriptor(a), matrix_descriptor(b),
                                    matrix_descriptor(c), new_attr());
    std::string kernel = std::string(pd.impl_info_str()) + " (symmetric)";
    lowering_.add_primitive<dnnl::matmul>(node_.name, pd,
                                          {{DNNL_ARG_SRC, place_of(a), pd.src_desc()},
                                           {DNNL_ARG_WEIGHTS, place_of(b), pd.weights_desc()},
                                           {DNNL_ARG_DST, place_of(c), pd.dst_desc()}},
                                          2.0 * static_cast<double>(c.count() * k_), kernel);
  }

  // Blocks in their places, less what reaches past the matrix; then the other half.
  void assemble(const View& blocks) {
    Step step{.name = node_.name, .kernel = "tenon:mirror", .always_succeeds = true};
    step.bytes = static_cast<double>(blocks.bytes() + dst_.bytes());
    step.places = {place_of(blocks), place_of(dst_)};
    const int64_t bytes = kernels::element_bytes(dst_.type);
    step.kernel_function = [moves = block_moves(bytes), bytes, n = n_](
                               const kernels::Context& context,
                               void* const* pointers) -> const char* {
      for (const Move& move : moves) {
        kernels::StridedCopy call = move.copy;
        call.src = static_cast<const char*>(pointers[0]) + move.from;
        call.dst = static_cast<char*>(pointers[1]) + move.to;
        kernels::strided_copy(context, call);
      }
      kernels::mirror_upper(context, pointers[1], bytes, n);
      return nullptr;
    };
    lowering_.add_step(std::move(step));
  }

  // Of each diagonal: its whole blocks, and the last, which may be short.
  std::vector<Move> block_moves(int64_t bytes) const {
    std::vector<Move> moves;
    const int64_t rest = n_ - (n_panels_ - 1) * width_;
    for (int64_t diagonal = 0; diagonal < n_panels_; ++diagonal) {
      const int64_t whole = n_panels_ - diagonal - 1;
      auto move = [&](int64_t block, std::array<int64_t, 3> dims) {
        const kernels::StridedCopy copy{nullptr,
                                        nullptr,
                                        bytes,
                                        3,
                                        {dims[0], dims[1], dims[2]},
                                        {width_ * width_, width_, 1},
                                        {width_ * n_ + width_, n_, 1}};
        const int64_t at = block * width_ * n_ + (block + diagonal) * width_;
        moves.push_back(
            {copy, (first_block(diagonal) + block) * width_ * width_ * bytes, at * bytes});
      };
      if (whole > 0) move(0, {whole, width_, width_});
      move(whole, {1, diagonal == 0 ? rest : width_, rest});
    }
    return moves;
  }

  Lowering& lowering_;
  const Node& node_;
  View left_;  // [n, k]; the other operand is its transpose
  int64_t n_, k_;
  int64_t width_ = 0;     // rows of a panel
  int64_t n_panels_ = 0;  // the last may be short
  View dst_;
};

}  // namespace

Offer offer_symmetric_product(const ProductSite& site) {
  constexpr const char* kOther = "not a matrix times its own transpose";
  const Lowering& lowering = site.lowering;
  const Product& product = site.product;
  if (product.bias != kNone) return refused("a bias of its own");
  View a = lowering.view(product.a);
  View b = lowering.view(product.b);
  if (a.dims.size() != 2 || b.dims.size() != 2 || a.is_quantized()) return refused(kOther);
  if (product.transpose_a) a = transposed(a);
  if (product.transpose_b) b = transposed(b);
  const View other = transposed(b);
  bool is_same = a.buffer == b.buffer && a.offset == b.offset && a.type == b.type &&
                 !b.is_quantized() && a.dims == other.dims && a.strides == other.strides;
  bool is_matrix = a.strides[0] == 1 || a.strides[1] == 1;
  if (!is_same || !is_matrix) return refused(kOther);
  const bool pays = pays_to_halve(a.dims[0], a.dims[1]);
  return accepted_unless(pays ? "" : "too small for halves to pay", [&site] {
    const Product& p = site.product;
    View read = site.lowering.read(p.a, site.lowering.real_type(), site.lowering.view(p.a).strides);
    SymmetricBuilder(site.lowering, p.node, p.transpose_a ? transposed(read) : read).build();
  });
}

}  // namespace tenon::onednn
