// SPDX-License-Identifier: Apache-2.0
// "precision.fp8": what 8-bit floating point makes of a training, simulated on any backend
// (Micikevicius et al. 2022, "FP8 formats for deep learning"): the operands of products are rounded
// to float8 and back, sums stay in the backend's type. Operands of the forward pass are E4M3,
// cotangents E5M2 (HYBRID of NVIDIA's Transformer Engine). Delayed scaling, number for number as
// there: a tensor is multiplied by a scale from the largest magnitudes of earlier steps,
//   scale = largest number of the format / max(history) / 2^margin,
// which is a state, as the history is: what overflows in between saturates.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "tenon/role/op.h"

#include "tenon/sdk/build.hpp"
#include "tenon/sdk/coupling.hpp"
#include "tenon/sdk/notes.hpp"
#include "tenon/sdk/pattern.hpp"
#include "tenon/sdk/role/optimizer.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "category.hpp"

namespace tenon::precision {
namespace {

constexpr std::string_view kGradient = "grad/";

struct Format {
  uint32_t dtype;
  double largest;
  const char* name;
};
constexpr Format kE4M3 {
  TN_DTYPE(kDLFloat8_e4m3fn, 8)
  , 448, "E4M3"
};
constexpr Format kE5M2 {
  TN_DTYPE(kDLFloat8_e5m2, 8)
  , 57344, "E5M2"
};

// A tensor with a scale of its own: whatever is only viewed in another shape has the same.
struct Scaled {
  std::string name;
  const Format* format;
  Value scale, inverse;  // f32 []
  uint64_t reads = 0;
};

class Fp8 {
 public:
  static Result<Fp8> create(tn_ctx*, const Options& options) {
    Fp8 out;
    out.history_ = options.integer("history");
    out.margin_ = options.number("margin");
    out.by_most_recent_ = options.text("amax") == "most_recent";
    out.is_hybrid_ = options.text("format") == "hybrid";
    out.selected_ = Selected::read(options);
    return out;
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    TN_TRY(edit, Edit::begin(raw));
    TN_CHECK(selected_.check(edit.graph()));
    TN_CHECK(find_backward(edit.graph()));
    tensors_.clear();
    rounded_.clear();
    nlohmann::ordered_json products = nlohmann::ordered_json::array(), left = products;
    for (Node node : edit.graph().nodes()) {
      TN_CHECK(cancel.check());
      TN_TRY(rule, rule_of(node, {}));
      if (rule.category != Category::kLow) continue;
      if (std::string why = why_left(node); !why.empty()) {
        left.push_back({{"node", node.name()}, {"op", node.type()}, {"why", why}});
        continue;
      }
      for (uint64_t i : {0, 1}) {
        TN_TRY(low, rounded(edit, node.input(i)));
        TN_CHECK(edit.set_input(node, i, low));
      }
      products.push_back(node.name());
    }
    if (products.empty()) return invalid("expected products to round the operands of, got none");
    TN_CHECK(edit.commit());
    nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
    for (const auto& [id, one] : tensors_)
      tensors.push_back({{"name", one.name}, {"format", one.format->name}, {"reads", one.reads}});
    nlohmann::ordered_json report{{"products", products}, {"tensors", tensors}, {"left", left}};
    return sink.write(report.dump());
  }

 private:
  // What depends on a seed of the gradient is of the backward pass.
  Status find_backward(Graph graph) {
    backward_.clear();
    auto is_one = [&](Value v) {
      return v && (backward_.contains(v.id) || v.note(kSeedNote).tag != TN_ANY_NONE);
    };
    for (Node node : graph.nodes()) {
      std::vector<Value> inputs = node.inputs();
      const bool follows = std::ranges::any_of(inputs, is_one);
      for (Value v : node.outputs())
        if (v && (follows || is_one(v))) backward_.insert(v.id);
    }
    for (uint64_t i = 0, n = graph.outputs().size(); i < n && !backward_.empty(); ++i)
      if (graph.output_name(i).starts_with(kGradient)) return {};
    return {TN_FAILED_PRECONDITION,
            "expected a graph with gradients (outputs grad/NAME): apply autodiff.value_and_grad "
            "first"};
  }

  // The operands of a product are its first two inputs; what is made of several products, as
  // attention and recurrent cells, has others between them.
  std::string why_left(Node node) const {
    const tn_op* row = node.row();
    if (!row || (row->traits & (TN_OP_POINTWISE | TN_OP_CONTROL))) return "no product";
    if (std::string why = selected_.why_left(node); !why.empty()) return why;
    if (node.n_inputs() < 2 || node.n_inputs() > 3 || node.n_outputs() != 1 || row->decompose)
      return "made of several products: decompose it first";
    for (uint64_t i : {0, 1}) {
      Type type = node.input(i) ? node.input(i).type() : Type{};
      if (type.dtype != TN_F32 && type.dtype != TN_BF16 && type.dtype != TN_F16)
        return cat("input ", i, " is ", dtype_name(type.dtype));
      if (!type.is_static()) return cat("input ", i, " has sizes that are not known");
    }
    return "";
  }

