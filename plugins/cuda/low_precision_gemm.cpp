// SPDX-License-Identifier: Apache-2.0
// With integers a - za and b: sum (a - za) b = sum a b - za * sum b, and the second is a constant
// of each column where b is. cuBLASLt multiplies 8-bit numbers where both operands lie along k, so
// b is transposed; where it is constant, when the plan is made.
#include "low_precision_gemm.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "handlers/handlers.hpp"
#include "quantization.hpp"

namespace tenon::cuda {
namespace {

constexpr int64_t kMostSum = std::numeric_limits<int32_t>::max();

// An operand as it is stored. Unsigned numbers are shifted by 128 to signed ones.
struct Operand {
  int stored = kNone;
  QuantParams params;
  bool is_unsigned = false;

  int64_t shift() const { return is_unsigned ? 128 : 0; }
  int64_t zero() const { return params.zeros[0] - shift(); }
};

class Joiner {
 public:
  Joiner(const Imported& from, const Target& target, std::vector<std::string>* notes)
      : from_(from), target_(target), notes_(notes) {}

  Imported run() {
    made_ = from_;
    made_.nodes.clear();
    for (const NodeInfo& node : from_.nodes) {
      bool is_product = node.op == "MatMul" || node.op == "Gemm";
      if (!is_product || !is_quantized(node, 0) || !is_quantized(node, 1)) {
        made_.nodes.push_back(node);
        continue;
      }
      Operand a, b;
      std::string why = why_not(node, &a, &b);
      if (why.empty()) why = join(node, a, b);
      if (why.empty()) continue;
      notes_->push_back(
          cat("node ", node.name, ": its 8-bit operands are multiplied as floats: ", why));
      made_.nodes.push_back(node);
    }
    drop_unused();
    made_.link();
    return std::move(made_);
  }

 private:
  const NodeInfo* producer(int value) const {
    int at = from_.value(value).producer;
    return at == kNone ? nullptr : &from_.nodes[static_cast<size_t>(at)];
  }

  bool is_quantized(const NodeInfo& node, size_t i) const {
    const NodeInfo* made_by = producer(node.inputs[i]);
    if (!made_by || made_by->op != "DequantizeLinear" || made_by->expr.empty()) return false;
    uint32_t dtype = from_.value(made_by->inputs[0]).dtype;
    return dtype == TN_I8 || dtype == TN_U8 || is_float8(dtype);
  }

  std::string read(int value, Operand* out) const {
    const NodeInfo& made_by = *producer(value);
    out->stored = made_by.inputs[0];
    out->is_unsigned = from_.value(out->stored).dtype == TN_U8;
    return read_params(from_, made_by, &out->params);
  }

  static bool is_transposed(const NodeInfo& node) {
    return node.op == "Gemm" && node.source.attr_int("transB", 0) != 0;
  }

  std::string why_not(const NodeInfo& node, Operand* a, Operand* b) const {
    if (node.op == "Gemm" && node.source.attr_int("transA", 0) != 0)
      return "a transposed first operand";
    if (std::string why = read(node.inputs[0], a); !why.empty()) return why;
    if (std::string why = read(node.inputs[1], b); !why.empty()) return why;
    if (std::string why = why_not_types(from_.value(a->stored), from_.value(b->stored));
        !why.empty()) {
      return why;
    }
    std::string why = why_not_params(node, *a, *b);
    return why.empty() ? why_no_product(node, *a, *b) : why;
  }

  std::string why_no_product(const NodeInfo& node, const Operand& a, const Operand& b) const {
    if (!target_.why_no_product) return {};
    const ValueInfo& left = from_.value(a.stored);
    const ValueInfo& right = from_.value(b.stored);
    Dims transposed = right.dims;
    if (!is_transposed(node))
      std::swap(transposed[transposed.size() - 1], transposed[transposed.size() - 2]);
    Product form = batched_product(left.dims, transposed, false, true);
    bool is_floating = is_float8(left.dtype);
    form.dtype = is_floating ? left.dtype : uint32_t{TN_I8};
    form.b_dtype = is_floating ? right.dtype : uint32_t{TN_I8};
    form.out_dtype = is_floating ? TN_F32 : TN_I32;
    return target_.why_no_product(form);
  }

  std::string why_not_types(const ValueInfo& a, const ValueInfo& b) const {
    if (is_float8(a.dtype) != is_float8(b.dtype)) return "an integer and a floating-point operand";
    if (!is_float8(a.dtype)) return {};
    if (target_.architecture < 89) {
      return cat("8-bit floats need compute capability 8.9 or newer, the device has ",
                 target_.architecture / 10, ".", target_.architecture % 10);
    }
    return a.dtype == kF8E5M2 && b.dtype == kF8E5M2 ? "both operands are float8_e5m2" : "";
  }

