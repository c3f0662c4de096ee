// SPDX-License-Identifier: Apache-2.0
// MatMulInteger by oneDNN, with zero points that may be known only when it runs, and
// DynamicQuantizeLinear, which makes them. oneDNN takes the second operand signed: bytes without a
// sign lose 128, and so does their zero point.

#include "matmul_integer.hpp"

#include <optional>

#include "cpu.hpp"
#include "dense.hpp"
#include "kernels/int8_product.h"
#include "kernels/quantize.h"
#include "lists.hpp"
#include "lowering/epilogue.hpp"
#include "primitive.hpp"

namespace tenon::onednn {
namespace {

using Desc = dnnl::memory::desc;

void flip(const uint8_t* from, int64_t n, uint8_t* to) {
  for (int64_t i = 0; i < n; ++i)
    to[i] = static_cast<uint8_t>(from[i] ^ 0x80U);
}

// The operand's bytes as signed numbers, 128 less.
View flipped(Lowering& lowering, const std::string& name, const View& view) {
  View made = view;
  made.type = ElementType::kS8;
  made.offset = 0;
  const int64_t n = view.count();
  if (lowering.is_constant_view(view)) {
    std::shared_ptr<void> data = aligned_bytes(n);
    flip(static_cast<const uint8_t*>(lowering.constant_data(view)), n,
         static_cast<uint8_t*>(data.get()));
    return lowering.make_constant(ElementType::kS8, view.dims, data);
  }
  made.buffer = lowering.scratch(n);
  Step step{.name = name + " sign", .kernel = "tenon:sign"};
  step.places = {place_of(view), place_of(made)};
  step.kernel_function = [n](const kernels::Context&, void* const* pointers) -> const char* {
    flip(static_cast<const uint8_t*>(pointers[0]), n, static_cast<uint8_t*>(pointers[1]));
    return nullptr;
  };
  lowering.add_step(std::move(step));
  return made;
}

// One i32 for oneDNN from the node's zero point, less `shift`; nothing when that is known to be 0.
std::optional<Place> zero_point(Lowering& lowering, const Node& node, size_t input, int32_t shift) {
  const int value = node.input(input);
  if (value == kNone || lowering.is_constant(value)) {
    int32_t known = -shift;
    if (value != kNone) known += static_cast<int32_t>(lowering.constant_integers(value)[0]);
    return known == 0 ? std::nullopt : std::optional(lowering.integers({known}));
  }
  const ElementType type = lowering.graph().values[value].type;
  View given = lowering.read_row_major(value, type);
  Place made{lowering.scratch(4), 0};
  Step step{.name = node.name + " zero point", .kernel = "tenon:zero_point"};
  step.places = {place_of(given), made};
  step.kernel_function = [type, shift](const kernels::Context&,
                                       void* const* pointers) -> const char* {
    *static_cast<int32_t*>(pointers[1]) = zero_point_at(pointers[0], type) - shift;
    return nullptr;
  };
  lowering.add_step(std::move(step));
  return made;
}

Desc batched(const View& view, size_t rank) {
  Dims dims = view.dims;
  dims.insert(dims.begin(), rank - dims.size(), 1);
  return {dims, dnnl_type(view.type), row_major_strides(dims)};
}

// What makes floating-point numbers of the sums: Cast to f32 and Mul by the scales of both
// operands, one for the whole result or one for each column.
struct Scaling {
  int cast = kNone;
  int mul = kNone;
  int scales = kNone;  // a value
};

int only_user(const Graph& graph, int value, const char* op) {
  int user = graph.only_user(value);
  return user != kNone && graph.nodes[user].op == op ? user : kNone;
}

std::optional<Scaling> find_scaling(Lowering& lowering, int product) {
  const Graph& graph = lowering.graph();
  const int sums = graph.nodes[product].outputs[0];
  Scaling found{.cast = only_user(graph, sums, "Cast")};
  if (found.cast == kNone) return std::nullopt;
  const int real = graph.nodes[found.cast].outputs[0];
  if (graph.values[real].type != ElementType::kF32) return std::nullopt;
  found.mul = only_user(graph, real, "Mul");
  if (found.mul == kNone) return std::nullopt;
  const Node& mul = graph.nodes[found.mul];
  found.scales = mul.inputs[mul.inputs[0] == real ? 1 : 0];
  if (!ensure_available(lowering, found.scales)) return std::nullopt;
  const Value& scales = graph.values[found.scales];
  const Dims& dims = graph.values[sums].dims;
  const bool is_one = scales.count() == 1;
  const bool is_row =
      !scales.dims.empty() && scales.dims.back() == scales.count() && scales.count() == dims.back();
  if (graph.values[mul.outputs[0]].dims != dims || !(is_one || is_row)) return std::nullopt;
  return found;
}

class IntegerProduct {
 public:
  IntegerProduct(Lowering& lowering, int index)
      : lowering_(lowering), node_(lowering.graph().nodes[index]), index_(index) {
    const Graph& graph = lowering.graph();
    a_ = lowering.read_row_major(node_.inputs[0], graph.values[node_.inputs[0]].type);
    b_ = lowering.read_row_major(node_.inputs[1], graph.values[node_.inputs[1]].type);
    const int32_t shift = b_.type == ElementType::kU8 ? 128 : 0;
    if (shift != 0) b_ = flipped(lowering, node_.name, b_);
    a_zero_ = zero_point(lowering, node_, 2, 0);
    b_zero_ = zero_point(lowering, node_, 3, shift);
    choose_dims(graph.values[node_.outputs[0]].dims);
  }

