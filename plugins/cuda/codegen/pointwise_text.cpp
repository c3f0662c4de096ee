// SPDX-License-Identifier: Apache-2.0
#include "pointwise_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "tenon/fnv.hpp"
#include "tenon/sdk/tensor.hpp"

#include "intrinsics.hpp"

namespace tenon::cuda {
namespace {

struct ElementRow {
  uint32_t dtype;
  const char* text;
};
constexpr ElementRow kElements[] = {
    {TN_F32, "float"},
    {TN_F64, "double"},
    {TN_F16, "F16"},
    {TN_BF16, "BF16"},
    {TN_I8, "signed char"},
    {TN_I16, "short"},
    {TN_I32, "int"},
    {TN_I64, "i64"},
    {TN_U8, "unsigned char"},
    {TN_U32, "unsigned"},
    {TN_U16, "unsigned short"},
    {TN_U64, "u64"},
    {TN_BOOL, "Bool"},
    {TN_DTYPE(kDLFloat8_e4m3fn, 8), "F8E4M3"},
    {TN_DTYPE(kDLFloat8_e5m2, 8), "F8E5M2"},
};

constexpr int64_t kVectorBytes = 16;

// Where a kernel's words begin, and which of how many blocks this is.
constexpr std::string_view kAlone =
    "  const unsigned base = 0, block = blockIdx.x, blocks = gridDim.x;\n";

// The strides of an input along the group's axes: 0 where it is broadcast.
std::vector<int64_t> broadcast_strides(const Dims& dims, const Dims& to) {
  std::vector<int64_t> strides(to.size(), 0);
  int64_t stride = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    size_t from = dims.size() - 1 - i, axis = to.size() - 1 - i;
    if (dims[from] != 1) strides[axis] = stride;
    stride *= dims[from];
  }
  return strides;
}

// What a domain's numbers are in a register.
std::string register_of(const tn_expr_program& program, uint32_t dtype) {
  if (program.domain == TN_EXPR_DOMAIN_INT) return "i64";
  if (program.domain == TN_EXPR_DOMAIN_UINT) return "u64";
  return dtype == TN_F64 ? "double" : "float";
}

std::string literal(double value, const tn_expr_program& program) {
  if (program.domain != TN_EXPR_DOMAIN_FLOAT) {
    return cat("R(", static_cast<int64_t>(value), "ll)");
  }
  if (std::isnan(value)) return "R(quiet_nan())";
  if (std::isinf(value)) return value > 0 ? "R(infinity())" : "R(-infinity())";
  char text[64];
  std::snprintf(text, sizeof text, "R(%.17g)", value);
  if (std::string_view(text).find_first_of(".e") == std::string_view::npos) {
    std::snprintf(text, sizeof text, "R(%.17g.0)", value);
  }
  return text;
}

std::string filled(const char* form,
                   const std::string& prefix,
                   const tn_expr_node& node,
                   uint32_t bits) {
  std::string out;
  for (const char* at = form; *at; ++at) {
    if (*at != '$') {
      out += *at;
      continue;
    }
    char which = *++at;
    if (which == 'n') {
      out += std::to_string(bits);
    } else {
      out += prefix + std::to_string(which == 'a' ? node.a : which == 'b' ? node.b : node.c);
    }
  }
  return out;
}

class Writer {
 public:
  explicit Writer(const PointwiseGroup& group) : group_(group), layout_(layout_of(group)) {}

  PointwiseText write() {
    for (size_t i = 0; i < group_.parts.size(); ++i) {
      if (!write_part(i)) return {};
    }
    PointwiseText out;
    out.source = frame();
    // The text is its own key: equal texts are one kernel.
    char name[32];
    std::snprintf(name, sizeof name, "pointwise_%016llx",
                  static_cast<unsigned long long>(fnv1a(out.source)));
    out.symbol = name;
    out.source = cat("namespace tn {\nstruct Arguments_", out.symbol, " {\n  u64 words[", n_words(),
                     "];\n};\n}\n", "TN_KERNEL(", out.symbol, ", tn::Arguments_", out.symbol,
                     ") {\n", kAlone, out.source, "}\n");
    out.words = words();
    return out;
  }

 private:
  size_t n_inputs() const { return group_.inputs.size(); }
  size_t rank() const { return layout_.dims.size(); }
  size_t n_words() const { return n_inputs() + 2 + rank() * (1 + n_inputs()); }

  std::vector<uint64_t> words() const {
    std::vector<uint64_t> out(n_inputs() + 1, 0);
    out.push_back(static_cast<uint64_t>(layout_.count));
    for (int64_t dim : layout_.dims)
      out.push_back(static_cast<uint64_t>(dim));
    for (const std::vector<int64_t>& strides : layout_.strides) {
      for (int64_t stride : strides)
        out.push_back(static_cast<uint64_t>(stride));
    }
    return out;
  }

