// SPDX-License-Identifier: Apache-2.0
// A backend: products and convolutions of its own in float32, with bias, residual sum and Relu in
// their epilogues; everything else is the kit's.
#include "tenon/sdk/backend/cpu_backend.hpp"
#include "tenon/sdk/backend/weights.hpp"

#include "products.hpp"

namespace plain {

using namespace tenon::backend;  // NOLINT: the kit is what this file is written in
using tenon::Result;
using tenon::Status;
using Floats = std::vector<float>;
using Cache = WeightCache<std::string, Floats>;

bool is_float(const Graph& graph, const Node& node) {
  for (const std::vector<int>* list : {&node.inputs, &node.outputs})
    for (int value : *list)
      if (value != kNone && graph.value(value).dtype != TN_F32) return false;
  return true;
}

// At most a bias, a sum and Relu, in this order: as Ending has them.
bool takes(const Graph& graph, const Node& node, const EpilogueOp& op, const Epilogue& so_far) {
  using Kind = EpilogueOp::Kind;
  if (!so_far.ops.empty() && so_far.ops.back().kind >= op.kind) return false;
  const std::string& name = graph.node(op.node).op;
  if (op.kind == Kind::kUnary) return name == "Relu";
  if (op.kind == Kind::kBias) return node.input(2) == kNone;
  return name == "Add" && graph.value(op.other).dims == graph.value(so_far.result).dims;
}

// Where an ending's operands are among what the step reads.
struct Endings {
  size_t bias = SIZE_MAX, other = SIZE_MAX;
  bool is_by_row = false, has_relu = false;

  Endings(const Node& node, const Epilogue& epilogue, bool by_row) : is_by_row(by_row) {
    size_t at = node.inputs.size();
    if (node.input(2) != kNone) bias = 2;
    for (const EpilogueOp& op : epilogue.ops) {
      if (op.kind == EpilogueOp::Kind::kUnary) has_relu = true;
      if (op.kind == EpilogueOp::Kind::kBias) bias = at++;
      if (op.kind == EpilogueOp::Kind::kBinary) other = at++;
    }
  }
  // Of the part of the result that begins `at` floats in, and of the bias `channel` in.
  Ending at(const Call& call, int64_t at, int64_t channel = 0) const {
    const auto *b = call.input<float>(bias), *o = call.input<float>(other);
    return {b ? b + channel : b, o ? o + at : o, is_by_row, has_relu};
  }
};

// ---- products

// How a MatMul or Gemm is a stack of products; no k where it is none that is computed here.
struct Stack {
  Product product;
  int64_t count = 1, step_a = 0, step_b = 0;  // floats from one product's operand to the next's
};

Stack stack_of(const Graph& graph, const Node& node) {
  const Dims &a = graph.value(node.inputs[0]).dims, &b = graph.value(node.inputs[1]).dims;
  Stack made;
  Product& p = made.product;
  if (a.size() < 2 || b.size() < 2) return made;
  p.transpose_a = node.integer("transA", 0) != 0;
  p.transpose_b = node.integer("transB", 0) != 0;
  p.alpha = static_cast<float>(node.real("alpha", 1));
  p.m = a[a.size() - (p.transpose_a ? 1 : 2)];
  p.n = b[b.size() - (p.transpose_b ? 2 : 1)];
  int64_t k = a[a.size() - (p.transpose_a ? 2 : 1)];
  int64_t n_a = tenon::element_count(a) / std::max<int64_t>(p.m * k, 1);
  int64_t n_b = tenon::element_count(b) / std::max<int64_t>(p.n * k, 1);
  if (n_b == 1) {
    p.m *= n_a;  // one matrix for all rows
  } else {
    if (!std::equal(a.begin(), a.end() - 2, b.begin(), b.end() - 2)) return made;
    made.count = n_b;
    made.step_a = p.m * k;
    made.step_b = p.n * k;
  }
  p.k = k;
  p.step_c = p.n;
  return made;
}

std::string why_no_product(const Graph& graph, const Node& node) {
  if (!is_float(graph, node)) return "not float32";
  bool has_c = node.op == "Gemm" && node.input(2) != kNone;
  if (has_c && (node.real("beta", 1) != 1 || graph.value(node.inputs[2]).dims.size() != 1 ||
                graph.value(node.inputs[2]).count() != graph.value(node.outputs[0]).dims[1]))
    return "its C is no bias";
  return stack_of(graph, node).product.k > 0 ? "" : "operands that broadcast";
}

Result<Step> product_step(Cache& cache,
                          const Graph& graph,
                          const Node& node,
                          const Epilogue& epilogue) {
  Stack stack = stack_of(graph, node);
  const Product& p = stack.product;
  const int64_t n_packed = packed_floats(p.k, p.n);
  Step step;
  step.kernel = "plain:product";
  Cache::Kept weights;
  if (const Value& b = graph.value(node.inputs[1]); b.data && stack.count == 1) {
    std::string form = tenon::cat("product ", p.k, " ", p.n, p.transpose_b ? " transposed" : "");
    weights = cache.get({b.data, b.bytes(), b.constant.identity()}, form, [&] {
      auto made = std::make_shared<Floats>(static_cast<size_t>(n_packed));
      pack(p, static_cast<const float*>(b.data), made->data());
      return made;
    });
  } else {
    step.scratch_bytes = static_cast<uint64_t>(n_packed * stack.count) * sizeof(float);
  }
  Endings endings(node, epilogue, false);
  step.work = [stack, weights, endings, n_packed](const Call& call) -> Status {
    const Product& each = stack.product;
    const auto *a = call.input<float>(0), *b = call.input<float>(1);
    float* packed = weights ? weights->data() : static_cast<float*>(call.scratch);
    if (!weights)
      tenon::parallel_for(
          call.ctx, static_cast<uint64_t>(stack.count), 1, [&](uint64_t i, uint64_t end) {
            for (auto at = static_cast<int64_t>(i); at < static_cast<int64_t>(end); ++at)
              pack(each, b + at * stack.step_b, packed + at * n_packed);
          });
    const auto rows = static_cast<uint64_t>(each.m * stack.count);
    tenon::parallel_for(call.ctx, rows, 24, [&](uint64_t begin, uint64_t end) {
      for (auto row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end);) {
        const int64_t at = row / each.m, first = row % each.m;
        const int64_t last = std::min(each.m, first + static_cast<int64_t>(end) - row);
        multiply(each, a + at * stack.step_a, packed + at * n_packed,
                 call.output<float>() + at * each.m * each.n,
                 endings.at(call, at * each.m * each.n), first, last);
        row += last - first;
      }
    });
    return {};
  };
  return step;
}

