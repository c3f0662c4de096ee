// SPDX-License-Identifier: Apache-2.0
// autodiff.example_norms: the norm of each example's gradient, as private training bounds them
// (Abadi et al., "Deep learning with differential privacy", 2016), from one backward pass over the
// batch. A row says it for its parameters by its column example_norms; pointwise nodes by their
// gradient, which has an entry for each example before it is summed. All other parameters have
// their gradients made for each example: vmap of grad.
#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "tenon/sdk/component.hpp"

#include "bodies.hpp"
#include "examples.hpp"
#include "interface.hpp"
#include "reverse.hpp"
#include "rules.hpp"

namespace tenon::autodiff {
namespace {

using Squares = std::map<tn_value_id, Value>;  // by parameter: [examples]

std::vector<int64_t> axes_from(size_t first, size_t rank) {
  std::vector<int64_t> axes;
  for (size_t i = first; i < rank; ++i)
    axes.push_back(static_cast<int64_t>(i));
  return axes;
}

Value sum_of_squares(Builder& b, Value x) {
  std::vector<int64_t> axes = axes_from(1, b.ranked(x, "example_norms").rank());
  return b.op("ReduceSumSquare", {x, b.ints(axes)}, {{"keepdims", 0}, {"noop_with_empty_axes", 1}});
}

// One node that reads parameters, which nothing else does.
struct Reader {
  Node node;
  std::vector<uint8_t> wanted;  // by input
};

class ExampleNorms {
 public:
  static Result<ExampleNorms> create(tn_ctx* ctx, const Options& options) {
    ExampleNorms made;
    TN_TRY(wrt, Wrt::from(options));
    made.ctx_ = ctx;
    made.wrt_ = wrt;
    made.output_ = options.text("output");
    made.each_ = options.flag("each");
    made.only_vmap_ = options.text("by", "rules") == "vmap";
    return made;
  }

  Status run(tn_graph* graph, const Cancel& cancel, Sink& report) {
    tn_graph* before = nullptr;
    TN_CHECK(services.graph->clone(graph, &before));
    OwnedGraph original = OwnedGraph::take(before);
    TN_TRY(edit, Edit::begin(graph));
    TN_TRY(wrt, find_wrt(edit, wrt_));
    TN_TRY(which, chosen(edit));
    Value losses = edit.graph().outputs()[which];
    std::string name(edit.graph().output_name(which));
    Type type = losses.type();
    TN_CHECK(expect_float(losses, cat("output ", name)));
    if (!type.ranked || type.rank() != 1 || type.symbols.empty() || type.symbols[0].empty())
      return invalid(cat("output ", name,
                         ": expected a loss for each example of a batch of any size, "
                         "[n]; leave out the mean over the batch, and the size of inputs free"));
    Examples examples = Examples::behind(edit.graph(), losses);
    std::map<std::string, std::string> by_vmap;  // parameter: why
    TN_TRY(squares, by_rules(edit, which, examples, wrt, &by_vmap));
    if (!by_vmap.empty())
      TN_CHECK(by_gradients(edit, original.view(), name, examples, wrt, squares, cancel));
    TN_CHECK(add_results(edit, losses, wrt, squares));
    TN_CHECK(drop_dead_nodes(edit));
    TN_CHECK(inline_calls(edit));
    TN_CHECK(edit.commit());
    return report.write(
        nlohmann::json{{"by_rules", wrt.size() - by_vmap.size()}, {"by_vmap", by_vmap}}.dump());
  }

 private:
  Result<uint64_t> chosen(const EditView& edit) const {
    if (edit.graph().outputs().empty()) return invalid("the graph has no outputs");
    if (output_.empty()) return uint64_t{0};
    TN_TRY(found, find_outputs(edit, {output_}));
    return found[0];
  }

  // Why no rule can be asked for this parameter; empty: `reader` is the node that reads it.
  std::string why_no_rule(const Examples& examples, const Named& named, Node* reader) const {
    if (only_vmap_) return "option by";
    if (!examples.why_mixed().empty()) return examples.why_mixed();
    Value value = named.value;
    if (examples.has_examples(value)) return "it differs by example";
    if (value.is_output() || value.consumer_count() != 1) return "it is read in several places";
    *reader = value.consumer(0);
    std::vector<Value> inputs = reader->inputs();
    if (std::ranges::count(inputs, value) != 1) return "a node reads it twice";
    if (is_composite(*reader) || function_of(*reader)) return "the node that reads it is composite";
    if (std::ranges::none_of(inputs, [&](Value v) { return v && examples.has_examples(v); }))
      return "the node that reads it has no examples";
    for (Value output : reader->outputs())
      if (output && !examples.leads(output.type())) return "its reader's result has no examples";
    return "";
  }

