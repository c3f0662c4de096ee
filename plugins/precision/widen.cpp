// SPDX-License-Identifier: Apache-2.0
// "precision.widen": a model whose file is in float16 or bfloat16 as the same model in float32, or
// any of them in float64. Every narrower number is a wider one, so constants keep their values;
// results are no longer rounded between nodes. Passes that want float32, as the quantizer's, go on
// from there; a training in float64 has its steps so.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "tenon/sdk/number.hpp"
#include "tenon/sdk/role/pass.hpp"
#include "tenon/sdk/run.hpp"

#include "casts.hpp"
#include "redirect.hpp"

namespace tenon::precision {
namespace {

Result<Tensor> widened(tn_ctx* ctx, const Tensor& tensor, uint32_t wide) {
  DLTensor from = tensor.dl();
  if (wide == TN_F64) {
    TN_TRY(numbers, numbers_as<double>(from));
    return Tensor::of<double>(ctx, wide, shape_of(from), numbers);
  }
  TN_TRY(numbers, numbers_as<float>(from));
  return Tensor::of<float>(ctx, wide, shape_of(from), numbers);
}

bool has_own_type(Node node, uint64_t input) {
  const tn_op_columns* columns = node.columns();
  return columns && input < 64 && (columns->own_inputs >> input & 1);
}

// Whether all that read a value want a type of their own there, as scales of Resize.
bool is_own(Value value) {
  for (uint64_t i = 0, n = value.consumer_count(); i < n; ++i) {
    uint64_t input = 0;
    Node reader = value.consumer(i, &input);
    if (!has_own_type(reader, input)) return false;
  }
  return value.consumer_count() > 0;
}

// One graph, and the bodies of its control flow.
class Widening {
 public:
  // keeps_interface: inputs and outputs stay as they are, behind casts.
  Widening(EditView edit, bool keeps_interface, uint32_t wide)
      : edit_(edit), casts_(edit), keeps_interface_(keeps_interface), wide_(wide) {}

  Status run() {
    std::vector<Node> nodes = edit_.graph().nodes();
    for (Node node : nodes)
      if (!node.row() && touches_narrow(node))
        return unsupported(cat("node ", node.name(), ": operator ", node.type(),
                               " is not known, so its types cannot change"));
    std::vector<Type> outputs;
    for (Value v : edit_.graph().outputs())
      outputs.push_back(v.type());
    TN_CHECK(constants());
    TN_CHECK(inputs());
    for (Node node : nodes)
      TN_CHECK(attributes(node).in(cat("node ", node.name())));
    for (size_t i = 0; keeps_interface_ && i < outputs.size(); ++i)
      if (is_narrow(outputs[i].dtype))
        TN_CHECK(casts_.outputs_to(edit_.graph().outputs()[i], outputs[i]));
    return {};
  }

  bool has_narrow_ends() const {
    std::vector<Value> ends = edit_.graph().inputs(), outputs = edit_.graph().outputs();
    ends.insert(ends.end(), outputs.begin(), outputs.end());
    return std::ranges::any_of(ends, [&](Value v) { return is_narrow(v.dtype()); });
  }
  uint64_t constant_count() const { return n_constants_; }
  uint64_t cast_count() const { return casts_.count(); }

 private:
  bool is_narrow(uint32_t dtype) const {
    return dtype == TN_F16 || dtype == TN_BF16 || (dtype == TN_F32 && wide_ == TN_F64);
  }
  bool touches_narrow(Node node) const {
    std::vector<Value> values = node.inputs(), results = node.outputs();
    values.insert(values.end(), results.begin(), results.end());
    return std::ranges::any_of(values, [&](Value v) { return v && is_narrow(v.dtype()); });
  }

  Status constants() {
    for (Value v : edit_.graph().constants()) {
      if (!is_narrow(v.dtype()) || (v.dtype() == TN_F32 && is_own(v))) continue;
      std::string name(v.name());
      TN_TRY(tensor, widened(edit_.ctx(), v.constant(), wide_));
      TN_CHECK(Status(services.edit->set_value_name(edit_.raw, v.id, str(name + "/narrow"))));
      TN_TRY(wide, edit_.constant(tensor, name));
      TN_CHECK(copy_notes(v, wide));
      TN_CHECK(edit_.replace(v, wide));
      ++n_constants_;
    }
    return {};
  }

  Status copy_notes(Value from, Value to) {
    Graph graph = edit_.graph();
    for (uint64_t i = 0, n = services.graph->note_count(graph.raw, from.id); i < n; ++i) {
      const std::string key(view(services.graph->note_key(graph.raw, from.id, i)));
      TN_CHECK(edit_.set_note(to.id, key, from.note(key)));
    }
    return {};
  }

  Status inputs() {
    for (Value v : edit_.graph().inputs()) {
      Type type = v.type();
      if (!is_narrow(type.dtype)) continue;
      type.dtype = wide_;
      if (!keeps_interface_) {
        TN_CHECK(edit_.set_type(v, type));
        continue;
      }
      TN_CHECK(read_wide(v));
    }
    return {};
  }

