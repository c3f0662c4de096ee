// SPDX-License-Identifier: Apache-2.0
// autodiff.example_norms: the norm of each example's gradient, as private training bounds them
// (Abadi et al., "Deep learning with differential privacy", 2016), from one backward pass over the
// batch. A row says it for its parameters by its column example_norms; pointwise nodes by their
// gradient, which has an entry for each example before it is summed. All other parameters have
// their gradients made for each example: vmap of the gradient of the nodes that read them, or of
// the model where its examples are mixed. A joint graph (joint.hpp) is that of a training step: its
// loss is one number, and an example's gradient what passes through that example.
#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "tenon/sdk/component.hpp"

#include "example_gradients.hpp"
#include "example_models.hpp"
#include "interface.hpp"
#include "joint.hpp"
#include "reverse.hpp"
#include "rules.hpp"

namespace tenon::autodiff {
namespace {

using Squares = std::map<tn_value_id, Value>;        // by parameter: [examples]
using Reasons = std::map<std::string, std::string>;  // by parameter: why its row was not asked
constexpr std::string_view kGradient = "grad/";

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
    made.has_wrt_ = !options.texts("wrt").empty() || !ints_of(options.get("argnums")).empty();
    made.output_ = options.text("output");
    made.each_ = options.flag("each");
    made.only_vmap_ = options.text("by", "rules") == "vmap";
    return made;
  }

  Status run(tn_graph* graph, const Cancel& cancel, Sink& report) {
    const bool is_joint = Joint::of(Graph{graph}).ok();
    tn_graph* before = nullptr;
    if (!is_joint) TN_CHECK(services.graph->clone(graph, &before));
    OwnedGraph original = OwnedGraph::take(before);
    TN_TRY(edit, Edit::begin(graph));
    TN_TRY(which, chosen(edit));
    Result<Reasons> made =
        is_joint ? of_joint(edit, which, cancel) : of_losses(edit, original.view(), which, cancel);
    if (!made.ok()) return std::move(made).status();
    TN_CHECK(drop_dead_nodes(edit));
    TN_CHECK(remove_stand_ins(edit));
    TN_CHECK(inline_calls(edit));
    TN_CHECK(edit.commit());
    return report.write(nlohmann::json{{"by_rules", n_by_rules_}, {"by_vmap", *made}}.dump());
  }

 private:
  // A model that ends in a loss for each example.
  Result<Reasons> of_losses(const EditView& edit,
                            Graph original,
                            uint64_t which,
                            const Cancel& cancel) {
    TN_TRY(wrt, find_wrt(edit, wrt_));
    Value losses = edit.graph().outputs()[which];
    std::string name(edit.graph().output_name(which));
    Type type = losses.type();
    TN_CHECK(expect_float(losses, cat("output ", name)));
    if (!type.ranked || type.rank() != 1 || type.symbols.empty() || type.symbols[0].empty())
      return invalid(cat("output ", name,
                         ": expected a loss for each example of a batch of any size, "
                         "[n]; leave out the mean over the batch, and the size of inputs free"));
    Examples examples = Examples::behind(edit.graph(), losses);
    const bool is_by_node = examples.why_mixed().empty() && !only_vmap_;
    std::vector<Named> of_model;
    Reasons reasons;
    TN_TRY(squares, by_nodes(edit, which, examples, wrt, is_by_node, &reasons, &of_model, cancel));
    if (!of_model.empty())
      TN_CHECK(by_model(edit, original, name, examples, of_model, &squares, cancel));
    TN_CHECK(add_results(edit, examples, losses.dtype(), wrt, squares));
    return reasons;
  }