  std::string why_not_params(const NodeInfo& node, const Operand& a, const Operand& b) const {
    const ValueInfo& right = from_.value(b.stored);
    size_t column_axis = right.dims.size() - (is_transposed(node) ? 2 : 1);
    if (a.params.scales.size() != 1 || a.params.zeros.size() != 1)
      return "the first operand has more than one scale";
    if (b.params.scales.size() != 1 && (b.params.axis != column_axis || right.dims.size() != 2))
      return "scales of the second operand that are not those of its columns";
    bool is_symmetric = std::all_of(b.params.zeros.begin(), b.params.zeros.end(),
                                    [&](int64_t zero) { return zero == b.shift(); });
    if (!is_float8(right.dtype) && !is_symmetric)
      return "the second operand has zero points other than the middle";
    if (!is_float8(right.dtype) && a.zero() != 0 && !right.constant)
      return "a zero point with a computed second operand";
    auto [n, k] = columns_of(node, right.dims);
    int64_t step = is_float8(right.dtype) ? 16 : 4;
    if (n % step != 0 || k % step != 0)
      return cat("rows and columns of the second operand are no multiples of ", step);
    if (!is_float8(right.dtype) && k > kMostSum / 128 / (128 + std::abs(a.zero())))
      return "more terms than an int32 holds";
    std::vector<float> scales = scales_of(node, a, b);
    bool is_kept =
        std::all_of(scales.begin(), scales.end(), [](float scale) { return std::isnormal(scale); });
    return is_kept ? "" : "scales whose product float32 does not hold";
  }

  // What the sums are multiplied by: one number, or one for each column.
  static std::vector<float> scales_of(const NodeInfo& node, const Operand& a, const Operand& b) {
    double alpha = node.op == "Gemm" ? node.source.attr_float("alpha", 1) : 1;
    std::vector<float> scales;
    for (float scale : b.params.scales)
      scales.push_back(static_cast<float>(alpha * double{scale} * double{a.params.scales[0]}));
    return scales;
  }

  static std::pair<int64_t, int64_t> columns_of(const NodeInfo& node, const Dims& dims) {
    int64_t n = dims.back(), k = dims[dims.size() - 2];
    return is_transposed(node) ? std::pair(k, n) : std::pair(n, k);
  }

  int add_value(std::string name, uint32_t dtype, Dims dims, Tensor constant = {}) {
    ValueInfo value;
    value.name = std::move(name);
    value.dtype = dtype;
    value.dims = std::move(dims);
    value.is_known = true;
    if (constant) value.data = constant.data<const void>();
    value.constant = std::move(constant);
    made_.values.push_back(std::move(value));
    return static_cast<int>(made_.values.size()) - 1;
  }

  NodeInfo& add_node(const NodeInfo& of, std::string op, std::vector<int> in, int out) {
    NodeInfo node;
    node.source = of.source;
    node.op = std::move(op);
    node.name = of.name;
    node.inputs = std::move(in);
    node.outputs = {out};
    made_.nodes.push_back(std::move(node));
    return made_.nodes.back();
  }

  // The node that computes it, without an expression yet; no product, so no epilogue.
  NodeInfo& add_pointwise(const NodeInfo& of, std::vector<int> in, int out) {
    return add_node(of, "cuda.Rescaled", std::move(in), out);
  }

  // The stored numbers as signed ones.
  int as_signed(const NodeInfo& node, const Operand& of) {
    if (!of.is_unsigned) return of.stored;
    const ValueInfo& stored = from_.value(of.stored);
    int out = add_value(cat(stored.name, " signed"), TN_I8, stored.dims);
    backend::ProgramBuilder p;
    uint32_t x = p.input(0);
    uint32_t shifted = p.emit(TN_EXPR_SUB, x, p.number(128));
    p.finish(shifted, &add_pointwise(node, {of.stored}, out), TN_EXPR_DOMAIN_INT, 8);
    return out;
  }

  // A constant second operand: signed, k innermost, and the sum over k of each column.
  struct Transposed {
    std::vector<unsigned char> bytes;
    std::vector<int64_t> sums;
    Dims dims;
  };
  Transposed transposed(const NodeInfo& node, const Operand& of) const {
    const ValueInfo& stored = from_.value(of.stored);
    auto [n, k] = columns_of(node, stored.dims);
    Transposed out;
    out.dims = stored.dims;
    out.dims[out.dims.size() - 2] = n;
    out.dims.back() = k;
    int64_t count = stored.count();
    out.bytes.resize(static_cast<size_t>(count));
    out.sums.assign(static_cast<size_t>(count / k), 0);
    const auto* from = stored.constant.data<const unsigned char>();
    auto flip = static_cast<unsigned char>(of.shift());
    for (int64_t i = 0; i < count; ++i) {
      int64_t column = i / k % n, term = i % k, matrix = i / (n * k);
      int64_t at = is_transposed(node) ? i : (matrix * k + term) * n + column;
      out.bytes[static_cast<size_t>(i)] = from[at] ^ flip;
      out.sums[static_cast<size_t>(i / k)] += static_cast<signed char>(from[at] ^ flip);
    }
    return out;
  }