// ---- convolutions

Convolution convolution_of(const Graph& graph, const Node& node) {
  const Dims &x = graph.value(node.inputs[0]).dims, &w = graph.value(node.inputs[1]).dims;
  const Dims& y = graph.value(node.outputs[0]).dims;
  Convolution conv{x[0], x[1], x[2], x[3], w[0], w[2], w[3], node.integer("group", 1), y[2], y[3]};
  Dims pads = node.integers("pads", {0, 0, 0, 0}), strides = node.integers("strides", {1, 1});
  Dims dilations = node.integers("dilations", {1, 1});
  for (size_t i = 0; i < 2; ++i) {
    conv.pad[i] = pads[i];
    conv.stride[i] = strides[i];
    conv.dilation[i] = dilations[i];
  }
  return conv;
}

std::string why_no_convolution(const Graph& graph, const Node& node) {
  if (!is_float(graph, node)) return "not float32";
  if (graph.value(node.inputs[0]).dims.size() != 4) return "not two-dimensional";
  return node.text("auto_pad", "NOTSET") == "NOTSET" ? "" : "auto_pad";
}

Result<Step> convolution_step(const Graph& graph, const Node& node, const Epilogue& epilogue) {
  const Convolution conv = convolution_of(graph, node);
  Endings endings(node, epilogue, true);
  Step step;
  step.kernel = "plain:convolution";
  step.work = [conv, endings](const Call& call) -> Status {
    const int64_t filters = conv.filters / conv.groups, positions = conv.positions(),
                  depth = conv.depth();
    const int64_t strips = (positions + kStrip - 1) / kStrip;
    const int64_t plane = conv.channels / conv.groups * conv.height * conv.width;
    const auto pieces = static_cast<uint64_t>(conv.images * conv.groups * strips);
    // One strip of positions at a time: its windows are packed and multiplied while they are in
    // cache.
    tenon::parallel_for(call.ctx, pieces, 1, [&](uint64_t begin, uint64_t end) {
      Floats packed(static_cast<size_t>(depth * kStrip));
      for (auto piece = static_cast<int64_t>(begin); piece < static_cast<int64_t>(end); ++piece) {
        const int64_t both = piece / strips, group = both % conv.groups;  // both: image and group
        const int64_t first = piece % strips * kStrip, at = both * filters * positions + first;
        pack_windows(conv, call.input<float>(0) + both * plane, packed.data(), first);
        const Product product{filters, std::min(kStrip, positions - first), depth, positions};
        multiply(product, call.input<float>(1) + group * filters * depth, packed.data(),
                 call.output<float>() + at, endings.at(call, at, group * filters), 0, filters);
      }
    });
    return {};
  };
  return step;
}

// ---- the component

class Plain : public CpuBackend<Plain> {
 public:
  static constexpr std::string_view kDevice = "CPU, plain C++";
  static Result<Plain> create(tn_ctx* ctx, const tenon::Options&) { return Plain(ctx); }
  Kernels kernels(const tenon::Options&) const {
    auto product = [cache = cache_](const Graph& graph, const Node& node,
                                    const Epilogue& epilogue) {
      return product_step(*cache, graph, node, epilogue);
    };
    return {{"MatMul", why_no_product, -1, takes, product},
            {"Gemm", why_no_product, -1, takes, product},
            {"Conv", why_no_convolution, 1, takes, convolution_step}};
  }

 private:
  using CpuBackend::CpuBackend;
  std::shared_ptr<Cache> cache_ = std::make_shared<Cache>();
};

}  // namespace plain

TENON_BACKEND(plain,
              plain::Plain,
              "com.example.plain",
              "products and convolutions in plain C++, the rest by the SDK's kit",
              "{}")