  // Who reads the value reads it in the wide type.
  Status read_wide(Value v) {
    TN_TRY(wide, casts_.to(v, wide_));
    return redirect(edit_, v, wide, {{wide.producer(), 0}});
  }

  // Types that attributes state, and with them those of the results.
  Status attributes(Node node) {
    std::vector<Value> halves = node.outputs();
    std::erase_if(halves, [&](Value v) { return !v || !is_narrow(v.dtype()); });
    std::vector<std::string> names;
    for (uint64_t i = 0, n = services.graph->attr_count(node.graph, node.id); i < n; ++i)
      names.emplace_back(view(services.graph->attr_name(node.graph, node.id, i)));
    for (const std::string& name : names) {
      tn_any attr = node.attr(name);
      if (attr.tag == TN_ANY_DTYPE && is_narrow(static_cast<uint32_t>(attr.v.u)))
        TN_CHECK(edit_.set_attr(node, {name, any_dtype(wide_)}));
      if (attr.tag == TN_ANY_TENSOR) TN_CHECK(tensor(node, name, attr));
      if (attr.tag == TN_ANY_GRAPH) TN_CHECK(body(node, name, attr).in(cat("body ", name)));
    }
    if (node.row()) TN_CHECK(inferred(node));
    for (Value v : halves) {  // the file's own statement about them holds no longer
      if (v.dtype() == wide_) TN_CHECK(edit_.set_type(v, v.type()));
      if (v.dtype() == TN_F32 && wide_ == TN_F64) TN_CHECK(read_wide(v));  // as random numbers
    }
    return {};
  }

  // Operators that are not defined for float64 read float32: inputs with a type of their own, as
  // scales of Resize, or all of them.
  Status inferred(Node node) {
    Status typed(services.edit->infer(edit_.raw, node.id));
    for (const bool only_own : {true, false}) {
      if (typed.ok() || wide_ != TN_F64) return typed;
      for (uint64_t i = 0, n = node.n_inputs(); i < n; ++i) {
        const Value v = node.input(i);
        if (!v || v.dtype() != TN_F64 || (only_own && !has_own_type(node, i))) continue;
        TN_TRY(narrow, casts_.to(v, TN_F32));
        TN_CHECK(edit_.set_input(node, i, narrow));
      }
      typed = Status(services.edit->infer(edit_.raw, node.id));
    }
    return typed;
  }

  Status tensor(Node node, const std::string& name, const tn_any& attr) {
    Tensor narrow = Tensor::share(static_cast<tn_tensor*>(const_cast<void*>(attr.v.p)));
    if (!is_narrow(dtype_of(narrow.dl()))) return {};
    TN_TRY(wide, widened(edit_.ctx(), narrow, wide_));
    ++n_constants_;
    return edit_.set_attr(node, {name, any_tensor(wide)});
  }

  Status body(Node node, const std::string& name, const tn_any& attr) {
    TN_TRY(clone, OwnedGraph::copy_of(static_cast<const tn_graph*>(attr.v.p)));
    TN_TRY(edit, Edit::begin(clone.get()));
    Widening inner(edit, false, wide_);
    TN_CHECK(inner.run());
    TN_CHECK(edit.commit());
    n_constants_ += inner.n_constants_;
    return edit_.set_attr(node, {name, any_graph(clone.get())});
  }

  EditView edit_;
  Casts casts_;
  bool keeps_interface_;
  uint32_t wide_;
  uint64_t n_constants_ = 0;
};

class Widen {
 public:
  static Result<Widen> create(tn_ctx*, const Options& options) {
    Widen out;
    const std::string interface = options.text("interface"), to = options.text("to");
    out.keeps_interface_ = interface == "keep";
    out.wide_ = to == "float64" ? TN_F64 : TN_F32;
    if (!out.keeps_interface_ && interface != to)
      return invalid(
          cat("option interface: expected keep, or ", to, " as option to, got ", interface));
    return out;
  }

  Status run(tn_graph* raw, const Cancel&, Sink& sink) {
    TN_TRY(edit, Edit::begin(raw));
    Widening widening(edit, keeps_interface_, wide_);
    if (!keeps_interface_ && !widening.has_narrow_ends())
      log_line(edit.ctx(), TN_LOG_WARNING,
               cat("option interface has no effect: no input or output is narrower than ",
                   dtype_name(wide_)));
    TN_CHECK(widening.run());
    TN_CHECK(edit.commit());
    nlohmann::ordered_json report{{"constants", widening.constant_count()},
                                  {"casts", widening.cast_count()}};
    return sink.write(report.dump());
  }

 private:
  bool keeps_interface_ = true;
  uint32_t wide_ = TN_F32;
};

}  // namespace
}  // namespace tenon::precision

TENON_PASS(widen,
           tenon::precision::Widen,
           "precision.widen",
           "float16 and bfloat16 become float32, or all of them float64",
           R"({
  "properties": {
    "to": {"type": "string", "enum": ["float32", "float64"], "default": "float32",
           "description": "the type that narrower ones become"},
    "interface": {"type": "string", "enum": ["keep", "float32", "float64"], "default": "keep",
                  "description": "types of inputs and outputs: as they are, behind casts, or that of to"}}})")
