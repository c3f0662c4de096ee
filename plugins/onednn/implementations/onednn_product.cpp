// SPDX-License-Identifier: Apache-2.0
// A product by oneDNN's matmul. Its operands are brought into types and layouts that it multiplies
// fast; then it is asked for a kernel that takes all along what follows, else for one that takes
// nothing.

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "cpu.hpp"
#include "lists.hpp"
#include "lowering/matrix_descriptor.hpp"
#include "operand_scales.hpp"
#include "packed_weights.hpp"
#include "primitive.hpp"
#include "product.hpp"
#include "product_operands.hpp"

namespace tenon::onednn {
namespace {

using Desc = dnnl::memory::desc;

void swap_last(Dims& dims) {
  std::swap(dims[dims.size() - 1], dims[dims.size() - 2]);
}

class Matmul {
 public:
  Matmul(const ProductSite& site, const ProductOperands& operands, const Epilogue& epilogue)
      : lowering_(site.lowering),
        product_(site.product),
        node_(site.node()),
        operands_(operands),
        epilogue_(epilogue),
        a_(operands.a),
        b_(operands.b),
        bias_(product_.bias != kNone ? product_.bias : epilogue.bias) {}

  // Why oneDNN does not take it so; empty: `emit` may be called.
  std::string describe(bool takes_plain_loops) {
    choose_dims();
    fused_ = fuse(lowering_, epilogue_,
                  {.result_strides = dst_strides_,
                   .dims = c_dims_,
                   .channel_axis = static_cast<int>(c_dims_.size()) - 1,
                   .sources = {place_of(a_), place_of(b_), {lowering_.buffer_of(bias_), 0}}});
    if (!fused_.why_not.empty()) return fused_.why_not;
    if (operands_.int8)
      describe_scales(a_.quant, b_.quant, mask_of_scales(b_, c_dims_.size()), &fused_.attr);
    const Desc dst = describe_result();
    const Desc a = matrix_descriptor(a_, a_dims_, a_strides_);
    const bool is_packed = operands_.packs_b || operands_.packs_in_run;
    const Desc b = is_packed
                       ? Desc(b_dims_, dnnl_type(operands_.b_type), dnnl::memory::format_tag::any)
                       : matrix_descriptor(b_, b_dims_, b_strides_);
    using Description = dnnl::matmul::primitive_desc;
    if (bias_ == kNone) {
      pd_ = Description(lowering_.engine(), a, b, dst, fused_.attr, kMayFail);
    } else {
      Dims row(c_dims_.size(), 1);
      row.back() = c_dims_.back();
      const Desc bias(row, dnnl::memory::data_type::f32, row_major_strides(row));
      pd_ = Description(lowering_.engine(), a, b, bias, dst, fused_.attr, kMayFail);
    }
    return why_no_kernel(pd_, takes_plain_loops);
  }

  // oneDNN's older way, for what its newer kernels do not read.
  bool is_gemm() const { return std::string_view(pd_.impl_info_str()).starts_with("gemm"); }

  void emit() {
    std::vector<Argument> arguments = bind(lowering_, epilogue_, fused_);
    if (operands_.int8) bind_scales(lowering_, a_.quant, b_.quant, scales_of(b_), &arguments);
    arguments.push_back({DNNL_ARG_SRC, place_of(a_), pd_.src_desc()});
    arguments.push_back({DNNL_ARG_WEIGHTS, weights_place(), pd_.weights_desc()});
    if (bias_ != kNone) {
      const View row = lowering_.read_row_major(bias_, ElementType::kF32);
      arguments.push_back({DNNL_ARG_BIAS, place_of(row), pd_.bias_desc()});
    }
    View& dst = fused_.dst;
    if (dst.buffer == kNone) dst.buffer = lowering_.scratch(dst.bytes());
    arguments.push_back({DNNL_ARG_DST, place_of(dst), pd_.dst_desc()});
    double flops =
        2.0 * static_cast<double>(element_count(c_dims_)) * static_cast<double>(a_dims_.back());
    lowering_.add_primitive<dnnl::matmul>(node_.name, pd_, std::move(arguments), flops);
    lowering_.set_view(epilogue_.result, dst);
    mark_absorbed(lowering_, epilogue_);
  }