  // -za * the sums of b's columns, as a row; kNone: za is 0.
  Result<int> correction(const NodeInfo& node, const Operand& a, const Transposed& b) {
    if (a.zero() == 0) return kNone;
    std::vector<int32_t> numbers;
    for (int64_t sum : b.sums)
      numbers.push_back(static_cast<int32_t>(-a.zero() * sum));
    Dims dims = b.dims;
    dims.back() = dims[dims.size() - 2];
    dims[dims.size() - 2] = 1;
    TN_TRY(tensor, Tensor::of<int32_t>(target_.ctx, TN_I32, dims, numbers));
    return add_value(cat(node.name, " correction"), TN_I32, dims, tensor);
  }

  Result<int> scale_of(const NodeInfo& node, const Operand& a, const Operand& b) {
    std::vector<float> scales = scales_of(node, a, b);
    Dims dims;
    if (scales.size() > 1) dims = {static_cast<int64_t>(scales.size())};
    TN_TRY(tensor, Tensor::of<float>(target_.ctx, TN_F32, dims, scales));
    return add_value(cat(node.name, " scale"), TN_F32, dims, tensor);
  }

  // acc * scale + beta * c
  void add_rescaling(const NodeInfo& node, int product, int scale) {
    int c = node.op == "Gemm" ? node.input(2) : kNone;
    std::vector<int> in{product, scale};
    backend::ProgramBuilder p;
    uint32_t factor = p.input(1);
    uint32_t result = p.emit(TN_EXPR_MUL, p.input(0), factor);
    if (c != kNone) {
      in.push_back(c);
      uint32_t beta = p.number(node.source.attr_float("beta", 1));
      result = p.emit(TN_EXPR_ADD, result, p.emit(TN_EXPR_MUL, p.input(2), beta));
    }
    p.finish(result, &add_pointwise(node, std::move(in), node.outputs[0]));
  }

  std::string join(const NodeInfo& node, const Operand& a, const Operand& b) {
    Result<bool> joined = try_join(node, a, b);
    return joined.ok() ? "" : joined.status().text();
  }

  Result<bool> try_join(const NodeInfo& node, const Operand& a, const Operand& b) {
    const ValueInfo& right = from_.value(b.stored);
    bool is_integer = !is_float8(right.dtype);
    TN_TRY(scale, scale_of(node, a, b));
    int second = b.stored, shift = kNone;
    if (right.constant) {
      Transposed made = transposed(node, b);
      uint32_t dtype = is_integer ? TN_I8 : right.dtype;
      TN_TRY(tensor, Tensor::of<unsigned char>(target_.ctx, dtype, made.dims, made.bytes));
      second = add_value(cat(right.name, " transposed"), dtype, made.dims, tensor);
      if (is_integer) {
        TN_TRY(row, correction(node, a, made));
        shift = row;
      }
    } else {
      second = as_signed(node, b);
      if (!is_transposed(node)) second = add_transpose(node, second);
    }
    int first = as_signed(node, a);
    Dims out = from_.value(node.outputs[0]).dims;
    uint32_t dtype = is_integer ? TN_I32 : TN_F32;
    int product = add_value(cat(node.name, " product"), dtype, out);
    add_node(node, "cuda.LowPrecisionGemm", {first, second}, product);
    if (shift != kNone) {
      int shifted = add_value(cat(node.name, " corrected"), TN_I32, out);
      backend::ProgramBuilder p;
      uint32_t sum = p.input(0);
      uint32_t corrected = p.emit(TN_EXPR_ADD, sum, p.input(1));
      p.finish(corrected, &add_pointwise(node, {product, shift}, shifted), TN_EXPR_DOMAIN_INT, 32);
      product = shifted;
    }
    add_rescaling(node, product, scale);
    return true;
  }

  int add_transpose(const NodeInfo& node, int value) {
    ValueInfo from = made_.value(value);
    std::swap(from.dims[from.dims.size() - 1], from.dims[from.dims.size() - 2]);
    int out = add_value(cat(from.name, " transposed"), from.dtype, from.dims);
    add_node(node, "cuda.Transposed", {value}, out);
    return out;
  }

  // DequantizeLinear whose numbers nobody wants any more.
  void drop_unused() {
    std::vector<bool> is_read(made_.values.size(), false);
    for (const NodeInfo& node : made_.nodes) {
      for (int value : node.inputs)
        if (value != kNone) is_read[static_cast<size_t>(value)] = true;
    }
    std::erase_if(made_.nodes, [&](const NodeInfo& node) {
      if (node.op != "DequantizeLinear") return false;
      return made_.value(node.outputs[0]).n_outputs == 0 &&
             !is_read[static_cast<size_t>(node.outputs[0])];
    });
  }

  const Imported& from_;
  const Target& target_;
  std::vector<std::string>* notes_;
  Imported made_;
};

}  // namespace

Imported join_low_precision_gemms(const Imported& graph,
                                  const Target& target,
                                  std::vector<std::string>* notes) {
  return Joiner(graph, target, notes).run();
}

}  // namespace tenon::cuda
