// SPDX-License-Identifier: Apache-2.0
// "precision.autocast": mixed precision as Cast nodes, put in before gradients are taken, so that
// the backward pass computes in the types of the forward pass. Weights stay in f32 and are cast
// where they are read: they are the master copy.
#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "tenon/sdk/role/pass.hpp"

#include "casts.hpp"
#include "category.hpp"
#include "redirect.hpp"

namespace tenon::precision {
namespace {

class Autocast {
 public:
  static Result<Autocast> create(tn_ctx*, const Options& options) {
    Autocast out;
    out.lists_ = Lists::read(options);
    out.low_ = out.lists_.dtype == "float16" ? TN_F16 : TN_BF16;
    out.with_tables_ = options.flag("tables");
    return out;
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    TN_TRY(edit, Edit::begin(raw));
    std::vector<Node> nodes = edit.graph().nodes();
    TN_CHECK(check_lists(lists_, nodes));
    remember(edit.graph(), nodes);
    Casts casts(edit);
    std::map<std::string, size_t> counts;
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (Node node : nodes) {
      TN_CHECK(cancel.check());
      TN_TRY(rule, rule_of(node, lists_));
      TN_CHECK(keep_own(edit, &casts, node, rule).in(cat("node ", node.name())));
      std::vector<uint64_t> inputs = castable(node, rule);
      if (inputs.empty()) continue;
      TN_TRY(is_table, store_table(edit, &casts, node, rule));
      if (is_table) {
        ++counts["table"];
        rows.push_back({{"node", node.name()},
                        {"op", node.type()},
                        {"category", "table"},
                        {"by", "option tables"},
                        {"dtype", dtype_name(low_)}});
        continue;
      }
      TN_CHECK(apply(edit, &casts, node, rule, inputs).in(cat("node ", node.name())));
      if (rule.by == "option lacking")
        log_line(edit.ctx(), TN_LOG_INFO,
                 cat("node ", node.name(), " (", node.type(),
                     ") is computed in float32: it is not ", "defined for ", dtype_name(low_)));
      std::string category(category_name(rule.category));
      ++counts[category];
      rows.push_back({{"node", node.name()},
                      {"op", node.type()},
                      {"category", category},
                      {"by", rule.by},
                      {"dtype", node.output() ? dtype_name(node.output().dtype()) : ""}});
    }
    TN_CHECK(restore_outputs(edit, &casts));
    TN_CHECK(casts.erase_unread());
    nlohmann::ordered_json report{{"device", lists_.device},
                                  {"dtype", dtype_name(low_)},
                                  {"casts", casts.count()},
                                  {"counts", counts},
                                  {"nodes", rows}};
    warn_of_others(edit);
    TN_CHECK(edit.commit());
    return sink.write(report.dump());
  }

 private:
  // A model that has its numbers in another type stays as it is, which the user did not mean.
  void warn_of_others(EditView edit) const {
    size_t n_low = 0, n_others = 0;
    std::string other;
    for (Node node : edit.graph().nodes())
      for (Value v : node.outputs()) {
        if (!v || !is_float(v.dtype()) || v.dtype() == TN_F32) continue;
        ++(v.dtype() == low_ ? n_low : n_others);
        if (v.dtype() != low_) other = dtype_name(v.dtype());
      }
    if (n_others > n_low)
      log_line(edit.ctx(), TN_LOG_WARNING,
               cat(n_low ? "little" : "nothing", " is computed in ", dtype_name(low_),
                   ": the model is in ", other, " and only float32 is changed",
                   other == "float64" ? "" : "; apply precision.widen first"));
  }
  bool is_eligible(Value v) const {
    const tn_type type = v.raw_type();
    return type.kind == TN_KIND_TENSOR && (type.dtype == TN_F32 || type.dtype == low_);
  }