  // What rules give; `left`: the parameters for which there is none, and why.
  Result<Squares> by_rules(const EditView& edit,
                           uint64_t which,
                           const Examples& examples,
                           const std::vector<Named>& wrt,
                           std::map<std::string, std::string>* left) const {
    std::map<tn_node_id, Reader> readers;
    std::map<tn_value_id, std::string> names;
    for (const Named& named : wrt) {
      Node node;
      std::string why = why_no_rule(examples, named, &node);
      if (!why.empty()) {
        left->emplace(named.name, why);
        continue;
      }
      Reader& reader = readers[node.id];
      reader.node = node;
      reader.wanted.resize(node.n_inputs(), 0);
      for (uint64_t i = 0; i < node.n_inputs(); ++i)
        if (node.input(i) == named.value) reader.wanted[i] = 1;
      names[named.value.id] = named.name;
    }
    Request request{{which}, {}, {}};
    for (const auto& [id, reader] : readers)
      for (Value output : reader.node.outputs())
        if (output && carries_gradient(reader.node, output)) request.wrt.push_back(output);
    Squares squares;
    if (request.wrt.empty()) return squares;
    Builder b(edit);
    Value losses = edit.graph().outputs()[which];
    request.cotangents = {b.expand_like(b.number(1, losses.dtype()), losses)};
    TN_CHECK(b.status());
    TN_TRY(cotangents, reverse(edit, request));
    std::map<tn_value_id, Value> cotangent_of;
    for (size_t i = 0; i < cotangents.size(); ++i)
      cotangent_of[request.wrt[i].id] = cotangents[i];
    for (const auto& [id, reader] : readers) {
      std::vector<Value> given;
      for (Value output : reader.node.outputs())
        given.push_back(output ? cotangent_of[output.id] : Value{});
      Status done = ask(edit, examples, reader, given, &squares);
      if (!done.ok() && done.code() != TN_UNIMPLEMENTED)
        return std::move(done).in(described(reader.node));
      for (uint64_t i = 0; i < reader.node.n_inputs() && !done.ok(); ++i)
        if (reader.wanted[i])
          left->emplace(names[reader.node.input(i).id],
                        cat(described(reader.node), ": ", done.message()));
    }
    return squares;
  }

  // The row's column, or the gradient of a pointwise node before it is summed.
  static Status ask(const EditView& edit,
                    const Examples& examples,
                    const Reader& reader,
                    const std::vector<Value>& cotangents,
                    Squares* squares) {
    if (std::ranges::none_of(cotangents, [](Value v) { return bool(v); })) return {};
    const tn_op* row = reader.node.row();
    std::vector<tn_value_id> found(reader.node.n_inputs(), 0);
    if (row->example_norms) {
      std::vector<tn_value_id> given;
      for (Value cotangent : cotangents)
        given.push_back(cotangent.id);
      TN_CHECK(row->example_norms(row->self, edit.raw, reader.node.id, given.data(),
                                  reader.wanted.data(), found.data()));
      for (size_t i = 0; i < found.size(); ++i)
        if (found[i]) (*squares)[reader.node.input(i).id] = edit.value(found[i]);
      return {};
    }
    if (!(row->traits & TN_OP_POINTWISE)) return unsupported("the row has no example_norms");
    TN_CHECK(differentiate(edit, reader.node, cotangents, reader.wanted, found));
    Builder b(edit);
    for (size_t i = 0; i < found.size(); ++i) {
      if (!reader.wanted[i] || !found[i]) continue;
      Value parameter = reader.node.input(i), gradient = edit.value(found[i]);
      if (!examples.leads(gradient.type())) return unsupported("its gradient has no examples");
      (*squares)[parameter.id] =
          sum_of_squares(b, summed_to(b, gradient, parameter.type(), gradient.type()));
    }
    return b.status();
  }

  // [n, ...] summed where the parameter was broadcast; the axis of examples stays.
  static Value summed_to(Builder& b, Value gradient, const Type& parameter, const Type& type) {
    std::vector<int64_t> axes;
    size_t extra = type.rank() - std::min(type.rank(), parameter.rank());
    for (size_t i = 1; i < type.rank(); ++i)
      if (i < extra || (parameter.dims[i - extra] == 1 && type.dims[i] != 1))
        axes.push_back(static_cast<int64_t>(i));
    return axes.empty() ? gradient : b.sum(gradient, axes);
  }