  // The tensor that this one views: it has the same numbers.
  static Value viewed(Value value) {
    for (Node node = value.producer(); node && only_moves(node); node = value.producer()) {
      if (node.input(0).dtype() != value.dtype()) break;
      value = node.input(0);
    }
    return value;
  }
  static bool only_moves(Node node) {
    const tn_op* row = node.row();
    return row && node.n_outputs() == 1 &&
           ((row->traits & TN_OP_VIEW) != 0 || Stated(node).family() == TN_COUPLING_PERMUTE);
  }

  // The operand, rounded: scaled, saturated, in float8 and back.
  Result<Value> rounded(EditView edit, Value operand) {
    Value& made = rounded_[operand.id];
    Value base = viewed(operand);
    if (!tensors_.contains(base.id)) {
      TN_TRY(scaled, scaled_tensor(edit, base));
      tensors_.emplace(base.id, std::move(scaled));
    }
    Scaled& of = tensors_.at(base.id);
    ++of.reads;
    if (made) return made;
    Builder b(edit);
    double most = of.format->largest;
    Value wide = b.mul(b.cast(operand, TN_F32), of.scale);
    Value held = b.op("Clip", {wide, b.number(-most, TN_F32), b.number(most, TN_F32)});
    Value low = b.cast(b.cast(held, of.format->dtype), TN_F32);
    made = b.cast(b.mul(low, of.inverse), operand.dtype());
    TN_CHECK(b.status());
    return made;
  }

  // States begin as zeros: a scale of 0 stands for 1, which is what there is before any history.
  Result<Scaled> scaled_tensor(EditView edit, Value base) const {
    Builder b(edit);
    const bool is_cotangent = backward_.contains(base.id);
    Scaled out{std::string(base.name()), is_cotangent && is_hybrid_ ? &kE5M2 : &kE4M3, {}, {}};
    TN_TRY(history, Slot::open(edit, cat(out.name, "/fp8_history"), Type(TN_F32, {history_})));
    TN_TRY(scale, Slot::open(edit, cat(out.name, "/fp8_scale"), Type(TN_F32, {})));
    Value zero = b.number(0, TN_F32), one = b.number(1, TN_F32);
    out.scale = b.op("Where", {b.op("Greater", {scale.before, zero}), scale.before, one});
    out.inverse = b.div(one, out.scale);
    // What is infinite or NaN is not recorded: it would stay for as long as the history.
    Value finite = b.number(std::numeric_limits<float>::max(), TN_F32);
    Value size = b.op("ReduceMax", {b.op("Abs", {b.cast(base, TN_F32)})}, {{"keepdims", 0}});
    Value amax = b.op("Where", {b.op("LessOrEqual", {size, finite}), size, zero});
    Value kept = b.reshape(amax, {1});
    if (history_ > 1) {
      Value rest = b.op("Slice", {history.before, b.ints({1}), b.ints({history_})});
      kept = b.op("Concat", {rest, kept}, {{"axis", 0}});
    }
    Value largest = by_most_recent_ ? amax : b.op("ReduceMax", {kept}, {{"keepdims", 0}});
    Value found = b.op("Greater", {largest, zero});
    Value wanted =
        b.div(b.div(b.number(out.format->largest, TN_F32), b.op("Where", {found, largest, one})),
              b.number(std::exp2(margin_), TN_F32));
    // A scale of 0 would stand for 1, and the reciprocal of a subnormal one may be infinite.
    Value least = b.number(std::numeric_limits<float>::min(), TN_F32);
    Value next = b.op("Where", {found, b.op("Clip", {wanted, least, finite}), out.scale});
    TN_CHECK(b.status());
    TN_CHECK(history.close(edit, kept));
    TN_CHECK(scale.close(edit, next));
    return out;
  }

  int64_t history_ = 1024;
  double margin_ = 0;
  bool by_most_recent_ = false, is_hybrid_ = true;
  Selected selected_;
  std::unordered_set<tn_value_id> backward_;
  std::map<tn_value_id, Scaled> tensors_;  // by what operands view
  std::map<tn_value_id, Value> rounded_;   // by operand
};

}  // namespace
}  // namespace tenon::precision

TENON_PASS(fp8,
           tenon::precision::Fp8,
           "precision.fp8",
           "operands of products rounded to float8 with delayed scaling: after gradients",
           R"({
  "properties": {
    "history": {"type": "integer", "minimum": 1, "maximum": 65536, "default": 1024, "description": "steps whose largest magnitudes a scale is from"},
    "margin": {"type": "number", "minimum": 0, "maximum": 64, "default": 0, "description": "margin: powers of two that a scale is lower by"},
    "amax": {"type": "string", "enum": ["max", "most_recent"], "default": "max", "description": "which magnitude of the history a scale is from"},
    "format": {"type": "string", "enum": ["hybrid", "e4m3"], "default": "hybrid", "description": "hybrid: E4M3 forward and E5M2 for cotangents; e4m3 for both"},
    )" TENON_SELECTED_OPTIONS("products to round the operands of") R"(}})")