  void remember(Graph graph, const std::vector<Node>& nodes) {
    before_.clear();
    parameters_.clear();
    for (Value v : graph.inputs())
      before_[v.id] = v.type();
    for (Node node : nodes)
      for (Value v : node.outputs())
        if (v) before_[v.id] = v.type();
    for (Value v : graph.list(TN_LIST_STATES))
      parameters_[v.id] = true;
  }
  uint32_t dtype_before(Value v) const {
    auto found = before_.find(v.id);
    return found == before_.end() ? v.dtype() : found->second.dtype;
  }

  std::vector<uint64_t> castable(Node node, const Rule& rule) const {
    std::vector<uint64_t> out;
    for (uint64_t i = 0, n = node.n_inputs(); i < n; ++i) {
      Value v = node.input(i);
      bool is_own = i < 64 && (rule.own >> i & 1);
      if (v && !is_own && is_eligible(v)) out.push_back(i);
    }
    return out;
  }

  // Inputs with a type of their own are read in the type that they had, which may be the only one
  // (scales of Resize), or state that of the result (scales of DequantizeLinear).
  Status keep_own(EditView edit, Casts* casts, Node node, const Rule& rule) const {
    for (uint64_t i = 0, n = std::min<uint64_t>(node.n_inputs(), 64); i < n; ++i)
      if (Value v = node.input(i); v && (rule.own >> i & 1) && is_eligible(v))
        TN_CHECK(read_as(edit, casts, node, i, dtype_before(v)));
    return {};
  }
  static Status read_as(EditView edit, Casts* casts, Node node, uint64_t input, uint32_t dtype) {
    const Value v = node.input(input);
    TN_TRY(cast, casts->to(v, dtype));
    const bool is_itself = cast.producer() == node;  // a Cast to that type
    return cast == v || is_itself ? Status() : edit.set_input(node, input, cast);
  }

  // Numbers, and biases and scales of layers, widen nothing: PyTorch has the first rule, and has
  // the others inside its layers, which files spell as MatMul and Add.
  bool widens(Value v) const {
    Type type = v.type();
    if (type.ranked && type.dims.empty()) return false;
    bool is_parameter = v.is_constant() || parameters_.contains(v.id);
    return !(is_parameter && type.ranked && type.dims.size() <= 1);
  }
  uint32_t widest(Node node, const std::vector<uint64_t>& inputs) const {
    bool any = false, wide = false, any_wide = false;
    for (uint64_t i : inputs) {
      bool is_wide = node.input(i).dtype() == TN_F32;
      any_wide = any_wide || is_wide;
      if (!widens(node.input(i))) continue;
      any = true;
      wide = wide || is_wide;
    }
    return (any ? wide : any_wide) ? uint32_t{TN_F32} : low_;
  }

