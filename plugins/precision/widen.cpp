// SPDX-License-Identifier: Apache-2.0
// "precision.widen": a model whose file is in float16 or bfloat16 as the same model in float32.
// Every 16-bit number is a float32, so constants keep their values; results are no longer rounded
// to 16 bits between nodes. Passes that want float32, as the quantizer's, go on from there.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "tenon/sdk/number.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "casts.hpp"
#include "redirect.hpp"

namespace tenon::precision {
namespace {

bool is_half(uint32_t dtype) {
  return dtype == TN_F16 || dtype == TN_BF16;
}

bool touches_halves(Node node) {
  std::vector<Value> values = node.inputs(), results = node.outputs();
  values.insert(values.end(), results.begin(), results.end());
  return std::any_of(values.begin(), values.end(), [](Value v) { return v && is_half(v.dtype()); });
}

Result<Tensor> widened(tn_ctx* ctx, const Tensor& tensor) {
  DLTensor from = tensor.dl();
  Result<Tensor> out = Status(TN_INTERNAL, cat("numbers of ", dtype_name(dtype_of(from))));
  with_numbers(from, [&](const auto* numbers) {
    if constexpr (std::is_same_v<decltype(numbers), const float*>)
      out = Tensor::of<float>(ctx, TN_F32, shape_of(from),
                              {numbers, static_cast<size_t>(element_count(from))});
  });
  return out;
}

// One graph, and the bodies of its control flow.
class Widening {
 public:
  // keeps_interface: inputs and outputs stay as they are, behind casts.
  Widening(EditView edit, bool keeps_interface)
      : edit_(edit), casts_(edit), keeps_interface_(keeps_interface) {}

  Status run() {
    std::vector<Node> nodes = edit_.graph().nodes();
    for (Node node : nodes)
      if (!node.row() && touches_halves(node))
        return unsupported(cat("node ", node.name(), ": operator ", node.type(),
                               " is not known, so its types cannot change"));
    std::vector<uint32_t> outputs;
    for (Value v : edit_.graph().outputs())
      outputs.push_back(v.dtype());
    TN_CHECK(constants());
    TN_CHECK(inputs());
    for (Node node : nodes)
      TN_CHECK(attributes(node).in(cat("node ", node.name())));
    for (size_t i = 0; keeps_interface_ && i < outputs.size(); ++i)
      if (is_half(outputs[i])) TN_CHECK(casts_.outputs_to(edit_.graph().outputs()[i], outputs[i]));
    return {};
  }

  uint64_t constant_count() const { return n_constants_; }
  uint64_t cast_count() const { return casts_.count(); }

 private:
  Status constants() {
    for (Value v : edit_.graph().constants()) {
      if (!is_half(v.dtype())) continue;
      std::string name(v.name());
      TN_TRY(tensor, widened(edit_.ctx(), v.constant()));
      TN_CHECK(Status(services.edit->set_value_name(edit_.raw, v.id, str(name + "/narrow"))));
      TN_TRY(wide, edit_.constant(tensor, name));
      TN_CHECK(edit_.replace(v, wide));
      ++n_constants_;
    }
    return {};
  }

  Status inputs() {
    for (Value v : edit_.graph().inputs()) {
      Type type = v.type();
      if (!is_half(type.dtype)) continue;
      type.dtype = TN_F32;
      if (!keeps_interface_) {
        TN_CHECK(edit_.set_type(v, type));
        continue;
      }
      TN_TRY(wide, casts_.to(v, TN_F32));
      TN_CHECK(redirect(edit_, v, wide, {{wide.producer(), 0}}));
    }
    return {};
  }

  // Types that attributes state, and with them those of the results.
  Status attributes(Node node) {
    std::vector<Value> halves = node.outputs();
    std::erase_if(halves, [](Value v) { return !v || !is_half(v.dtype()); });
    std::vector<std::string> names;
    for (uint64_t i = 0, n = services.graph->attr_count(node.graph, node.id); i < n; ++i)
      names.emplace_back(view(services.graph->attr_name(node.graph, node.id, i)));
    for (const std::string& name : names) {
      tn_any attr = node.attr(name);
      if (attr.tag == TN_ANY_DTYPE && is_half(static_cast<uint32_t>(attr.v.u)))
        TN_CHECK(edit_.set_attr(node, {name, any_dtype(TN_F32)}));
      if (attr.tag == TN_ANY_TENSOR) TN_CHECK(tensor(node, name, attr));
      if (attr.tag == TN_ANY_GRAPH) TN_CHECK(body(node, name, attr).in(cat("body ", name)));
    }
    if (node.row()) TN_CHECK(Status(services.edit->infer(edit_.raw, node.id)));
    for (Value v : halves)  // the file's own statement about them holds no longer
      if (v.dtype() == TN_F32) TN_CHECK(edit_.set_type(v, v.type()));
    return {};
  }

  Status tensor(Node node, const std::string& name, const tn_any& attr) {
    Tensor narrow = Tensor::share(static_cast<tn_tensor*>(const_cast<void*>(attr.v.p)));
    if (!is_half(dtype_of(narrow.dl()))) return {};
    TN_TRY(wide, widened(edit_.ctx(), narrow));
    ++n_constants_;
    return edit_.set_attr(node, {name, any_tensor(wide)});
  }

  Status body(Node node, const std::string& name, const tn_any& attr) {
    tn_graph* raw = nullptr;
    TN_CHECK(services.graph->clone(static_cast<const tn_graph*>(attr.v.p), &raw));
    OwnedGraph clone = OwnedGraph::take(raw);
    TN_TRY(edit, Edit::begin(raw));
    Widening inner(edit, false);
    TN_CHECK(inner.run());
    TN_CHECK(edit.commit());
    n_constants_ += inner.n_constants_;
    return edit_.set_attr(node, {name, any_graph(raw)});
  }

  EditView edit_;
  Casts casts_;
  bool keeps_interface_;
  uint64_t n_constants_ = 0;
};

class Widen {
 public:
  static Result<Widen> create(tn_ctx*, const Options& options) {
    Widen out;
    out.keeps_interface_ = options.text("interface") == "keep";
    return out;
  }

  Status run(tn_graph* raw, const Cancel&, Sink& sink) {
    TN_TRY(edit, Edit::begin(raw));
    Widening widening(edit, keeps_interface_);
    TN_CHECK(widening.run());
    TN_CHECK(edit.commit());
    nlohmann::ordered_json report{{"constants", widening.constant_count()},
                                  {"casts", widening.cast_count()}};
    return sink.write(report.dump());
  }

 private:
  bool keeps_interface_ = true;
};

}  // namespace
}  // namespace tenon::precision

TENON_PASS(widen,
           tenon::precision::Widen,
           "precision.widen",
           "float16 and bfloat16 become float32",
           R"({
  "properties": {
    "interface": {"type": "string", "enum": ["keep", "float32"], "default": "keep",
                  "description": "types of inputs and outputs: as they are, behind casts, or float32"}}})")