 private:
  Place weights_place() {
    if (operands_.packs_b)
      return lowering_.packed(b_, Desc(b_dims_, dnnl_type(b_.type), b_strides_),
                              pd_.weights_desc());
    if (!operands_.packs_in_run) return place_of(b_);
    View weights = b_;
    weights.dims = b_dims_;
    weights.strides = b_strides_;
    return packed_weights(lowering_, lowering_.graph().values[product_.b].name, weights,
                          pd_.weights_desc(), 1);
  }

  Desc describe_result() {
    if (operands_.folds) return matrix_descriptor(fused_.dst, c_dims_, row_major_strides(c_dims_));
    View dst = is_transposed_ ? transposed(fused_.dst) : fused_.dst;
    if (epilogue_.nodes.empty() && bias_ == kNone && !operands_.int8) choose_batch_axes(dst);
    return matrix_descriptor(dst);
  }

  // oneDNN's fast kernels read a few orders of four axes alone. So there are two batch axes at
  // least, and those through which one stride passes in operands and result are one, with others of
  // one element in front.
  void choose_batch_axes(View& dst) {
    const std::array<std::pair<Dims*, Dims*>, 3> all = {
        {{&dst.dims, &dst.strides}, {&a_dims_, &a_strides_}, {&b_dims_, &b_strides_}}};
    if (dst.dims.size() < 3) return;
    for (const auto& [dims, strides] : all) {
      if (dims->size() > 3) continue;
      dims->insert(dims->begin(), 1);
      strides->insert(strides->begin(), element_count(*dims));
    }
    const size_t axis = dst.dims.size() - 3;
    for (size_t n = axis; n > 0; --n) {
      const int64_t inner = dst.dims[axis], outer = dst.dims[axis - 1];
      const bool are_one = std::ranges::all_of(all, [&](const auto& each) {
        const auto& [dims, strides] = each;
        return (*dims)[axis] == inner && (*dims)[axis - 1] == outer &&
               (*strides)[axis - 1] == (*strides)[axis] * inner;
      });
      if (!are_one) return;
      for (const auto& [dims, strides] : all) {
        (*dims)[axis] = inner * outer;
        dims->erase(dims->begin() + static_cast<ptrdiff_t>(axis) - 1);
        dims->insert(dims->begin(), 1);
        strides->erase(strides->begin() + static_cast<ptrdiff_t>(axis) - 1);
        strides->insert(strides->begin(), element_count(*dims));
      }
    }
  }

  void choose_dims() {
    const Dims& result = lowering_.graph().values[epilogue_.result].dims;
    dst_strides_ = row_major_strides(result);
    a_dims_ = a_.dims;
    a_strides_ = a_.strides;
    b_dims_ = b_.dims;
    b_strides_ = b_.strides;
    c_dims_ = result;
    if (product_.transpose_a) {
      swap_last(a_dims_);
      swap_last(a_strides_);
    }
    if (product_.transpose_b) {
      swap_last(b_dims_);
      swap_last(b_strides_);
    }
    if (operands_.folds) {
      int64_t k = a_dims_.back();
      a_dims_ = {a_.count() / k, k};
      a_strides_ = {k, 1};
      b_strides_.erase(b_strides_.begin(), b_strides_.end() - 2);
      b_dims_.erase(b_dims_.begin(), b_dims_.end() - 2);
      c_dims_ = {a_dims_[0], b_dims_[1]};
      return;
    }
    pad_batch(a_dims_, a_strides_, c_dims_.size());
    pad_batch(b_dims_, b_strides_, c_dims_.size());
    dst_strides_ = strides_for_reader(lowering_, epilogue_.result);
    if (is_faster_transposed()) turn();
  }

  // oneDNN copies an `a` whose columns are dense into rows. With few columns in `b` this costs more
  // than the same product transposed, b' @ a', which copies b: gradients of values in attention
  // take 0.8 of the time. One matrix in bf16 on tiles is read where it lies, or copied
  // (OperandReader::reads_columns).
  bool is_faster_transposed() const {
    const size_t rank = c_dims_.size();
    const bool is_read = rank == 2 && computes_in_tiles() && operands_.b_type == ElementType::kBf16;
    const bool is_alone = epilogue_.nodes.empty() && product_.bias == kNone && !operands_.int8 &&
                          !operands_.packs_b && !operands_.packs_in_run && !is_read;
    return is_alone && c_dims_[rank - 2] > c_dims_[rank - 1] && a_strides_[rank - 1] != 1 &&
           b_strides_[rank - 1] == 1;
  }