  Status apply(EditView edit,
               Casts* casts,
               Node node,
               Rule& rule,
               const std::vector<uint64_t>& inputs) const {
    uint32_t target = node.input(inputs[0]).dtype();
    if (rule.category == Category::kBanned && rule.by == "note")
      return unsupported(cat("a loss of probabilities loses all digits in ", dtype_name(low_),
                             ": use the one of logits (trainer.bce_with_logits), or end the model "
                             "in Sigmoid"));
    if (rule.category == Category::kBanned)
      return unsupported(cat("operator ", node.type(), " overflows in ", dtype_name(low_),
                             ": use one that takes logits, or name it in option fp32"));
    if (rule.category == Category::kLow) target = low_;
    if (rule.category == Category::kFp32) target = TN_F32;
    if (rule.category == Category::kPromote) target = widest(node, inputs);
    const std::vector<Value> given = node.inputs();
    if (rule.category != Category::kKeep) {
      for (uint64_t i : inputs)
        TN_CHECK(read_as(edit, casts, node, i, target));
      Status typed(services.edit->infer(edit.raw, node.id));
      const bool is_asked_for = rule.by.starts_with("option");
      if (typed.ok() || is_asked_for) return typed;
      rule.category = Category::kKeep;  // the operator is not defined for the type
      for (uint64_t i : inputs)
        TN_CHECK(edit.set_input(node, i, given[i]));
    }
    for (uint64_t i : inputs)
      TN_CHECK(read_as(edit, casts, node, i, dtype_before(given[i])));
    return Status(services.edit->infer(edit.raw, node.id));
  }
  // The input of which a node gives parts that are known at run time alone: rows, or what Slice
  // cuts out.
  static std::optional<uint64_t> table_of(Node node) {
    const tn_op_columns* columns = node.columns();
    if (columns && columns->rows >= 0) return static_cast<uint64_t>(columns->rows);
    if (!columns || columns->quant != TN_QUANT_SAME_SCALE) return std::nullopt;
    constexpr int64_t kLeastElements = 256;  // worth a Cast
    const Value first = node.input(0);
    const bool is_large = first && first.is_constant() && first.type().elements() >= kLeastElements;
    const auto is_known = [](Value v) { return !v || v.is_constant(); };
    if (!is_large || std::ranges::all_of(node.inputs(), is_known)) return std::nullopt;
    return 0;
  }
  // y = Gather(T, i)  becomes  Cast(Gather(Cast(T), i)): the rows are rounded, the computation is
  // not.
  Result<bool> store_table(EditView edit, Casts* casts, Node node, const Rule& rule) const {
    const std::optional<uint64_t> found = with_tables_ ? table_of(node) : std::nullopt;
    if (!found || rule.category == Category::kLow) return false;
    const uint64_t input = *found;
    const Value table = node.input(input);
    const bool is_asked_for = rule.category == Category::kFp32;
    if (is_asked_for || !table || !table.is_constant() || table.dtype() != TN_F32) return false;
    TN_TRY(low, casts->to(table, low_));
    TN_CHECK(edit.set_input(node, input, low));
    TN_CHECK(Status(services.edit->infer(edit.raw, node.id)));
    const Value rows = node.output();
    TN_TRY(wide, casts->to(rows, TN_F32));
    TN_CHECK(redirect(edit, rows, wide, {{wide.producer(), 0}}));
    return true;
  }
  Status restore_outputs(EditView edit, Casts* casts) const {
    for (Value v : edit.graph().outputs()) {
      const auto had = before_.find(v.id);
      if (had == before_.end() || v.dtype() == had->second.dtype || !is_eligible(v)) continue;
      TN_CHECK(casts->outputs_to(v, had->second));
    }
    return {};
  }

  Lists lists_;
  uint32_t low_ = TN_BF16;
  bool with_tables_ = false;
  std::map<tn_value_id, Type> before_;
  std::map<tn_value_id, bool> parameters_;  // inputs that are a state's
};

}  // namespace
}  // namespace tenon::precision

TENON_PASS(autocast,
           tenon::precision::Autocast,
           "precision.autocast",
           "mixed precision as Cast nodes, from the operators' cast categories",
           R"({
  "properties": {
    "device": {"type": "string", "enum": ["cpu", "cuda"], "default": "cpu",
               "description": "device whose table of categories is used"},
    "dtype": {"type": "string", "enum": ["bfloat16", "float16"],
              "description": "the low type; without it bfloat16 on cpu, float16 on cuda"},
    "level": {"type": "string", "enum": ["O1", "O2", "O3"], "default": "O1",
              "description": "O1: types by operators; O2: the low type everywhere but in BatchNormalization and losses; O3: and there too, but for losses"},
    "low": {"type": ["array", "string"], "items": {"type": "string"},
            "description": "nodes to compute in the low type: patterns of names, operators or scopes"},
    "fp32": {"type": ["array", "string"], "items": {"type": "string"},
             "description": "nodes to compute in float32: patterns likewise"},
    "lacking": {"type": "array", "items": {"type": "string"},
                "description": "operators that are not defined for the low type where the model goes: computed in float32 where it has them"},
    "tables": {"type": "boolean", "default": false,
               "description": "constant tables whose rows are looked up or cut out are stored in the low type too; what is looked up is cast back"},
    "follow": {"type": ["array", "string"], "items": {"type": "string"},
               "description": "nodes to compute in the type of their first input: patterns likewise"}}})")