  // The model of one example, differentiated, then of many.
  Result<OwnedGraph> gradients_of_each(Graph model,
                                       const std::string& output,
                                       const Examples& examples,
                                       const std::vector<Named>& wrt,
                                       const Cancel& cancel) const {
    std::vector<Type> types;
    std::vector<std::unique_ptr<TypeView>> views;
    std::vector<const tn_type*> raw;
    std::string in_axes;
    for (Value input : model.inputs()) {
      types.push_back(input.type());
      if (!examples.leads(types.back())) {
        in_axes += "none,";
        continue;
      }
      in_axes += "0,";
      types.back().dims[0] = 1;
      types.back().symbols[0].clear();
    }
    for (const Type& type : types)
      raw.push_back(views.emplace_back(std::make_unique<TypeView>(type))->get());
    tn_graph* bound = nullptr;
    TN_CHECK(Status(services.graph->bind(model.raw, raw.data(), raw.size(), &bound))
                 .in("the model of one example"));
    OwnedGraph graph = OwnedGraph::take(bound);
    TN_TRY(edit, Edit::begin(bound));
    nlohmann::json names = nlohmann::json::array();
    for (const Named& named : wrt) {
      // A constant as an input: it stays the one of the graph that this is put into.
      std::string name = named.name;
      if (Value constant = edit.graph().find(name); constant && constant.is_constant()) {
        name = cat("parameter/", named.name);
        TN_TRY(input, edit.input(name, constant.type()));
        TN_CHECK(edit.replace(constant, input));
        in_axes += "none,";
      }
      names.push_back(name);
    }
    TN_CHECK(edit.commit());
    in_axes.pop_back();
    auto apply = [&](std::string_view id, const nlohmann::json& options) -> Status {
      TN_TRY(pass, Component::create(ctx_, "tenon.pass/1", id, options.dump()));
      StringSink report;
      return Status(
          pass.table<tn_pass>()->run(pass.self(), graph.get(), cancel.raw(), report.get()));
    };
    TN_CHECK(apply("autodiff.grad", {{"wrt", names}, {"output", output}}));
    TN_CHECK(apply("autodiff.vmap", {{"in_axes", in_axes}, {"axis_name", examples.symbol()}}));
    return graph;
  }

  Status by_gradients(const EditView& edit,
                      Graph model,
                      const std::string& output,
                      const Examples& examples,
                      const std::vector<Named>& wrt,
                      Squares& squares,
                      const Cancel& cancel) const {
    std::vector<Named> left;
    for (const Named& named : wrt)
      if (!squares.count(named.value.id)) left.push_back(named);
    TN_TRY(graph, gradients_of_each(model, output, examples, left, cancel));
    Builder b(edit);
    std::vector<Value> inputs = edit.graph().inputs();
    for (Value& input : inputs)
      if (examples.leads(input.type())) input = b.op("Unsqueeze", {input, b.ints({1})});
    for (const Named& named : left)
      if (named.value.is_constant()) inputs.push_back(named.value);
    TN_CHECK(b.status());
    TN_TRY(gradients, copy_into(edit, graph.view(), inputs));
    for (size_t i = 0; i < left.size(); ++i)
      squares[left[i].value.id] = sum_of_squares(b, gradients[i]);
    return b.status();
  }

  Status add_results(const EditView& edit,
                     Value losses,
                     const std::vector<Named>& wrt,
                     const Squares& squares) const {
    Builder b(edit);
    Value total = b.zeros_like(losses);
    std::vector<Value> each;
    for (const Named& named : wrt) {
      auto found = squares.find(named.value.id);
      each.push_back(found == squares.end() ? Value{} : b.cast(found->second, losses.dtype()));
      if (each.back()) total = b.add(total, each.back());
    }
    Value norms = b.op("Sqrt", {total});
    TN_CHECK(b.status());
    for (size_t i = 0; i < wrt.size() && each_; ++i) {
      Value own = each[i] ? each[i] : b.zeros_like(losses);
      TN_CHECK(b.status());
      TN_CHECK(edit.output(cat("example_squares/", wrt[i].name), own));
    }
    return edit.output("example_norms", norms);
  }

  tn_ctx* ctx_ = nullptr;
  Wrt wrt_;
  std::string output_;
  bool each_ = false, only_vmap_ = false;
};

}  // namespace
}  // namespace tenon::autodiff

TENON_PASS(example_norms,
           tenon::autodiff::ExampleNorms,
           "autodiff.example_norms",
           "the norm of each example's gradient by all of wrt together",
           "{\"properties\": {" AUTODIFF_WRT_OPTIONS R"(,
  "output": {"type": "string", "description": "a loss for each example; the first output"},
  "each": {"type": "boolean", "default": false,
           "description": "the squared norms by each of wrt as outputs, too"},
  "by": {"type": "string", "enum": ["rules", "vmap"], "default": "rules",
         "description": "rows' rules where there are, or each example's gradient for all"}}})")