  void turn() {
    is_transposed_ = true;
    std::swap(a_, b_);
    std::swap(a_dims_, b_dims_);
    std::swap(a_strides_, b_strides_);
    for (Dims* axes : {&a_dims_, &a_strides_, &b_dims_, &b_strides_})
      swap_last(*axes);
    Dims transposed_dims = c_dims_;
    swap_last(transposed_dims);
    dst_strides_ = row_major_strides(transposed_dims);
    swap_last(dst_strides_);
  }

  static void pad_batch(Dims& dims, Dims& strides, size_t rank) {
    int64_t outer = dims[0] * strides[0];
    while (dims.size() < rank) {
      dims.insert(dims.begin(), 1);
      strides.insert(strides.begin(), outer);
    }
  }

  Lowering& lowering_;
  const Product& product_;
  const Node& node_;
  const ProductOperands operands_;
  const Epilogue& epilogue_;
  View a_, b_;
  int bias_;
  bool is_transposed_ = false;
  Dims a_dims_, a_strides_, b_dims_, b_strides_, c_dims_, dst_strides_;
  Fused fused_;
  dnnl::matmul::primitive_desc pd_;
};

// A kernel for the product with what follows, or for the product alone; not emitted yet.
struct Form {
  std::shared_ptr<Matmul> matmul;
  std::string why_not = "nothing follows";

  bool is_made() const { return why_not.empty(); }
  bool is_gemm() const { return is_made() && matmul->is_gemm(); }
};

Form describe(const ProductSite& site, const ProductOperands& operands, const Epilogue& epilogue) {
  Form form{std::make_shared<Matmul>(site, operands, epilogue)};
  form.why_not = form.matmul->describe(epilogue.nodes.empty());
  return form;
}

struct Forms {
  Form whole, alone;  // `alone` is described only where `whole` is not taken
};

// oneDNN's gemm takes 35 ms to make its kernels when a process first needs one. So a newer kernel
// for the product alone is taken before a gemm for the whole.
Forms describe_forms(const ProductSite& site, const ProductOperands& operands) {
  Forms forms;
  if (!site.epilogue.nodes.empty()) forms.whole = describe(site, operands, site.epilogue);
  if (forms.whole.is_made() && !forms.whole.is_gemm()) return forms;
  forms.alone = describe(site, operands, site.alone);
  if (forms.whole.is_gemm() && !forms.alone.is_gemm())
    forms.whole.why_not = "only gemm takes along what follows";
  return forms;
}

// Where there is gemm alone: as row-major matrices, if these have a newer kernel. The copies are
// won back (heads of 64 in thirds of rows, 4 to 256 tokens: 0.8 to 0.93 of the time).
Forms without_gemm(const ProductSite& site, const ProductOperands& found) {
  Forms forms = describe_forms(site, found);
  if (!forms.alone.is_gemm() || found.int8 || found.packs_b || found.packs_in_run) return forms;
  ProductOperands copied = found;
  for (View* view : {&copied.b, &copied.a}) {
    if (is_row_major(*view)) continue;
    view->strides = row_major_strides(view->dims);
    if (describe(site, copied, site.alone).is_gemm()) continue;
    Lowering& lowering = site.lowering;
    if (!is_row_major(found.b)) copied.b = lowering.read_row_major(site.product.b, found.b.type);
    if (view == &copied.a) copied.a = lowering.read_row_major(site.product.a, found.a.type);
    return describe_forms(site, copied);
  }
  return forms;
}

Offer offer_form(const Form& form) {
  if (!form.is_made()) return refused(form.why_not);
  return accepted([matmul = form.matmul] { matmul->emit(); });
}

constexpr Implementation<Forms> kForms[] = {
    {"onednn + epilogue", [](const Forms& forms) { return offer_form(forms.whole); }},
    {"onednn", [](const Forms& forms) { return offer_form(forms.alone); }},
};

}  // namespace

Names onednn_product_form_names() {
  return names_of(kForms);
}

Offer offer_onednn_product(const ProductSite& site) {
  return accepted([&site] {
    const Forms forms = without_gemm(site, read_product_operands(site));
    const std::span<const Implementation<Forms>> list(kForms);
    choose<Forms>(site.lowering, forms, list.subspan(site.epilogue.nodes.empty() ? 1 : 0));
  });
}

}  // namespace tenon::onednn