  // The sums as they are, i32.
  void build() {
    const Epilogue epilogue = empty_epilogue(lowering_, index_);
    Fused fused = fused_with(epilogue);
    fused.dst.type = ElementType::kI32;
    const dnnl::matmul::primitive_desc pd = describe(epilogue, fused);
    if (std::string why = why_no_kernel(pd, true); !why.empty())
      throw CompileError(node_.name + ": " + why);
    emit(epilogue, std::move(fused), pd, {});
  }

  // The scaled sums with what follows them: nothing of 32 bits is stored.
  Offer offer(const Scaling& scaling, const Epilogue& epilogue) {
    Fused fused = fused_with(epilogue);
    if (!fused.why_not.empty()) return refused(fused.why_not);
    const bool is_one = lowering_.graph().values[scaling.scales].count() == 1;
    const int id = is_one ? DNNL_ARG_SRC : DNNL_ARG_WEIGHTS;
    fused.attr.set_scales_mask(id, is_one ? 0 : 1 << (dims_.size() - 1));
    const dnnl::matmul::primitive_desc pd = describe(epilogue, fused);
    if (std::string why = why_no_kernel(pd, true); !why.empty()) return refused(std::move(why));
    return accepted([this, &scaling, &epilogue, fused, pd, id] {
      const View scales = lowering_.read_row_major(scaling.scales, ElementType::kF32);
      emit(epilogue, fused, pd,
           {{DNNL_ARG_ATTR_SCALES | id, place_of(scales), vector_descriptor(scales.count())}});
      lowering_.mark_done(scaling.cast);
      lowering_.mark_done(scaling.mul);
      mark_absorbed(lowering_, epilogue);
    });
  }

 private:
  // With one known matrix the rows of all batches are one product.
  void choose_dims(const Dims& result) {
    dims_ = result;
    packs_ = lowering_.is_constant_view(b_) && b_.count() == b_.dims.back() * a_.dims.back();
    if (!packs_) {
      a_desc_ = batched(a_, dims_.size());
      b_desc_ = batched(b_, dims_.size());
      return;
    }
    const int64_t k = a_.dims.back();
    const int64_t n = b_.dims.back();
    dims_ = {a_.count() / k, n};
    a_desc_ = Desc({dims_[0], k}, dnnl_type(a_.type), dnnl::memory::dims{k, 1});
    b_desc_ = Desc({k, n}, dnnl_type(b_.type), dnnl::memory::dims{n, 1});
  }

  Fused fused_with(const Epilogue& epilogue) {
    const Dims& result = lowering_.graph().values[epilogue.result].dims;
    Fused fused = fuse(lowering_, epilogue,
                       {.result_strides = row_major_strides(result),
                        .dims = dims_,
                        .channel_axis = static_cast<int>(dims_.size()) - 1,
                        .sources = {place_of(a_), place_of(b_)}});
    if (a_zero_) fused.attr.set_zero_points_mask(DNNL_ARG_SRC, 0);
    if (b_zero_) fused.attr.set_zero_points_mask(DNNL_ARG_WEIGHTS, 0);
    return fused;
  }

  dnnl::matmul::primitive_desc describe(const Epilogue& epilogue, const Fused& fused) const {
    const Desc dst = descriptor(fused.dst, dims_, row_major_strides(dims_));
    const Desc b =
        packs_ ? Desc(b_desc_.get_dims(), b_desc_.get_data_type(), dnnl::memory::format_tag::any)
               : b_desc_;
    if (epilogue.bias == kNone) return {lowering_.engine(), a_desc_, b, dst, fused.attr, kMayFail};
    Dims row(dims_.size(), 1);
    row.back() = dims_.back();
    const Desc bias(row, dnnl::memory::data_type::f32, row_major_strides(row));
    return {lowering_.engine(), a_desc_, b, bias, dst, fused.attr, kMayFail};
  }