  // 32-bit indices where they suffice: divisions cost a third.
  bool is_large() const {
    int64_t most = layout_.count * layout_.width;
    return most > std::numeric_limits<int32_t>::max();
  }

  std::string frame() const {
    std::string index = is_large() ? "u64" : "unsigned";
    std::string text =
        cat("  using namespace tn;\n  typedef ", index, " Index;\n",
            "  const Index count = static_cast<Index>(args.words[base + ", n_inputs() + 1,
            "]);\n  const Index step = static_cast<Index>(blocks) * blockDim.x;\n",
            "  for (Index i = static_cast<Index>(block) * blockDim.x + "
            "threadIdx.x; i < count; i += step) {\n");
    text += axes();
    for (size_t k = 0; k < n_inputs(); ++k)
      text += load(k);
    const char* out = element_text(group_.dtype);
    text += cat("    Vector<", out, ", ", layout_.width,
                "> out;\n#pragma unroll\n    for (int k = 0; k < ", layout_.width, "; ++k) {\n");
    for (size_t k = 0; k < n_inputs(); ++k) {
      text += cat("      const auto x", k, " = value(v", k, layout_.strides[k][0] ? ".at[k]" : "",
                  ");\n");
    }
    text += body_;
    text += cat("      out.at[k] = Convert<", out, ">::from(p", group_.parts.size() - 1,
                ");\n    }\n", "    store(reinterpret_cast<", out, "*>(args.words[base + ",
                n_inputs(), "]) + u64(i) * ", layout_.width, ", out);\n  }\n");
    return text;
  }

  std::string axes() const {
    if (rank() == 1) return "    const Index i0 = i;\n";
    std::string text = "    Index rest = i;\n";
    for (size_t axis = 0; axis < rank(); ++axis) {
      if (axis + 1 == rank()) {
        text += cat("    const Index i", axis, " = rest;\n");
        break;
      }
      std::string dim = cat("static_cast<Index>(args.words[base + ", n_inputs() + 2 + axis, "])");
      text += cat("    const Index i", axis, " = rest % ", dim, ";\n    rest /= ", dim, ";\n");
    }
    return text;
  }

  std::string load(size_t k) const {
    const char* element = element_text(group_.inputs[k].dtype);
    std::string at;
    for (size_t axis = 0; axis < rank(); ++axis) {
      if (layout_.strides[k][axis] == 0) continue;
      std::string stride =
          axis == 0 ? cat(layout_.width, "u")
                    : cat("args.words[base + ", n_inputs() + 2 + rank() * (1 + k) + axis, "]");
      at += cat(at.empty() ? "" : " + ", "u64(i", axis, ") * ", stride);
    }
    std::string from = cat("reinterpret_cast<const ", element, "*>(args.words[base + ", k, "])",
                           at.empty() ? "" : " + ", at);
    return layout_.strides[k][0]
               ? cat("    const auto v", k, " = load<", layout_.width, ">(", from, ");\n")
               : cat("    const auto v", k, " = *(", from, ");\n");
  }

  static std::string name_of(const PointwisePart::Operand& operand) {
    return cat(operand.is_input ? "x" : "p", operand.index);
  }

  // Each part computes in the registers of its domain and leaves its result as an element would be
  // read back, except that floats stay as wide as they were computed; a Cast rounds them.
  bool write_part(size_t i) {
    const PointwisePart& part = group_.parts[i];
    if (part.program.count == 0) {
      finish_part(i, name_of(part.operands[0]), "");
      return true;
    }
    const tn_expr_program& program = part.program;
    uint32_t dtype = TN_DTYPE_NONE;
    for (const PointwisePart::Operand& operand : part.operands) {
      if (operand.index < 0) continue;
      uint32_t type = operand.is_input ? group_.inputs[static_cast<size_t>(operand.index)].dtype
                                       : group_.parts[static_cast<size_t>(operand.index)].dtype;
      if (type == TN_F64) dtype = TN_F64;
    }
    if (part.dtype == TN_F64) dtype = TN_F64;
    std::string prefix = cat("t", i, "_");
    std::string text = cat("      typedef ", register_of(program, dtype), " R", i, ";\n");
    for (uint64_t k = 0; k < program.count; ++k) {
      std::string expression;
      if (!write_node(part, program.nodes[k], prefix, &expression)) return false;
      bool wraps = program.domain != TN_EXPR_DOMAIN_FLOAT && program.bits < 64;
      text += cat("      const R", i, " ", prefix, k, " = ", wraps ? "wrap(R(" : "", expression,
                  wraps ? cat("), ", program.bits, ")") : std::string(), ";\n");
    }
    // R stands for the part's own register type.
    for (size_t at = 0; (at = text.find("R(", at)) != std::string::npos; at += 2) {
      text.insert(at + 1, std::to_string(i));
    }
    for (size_t at = 0; (at = text.find("<R>", at)) != std::string::npos; at += 3) {
      text.insert(at + 2, std::to_string(i));
    }
    finish_part(i, cat(prefix, program.count - 1), text);
    return true;
  }