  // A step's forward and backward pass; a parameter is what it has a gradient of.
  Result<Reasons> of_joint(const EditView& edit, uint64_t which, const Cancel& cancel) {
    Wrt all;
    for (uint64_t i = 0; i < edit.graph().outputs().size(); ++i)
      if (std::string_view name = edit.graph().output_name(i); name.starts_with(kGradient))
        all.names.emplace_back(name.substr(kGradient.size()));
    TN_TRY(parameters_of_step, find_wrt(edit, all));
    TN_TRY(wrt, has_wrt_ ? find_wrt(edit, wrt_) : Result(parameters_of_step));
    Value loss = edit.graph().outputs()[which];
    std::string name(edit.graph().output_name(which));
    TN_CHECK(expect_float(loss, cat("output ", name)));
    std::vector<Value> parameters;
    for (const Named& named : parameters_of_step)
      parameters.push_back(named.value);
    Examples examples = Examples::behind_loss(edit.graph(), loss, parameters);
    if (!examples.why_mixed().empty())
      return unsupported(
          cat("output ", name, ": no example has a gradient of its own: ", examples.why_mixed()));
    std::vector<Named> left;
    Reasons reasons;
    TN_TRY(squares, by_nodes(edit, which, examples, wrt, true, &reasons, &left, cancel));
    if (!left.empty())
      return unsupported(cat("parameter ", left[0].name, ": ", reasons[left[0].name],
                             "; option wrt can leave it out"));
    TN_CHECK(add_results(edit, examples, loss.dtype(), wrt, squares));
    return reasons;
  }

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
    uint64_t n_readers = 0;
    for (uint64_t i = 0; i < value.consumer_count(); ++i)
      if (examples.is_behind(value.consumer(i)) && n_readers++ == 0) *reader = value.consumer(i);
    if (value.is_output() || n_readers != 1) return "it is read in several places";
    std::vector<Value> inputs = reader->inputs();
    if (std::ranges::count(inputs, value) != 1) return "a node reads it twice";
    if (is_composite(*reader) || function_of(*reader)) return "the node that reads it is composite";
    if (!examples.reads(*reader)) return "the node that reads it has no examples";
    for (Value output : reader->outputs())
      if (output && !examples.leads(output.type())) return "its reader's result has no examples";
    return "";
  }

  // What rows give, and, `is_by_node`, gradients by example of the nodes that read what is left;
  // *left: those that have neither.
  Result<Squares> by_nodes(const EditView& edit,
                           uint64_t which,
                           const Examples& examples,
                           const std::vector<Named>& wrt,
                           bool is_by_node,
                           Reasons* reasons,
                           std::vector<Named>* left,
                           const Cancel& cancel) {
    ExampleGradients gradients(edit, examples, cancel);
    Reasons refused;  // those that have no gradient by node either
    std::map<tn_node_id, Reader> readers;
    std::map<tn_value_id, std::string> names;
    for (const Named& named : wrt) {
      names[named.value.id] = named.name;
      Status planned = is_by_node && !examples.has_examples(named.value)
                           ? gradients.plan(named.value)
                           : unsupported("");
      if (!planned.ok()) refused[named.name] = planned.message();
      Node node;
      std::string why = why_no_rule(examples, named, &node);
      if (!why.empty()) {
        reasons->emplace(named.name, why);
        continue;
      }
      Reader& reader = readers[node.id];
      reader.node = node;
      reader.wanted.resize(node.n_inputs(), 0);
      for (uint64_t i = 0; i < node.n_inputs(); ++i)
        if (node.input(i) == named.value) reader.wanted[i] = 1;
    }
    std::vector<Value> results = gradients.results();
    for (const auto& [id, reader] : readers)
      for (Value output : reader.node.outputs())
        if (output && carries_gradient(reader.node, output) &&
            std::ranges::find(results, output) == results.end())
          results.push_back(output);
    TN_TRY(cotangents, cotangents_of(edit, which, results));
    TN_TRY(squares, by_rules(edit, examples, readers, names, cotangents, reasons));
    Builder b(edit);
    n_by_rules_ = wrt.size() - reasons->size();
    for (const Named& named : wrt) {
      auto why = reasons->find(named.name);
      if (why == reasons->end()) continue;
      if (auto no = refused.find(named.name); no != refused.end()) {
        if (!no->second.empty()) why->second = no->second;
        left->push_back(named);
        continue;
      }
      TN_TRY(gradient, gradients.of(named.value, cotangents));
      if (gradient) squares[named.value.id] = sum_of_squares(b, gradient);
    }
    TN_CHECK(b.status());
    return squares;
  }

  using Cotangents = std::unordered_map<tn_value_id, Value>;
  static Result<Cotangents> cotangents_of(const EditView& edit,
                                          uint64_t which,
                                          const std::vector<Value>& results) {
    Cotangents out;
    if (results.empty()) return out;
    Builder b(edit);
    Value losses = edit.graph().outputs()[which];
    Value one = b.number(1, losses.dtype());
    Type type = losses.type();
    Request request{{which}, {type.rank() > 0 ? b.expand_like(one, losses) : one}, results};
    TN_CHECK(b.status());
    TN_TRY(cotangents, reverse(edit, request));
    for (size_t i = 0; i < cotangents.size(); ++i)
      out[results[i].id] = cotangents[i];
    return out;
  }

  static Result<Squares> by_rules(const EditView& edit,
                                  const Examples& examples,
                                  const std::map<tn_node_id, Reader>& readers,
                                  const std::map<tn_value_id, std::string>& names,
                                  const Cotangents& cotangents,
                                  Reasons* reasons) {
    Squares squares;
    for (const auto& [id, reader] : readers) {
      std::vector<Value> given;
      for (Value output : reader.node.outputs()) {
        auto found = output ? cotangents.find(output.id) : cotangents.end();
        given.push_back(found == cotangents.end() ? Value{} : found->second);
      }
      Status done = ask(edit, examples, reader, given, &squares);
      if (!done.ok() && done.code() != TN_UNIMPLEMENTED)
        return std::move(done).in(described(reader.node));
      for (uint64_t i = 0; i < reader.node.n_inputs() && !done.ok(); ++i)
        if (reader.wanted[i])
          reasons->emplace(names.at(reader.node.input(i).id),
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

  Status by_model(const EditView& edit,
                  Graph model,
                  const std::string& output,
                  const Examples& examples,
                  const std::vector<Named>& left,
                  Squares* squares,
                  const Cancel& cancel) const {
    TN_TRY(gradients, gradients_by_model(ctx_, edit, model, output, examples, left, cancel));
    Builder b(edit);
    for (size_t i = 0; i < left.size(); ++i)
      (*squares)[left[i].value.id] = sum_of_squares(b, gradients[i]);
    return b.status();
  }

  Status add_results(const EditView& edit,
                     const Examples& examples,
                     uint32_t dtype,
                     const std::vector<Named>& wrt,
                     const Squares& squares) const {
    Builder b(edit);
    Value total = examples.zeros(b, dtype);
    std::vector<Value> each;
    for (const Named& named : wrt) {
      auto found = squares.find(named.value.id);
      each.push_back(found == squares.end() ? Value{} : b.cast(found->second, dtype));
      if (each.back()) total = b.add(total, each.back());
    }
    Value norms = b.op("Sqrt", {total});
    TN_CHECK(b.status());
    for (size_t i = 0; i < wrt.size() && each_; ++i) {
      Value own = each[i] ? each[i] : examples.zeros(b, dtype);
      TN_CHECK(b.status());
      TN_CHECK(edit.output(cat("example_squares/", wrt[i].name), own));
    }
    return edit.output("example_norms", norms);
  }

  tn_ctx* ctx_ = nullptr;
  Wrt wrt_;
  std::string output_;
  bool has_wrt_ = false, each_ = false, only_vmap_ = false;
  size_t n_by_rules_ = 0;
};

}  // namespace
}  // namespace tenon::autodiff

TENON_PASS(example_norms,
           tenon::autodiff::ExampleNorms,
           "autodiff.example_norms",
           "the norm of each example's gradient by all of wrt together",
           "{\"properties\": {" AUTODIFF_WRT_OPTIONS R"(,
  "output": {"type": "string", "description": "a loss for each example, or the one of a step; the first output"},
  "each": {"type": "boolean", "default": false,
           "description": "the squared norms by each of wrt as outputs, too"},
  "by": {"type": "string", "enum": ["rules", "vmap"], "default": "rules",
         "description": "rows' rules where there are, or each example's gradient for all"}}})")