  void emit(const Epilogue& epilogue,
            Fused fused,
            const dnnl::matmul::primitive_desc& pd,
            std::vector<Argument> arguments) {
    for (const Argument& operand : bind(lowering_, epilogue, fused))
      arguments.push_back(operand);
    auto zero = [&](int id, const std::optional<Place>& place) {
      if (!place) return;
      arguments.push_back({DNNL_ARG_ATTR_ZERO_POINTS | id, *place,
                           vector_descriptor(1, dnnl::memory::data_type::s32)});
    };
    zero(DNNL_ARG_SRC, a_zero_);
    zero(DNNL_ARG_WEIGHTS, b_zero_);
    arguments.push_back({DNNL_ARG_SRC, place_of(a_), a_desc_});
    const Place b = packs_ ? lowering_.packed(b_, b_desc_, pd.weights_desc()) : place_of(b_);
    arguments.push_back({DNNL_ARG_WEIGHTS, b, pd.weights_desc()});
    if (epilogue.bias != kNone) {
      View bias = lowering_.read_row_major(epilogue.bias, ElementType::kF32);
      arguments.push_back({DNNL_ARG_BIAS, place_of(bias), pd.bias_desc()});
    }
    if (fused.dst.buffer == kNone) fused.dst.buffer = lowering_.scratch(fused.dst.bytes());
    arguments.push_back({DNNL_ARG_DST, place_of(fused.dst), pd.dst_desc()});
    lowering_.add_primitive<dnnl::matmul>(
        node_.name, pd, std::move(arguments),
        2.0 * static_cast<double>(element_count(dims_) * a_.dims.back()));
    lowering_.set_view(epilogue.result, fused.dst);
  }

  Lowering& lowering_;
  const Node& node_;
  int index_;
  bool packs_ = false;
  View a_, b_;
  std::optional<Place> a_zero_, b_zero_;
  Dims dims_;  // of the result as the primitive sees it
  Desc a_desc_, b_desc_;
};

struct FormSite {
  IntegerProduct& product;
  std::optional<Scaling> scaling;
  Epilogue epilogue, alone;  // behind the scaled sums
};

constexpr Implementation<FormSite> kForms[] = {
    {"onednn + scales + epilogue",
     [](const FormSite& form) { return form.product.offer(*form.scaling, form.epilogue); }},
    {"onednn + scales",
     [](const FormSite& form) { return form.product.offer(*form.scaling, form.alone); }},
    {"onednn", [](const FormSite& form) { return accepted([&form] { form.product.build(); }); }},
};

Offer offer_onednn(const IntegerSite& site) {
  return accepted([&site] {
    Lowering& lowering = site.lowering;
    IntegerProduct product(lowering, site.index);
    FormSite form{product, find_scaling(lowering, site.index), {}, {}};
    if (form.scaling) {
      const Node& node = lowering.graph().nodes[site.index];
      const Dims& dims = lowering.graph().values[node.outputs[0]].dims;
      form.epilogue = find_epilogue(lowering, form.scaling->mul, static_cast<int>(dims.size()) - 1);
      form.alone = empty_epilogue(lowering, form.scaling->mul);
    }
    const std::span<const Implementation<FormSite>> forms(kForms);
    const size_t first = !form.scaling ? 2 : (form.epilogue.nodes.empty() ? 1 : 0);
    choose<FormSite>(lowering, form, forms.subspan(first));
  });
}

constexpr Implementation<IntegerSite> kMatMulInteger[] = {
    {"int8 gemm", offer_int8_matmul_integer},
    {"onednn", offer_onednn},
};

}  // namespace

Names matmul_integer_form_names() {
  return names_of(kForms);
}

Names matmul_integer_names() {
  return names_of(kMatMulInteger);
}

std::string refuse_matmul_integer(const Graph& graph, const Node& node) {
  const bool is_long =
      graph.values[node.inputs[0]].dims.back() > kernels::kMostInt8Depth && !adds_int8_exactly();
  if (is_long) return "sums of more than 32768 products on a CPU without VNNI";
  for (size_t i : {0, 1}) {
    const Value& value = graph.values[node.inputs[i]];
    if (value.type != ElementType::kU8 && value.type != ElementType::kS8) return "only bytes";
    if (value.dims.size() < 2 || value.dims.size() > 6) return "only two to six axes";
    bool has_zero = node.input(i + 2) != kNone;
    if (!has_zero) continue;
    const Value& zero = graph.values[node.inputs[i + 2]];
    if (zero.count() != 1 || zero.type != value.type) return "zero points per row or column";
  }
  return {};
}

void lower_matmul_integer(Lowering& lowering, int index) {
  choose<IntegerSite>(lowering, {lowering, index}, kMatMulInteger);
}

std::string refuse_dynamic_quantize(const Graph& graph, const Node& node) {
  if (node.outputs.size() != 3) return "expected three results";
  for (int output : node.outputs) {
    if (output == kNone) return "expected three results";
  }
  return graph.values[node.inputs[0]].type == ElementType::kF32 ? "" : "only f32";
}

void lower_dynamic_quantize(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const int64_t n = graph.values[graph.nodes[index].inputs[0]].count();
  lower_dense(lowering, index, "tenon:dynamic_quantize",
              [n](const kernels::Context& context, void* const* pointers) -> const char* {
                kernels::dynamic_quantize(context, static_cast<const float*>(pointers[0]), n,
                                          static_cast<uint8_t*>(pointers[1]),
                                          static_cast<float*>(pointers[2]),
                                          static_cast<uint8_t*>(pointers[3]));
                return nullptr;
              });
}

}  // namespace tenon::onednn