  bool write_node(const PointwisePart& part,
                  const tn_expr_node& node,
                  const std::string& prefix,
                  std::string* expression) const {
    const tn_expr_program& program = part.program;
    if (node.op == TN_EXPR_CONST) {
      *expression = literal(node.imm, program);
      return true;
    }
    if (node.op == TN_EXPR_INPUT) {
      if (node.a >= part.operands.size() || part.operands[node.a].index < 0) return false;
      *expression = cat("R(", name_of(part.operands[node.a]), ")");
      return true;
    }
    const Intrinsic* row = find_intrinsic(node.op);
    const char* form = !row                                     ? nullptr
                       : program.domain == TN_EXPR_DOMAIN_FLOAT ? row->floating
                                                                : row->integer;
    if (!form) return false;
    *expression = filled(form, prefix, node, program.bits);
    return true;
  }

  void finish_part(size_t i, const std::string& result, const std::string& text) {
    uint32_t dtype = group_.parts[i].dtype;
    bool is_half = dtype == TN_F16 || dtype == TN_BF16;
    bool is_wide = dtype == TN_F32 || (is_half && group_.parts[i].program.count > 0);
    body_ += text;
    body_ += is_wide ? cat("      const float p", i, " = static_cast<float>(", result, ");\n")
                     : cat("      const auto p", i, " = value(Convert<", element_text(dtype),
                           ">::from(", result, "));\n");
  }

  const PointwiseGroup& group_;
  PointwiseLayout layout_;
  std::string body_;
};

}  // namespace

const char* element_text(uint32_t dtype) {
  for (const ElementRow& row : kElements) {
    if (row.dtype == dtype) return row.text;
  }
  return "";
}

PointwiseLayout layout_of(const PointwiseGroup& group) {
  PointwiseLayout out;
  std::vector<std::vector<int64_t>> strides;
  for (const PointwiseGroup::Input& input : group.inputs)
    strides.push_back(broadcast_strides(input.dims, group.dims));
  out.strides.resize(strides.size());
  for (size_t axis = group.dims.size(); axis-- > 0;) {
    if (group.dims[axis] == 1) continue;
    bool joins = !out.dims.empty();
    for (size_t k = 0; joins && k < strides.size(); ++k) {
      joins = strides[k][axis] == out.strides[k].back() * out.dims.back();
    }
    if (joins) {
      out.dims.back() *= group.dims[axis];
      continue;
    }
    out.dims.push_back(group.dims[axis]);
    for (size_t k = 0; k < strides.size(); ++k)
      out.strides[k].push_back(strides[k][axis]);
  }
  if (out.dims.empty()) {
    out.dims.push_back(1);
    for (std::vector<int64_t>& one : out.strides)
      one.push_back(0);
  }
  int64_t widest = static_cast<int64_t>(bytes_of(group.dtype, 1));
  for (const PointwiseGroup::Input& input : group.inputs)
    widest = std::max(widest, static_cast<int64_t>(bytes_of(input.dtype, 1)));
  int64_t width = kVectorBytes / widest;
  while (width > 1 && out.dims[0] % width != 0)
    width /= 2;
  out.width = static_cast<int>(width);
  out.dims[0] /= width;
  out.count = element_count(out.dims);
  return out;
}

PointwiseText pointwise_text(const PointwiseGroup& group) {
  return Writer(group).write();
}

PointwiseText joined_text(const std::string& symbol,
                          const std::string& source,
                          size_t n_words,
                          size_t n_jobs) {
  PointwiseText out;
  out.symbol = cat(symbol, "_x", n_jobs);
  size_t body = source.find(kAlone) + kAlone.size(), end = source.rfind("}\n");
  out.source = cat(
      "namespace tn {\nstruct Arguments_", out.symbol, " {\n  u64 firsts[", n_jobs + 1,
      "];\n  u64 words[", n_words * n_jobs, "];\n};\n}\nTN_KERNEL(", out.symbol, ", tn::Arguments_",
      out.symbol, ") {\n  unsigned job = 0;\n",
      "  for (unsigned at = blockIdx.x; at < args.firsts[", n_jobs, "]; at += gridDim.x) {\n",
      "  while (at >= args.firsts[job + 1]) ++job;\n  const unsigned base = job * ", n_words,
      ", block = at - static_cast<unsigned>(args.firsts[job]);\n",
      "  const unsigned blocks = static_cast<unsigned>(args.firsts[job + 1] - args.firsts[job]);\n",
      std::string_view(source).substr(body, end - body), "  }\n}\n");
  return out;
}

}  // namespace tenon::cuda
