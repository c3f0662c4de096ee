// SPDX-License-Identifier: Apache-2.0
// MatMulInteger in our own kernel. Known weights are packed once, others when the step runs; zero
// points are read when it runs.

#include <string>
#include <utility>

#include "cpu.hpp"
#include "kernels/int8_product.h"
#include "matmul_integer.hpp"

namespace tenon::onednn {
namespace {

constexpr uint8_t kFlip = 0x80;  // makes unsigned quantized values signed ones, 128 less

// Which matrix of an operand each matrix of the result is made of: dims without the last two.
std::vector<int64_t> matrices(const Dims& dims, const Dims& result) {
  const size_t shift = result.size() - dims.size();
  std::vector<int64_t> made = {0};
  for (size_t axis = 0; axis + 2 < result.size(); ++axis) {
    const int64_t extent = axis < shift ? 1 : dims[axis - shift];
    std::vector<int64_t> next;
    for (int64_t matrix : made)
      for (int64_t i = 0; i < result[axis]; ++i)
        next.push_back(matrix * extent + (extent == 1 ? 0 : i));
    made = std::move(next);
  }
  return made;
}

struct Batches {
  kernels::Int8ProductArgs args = {};   // of one product
  std::vector<int64_t> a = {}, b = {};  // the matrices of each
  ElementType a_type = ElementType::kU8, b_type = ElementType::kS8;
  bool is_packed = false;

  uint8_t flip() const { return b_type == ElementType::kU8 ? kFlip : 0; }

  // pointers: a, y, b, zero points of a and b, memory for one packed matrix
  void run(const kernels::Context& context, void* const* pointers) const {
    kernels::Int8ProductArgs call = args;
    call.a.zero = zero_point_at(pointers[3], a_type);
    call.b_zero = zero_point_at(pointers[4], b_type) - flip();
    int64_t packed = -1;
    for (size_t i = 0; i < a.size(); ++i) {
      call.a.quantized = static_cast<const uint8_t*>(pointers[0]) + a[i] * args.m * args.k;
      call.dst.data =
          static_cast<int32_t*>(pointers[1]) + static_cast<int64_t>(i) * args.m * args.n;
      call.b = static_cast<const int8_t*>(pointers[is_packed ? 2 : 5]);
      if (!is_packed && b[i] != packed) {
        kernels::pack_int8(static_cast<const uint8_t*>(pointers[2]) + b[i] * args.k * args.n,
                           args.n, 1, args.k, args.n, flip(), static_cast<int8_t*>(pointers[5]));
        packed = b[i];
      }
      kernels::int8_product(context, call);
    }
  }
};

void build(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const View a = lowering.read_row_major(node.inputs[0], graph.values[node.inputs[0]].type);
  const View b = lowering.read_row_major(node.inputs[1], graph.values[node.inputs[1]].type);
  const int64_t k = a.dims.back(), n = b.dims.back();
  const Dims& dims = graph.values[node.outputs[0]].dims;
  Batches work{.a_type = a.type, .b_type = b.type};
  const bool is_matrix = b.count() == k * n;
  work.args.m = is_matrix ? a.count() / k : a.dims[a.dims.size() - 2];
  work.args.n = work.args.dst_stride = n;
  work.args.k = work.args.a.stride = k;
  work.args.a.is_signed = a.type == ElementType::kS8;
  work.args.dst.type = ElementType::kI32;
  work.a = is_matrix ? std::vector<int64_t>{0} : matrices(a.dims, dims);
  work.b = is_matrix ? std::vector<int64_t>{0} : matrices(b.dims, dims);
  const View y = lowering.make(node.outputs[0], ElementType::kI32, row_major_strides(dims));
  const int64_t packed = kernels::packed_int8_bytes(k, n);
  work.is_packed = is_matrix && lowering.is_constant_view(b);
  Step step{.name = node.name, .kernel = "tenon:int8_product", .always_succeeds = true};
  step.flops = 2.0 * static_cast<double>(y.count() * k);
  step.bytes = static_cast<double>(a.bytes() + b.bytes() + y.bytes());
  step.places = {place_of(a), place_of(y), place_of(b), {}, {}, {}};
  for (size_t i : {2, 3}) {
    const int zero = node.input(i);
    if (zero == kNone) continue;
    step.places[i + 1] = place_of(lowering.read_row_major(zero, graph.values[zero].type));
  }
  if (work.is_packed) {
    const auto* quantized = static_cast<const uint8_t*>(lowering.constant_data(b));
    const std::string form =
        "panels of " + std::to_string(n) + (work.flip() != 0 ? " flipped" : "");
    std::shared_ptr<const void> data =
        lowering.weights().made(quantized, b.bytes(), form, packed, [&](void* to) {
          kernels::pack_int8(quantized, n, 1, k, n, work.flip(), static_cast<int8_t*>(to));
        });
    step.places[2] = place_of(lowering.make_constant(ElementType::kS8, {packed}, data));
  } else {
    step.places[5] = {lowering.scratch(packed), 0};
  }
  step.kernel_function = [work](const kernels::Context& context,
                                void* const* pointers) -> const char* {
    work.run(context, pointers);
    return nullptr;
  };
  lowering.add_step(std::move(step));
}

}  // namespace

Offer offer_int8_matmul_integer(const IntegerSite& site) {
  if (adds_int8_exactly()) return refused("oneDNN's int8 sums are exact");
  return accepted([&site] { build(site.lowering, site.index); });
}

}  // namespace tenon::onednn
