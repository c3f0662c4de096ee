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
#include "example_rules.hpp"
#include "joint.hpp"
#include "reverse.hpp"
#include "rules.hpp"

namespace tenon::autodiff {
namespace {

constexpr std::string_view kGradient = "grad/";

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
    made.clip_ = options.number("clip", 0);
    made.inputs_ = options.texts("examples");
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
    Result<Report> made =
        is_joint ? of_joint(edit, which, cancel) : of_losses(edit, original.view(), which, cancel);
    if (!made.ok()) return std::move(made).status();
    TN_CHECK(drop_dead_nodes(edit));
    TN_CHECK(remove_stand_ins(edit));
    TN_CHECK(inline_calls(edit));
    TN_CHECK(edit.commit());
    return report.write(nlohmann::json{
        {"by_rules", made->by_rules}, {"by_vmap", made->by_vmap}, {"loops", made->loops}}
                            .dump());
  }

 private:
  struct Report {
    size_t by_rules = 0;
    Reasons by_vmap;
    std::vector<std::string> loops;
  };
  struct Found {
    ExampleGradients gradients;  // where each parameter is read
    Cotangents cotangents;
    Squares squares;
    std::vector<Named> left;  // without squares
    Report report;
  };

  // A model that ends in a loss for each example.
  Result<Report> of_losses(const EditView& edit,
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
    if (clip_ > 0 || !inputs_.empty())
      return invalid(cat("option ", clip_ > 0 ? "clip" : "examples",
                         ": expected a graph with gradients (outputs grad/NAME), as ",
                         "autodiff.value_and_grad makes it, got one without"));
    TN_TRY(found, by_nodes(edit, which, examples, wrt, is_by_node, cancel));
    if (!found.left.empty())
      TN_CHECK(by_model(edit, original, name, examples, found.left, &found.squares, cancel));
    TN_CHECK(add_results(edit, examples, wide(losses), wrt, found.squares).status());
    return std::move(found.report);
  }

  // A step's forward and backward pass; a parameter is what it has a gradient of.
  Result<Report> of_joint(const EditView& edit, uint64_t which, const Cancel& cancel) {
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
    TN_CHECK(check_inputs(edit.graph()));
    Examples examples = Examples::behind_loss(edit.graph(), loss, parameters, inputs_);
    TN_CHECK(check_lengths(edit.graph(), examples));
    if (!examples.why_mixed().empty())
      return unsupported(
          cat("output ", name, ": no example has a gradient of its own: ", examples.why_mixed()));
    TN_TRY(found, by_nodes(edit, which, examples, wrt, true, cancel));
    if (!found.left.empty())
      return unsupported(cat("parameter ", found.left[0].name, ": ",
                             found.report.by_vmap[found.left[0].name],
                             "; option wrt can leave it out"));
    Builder b(edit);
    const uint32_t dtype = wide(loss);
    Value n = b.cast(examples.count(b), dtype);
    for (auto& [id, square] : found.squares)
      square = b.mul(b.cast(square, dtype), b.mul(n, n));
    TN_CHECK(b.status());
    TN_TRY(norms, add_results(edit, examples, dtype, wrt, found.squares));
    if (clip_ > 0) TN_CHECK(clip(edit, norms, parameters_of_step, wrt, &found));
    return std::move(found.report);
  }

  // Gradients of the step in which no example counts more than `clip`.
  Status clip(const EditView& edit,
              Value norms,
              const std::vector<Named>& parameters,
              const std::vector<Named>& wrt,
              Found* found) const {
    if (wrt.size() != parameters.size())
      return invalid(cat("option clip: expected all ", parameters.size(),
                         " parameters, got those of option wrt, ", wrt.size()));
    Builder b(edit);
    // A norm of 0 has no bound: x / 0 is more than 1.
    Value shares =
        b.op("Min", {b.number(1, norms.dtype()), b.div(b.number(clip_, norms.dtype()), norms)});
    TN_CHECK(b.status());
    std::map<std::string, Value> clipped;
    for (const Named& named : parameters) {
      TN_CHECK(found->gradients.plan(named.value).in(cat("option clip: parameter ", named.name)));
      TN_TRY(gradient, found->gradients.weighted(named.value, shares, found->cotangents));
      clipped[cat(kGradient, named.name)] = gradient;
    }
    for (uint64_t i = 0; i < edit.graph().outputs().size(); ++i) {
      auto at = clipped.find(std::string(edit.graph().output_name(i)));
      if (at != clipped.end() && at->second)
        TN_CHECK(services.edit->set_output(edit.raw, i, at->second.id));
    }
    return {};
  }

  // Squares of 16-bit numbers overflow: 256 examples, squared, are more than float16 holds.
  static uint32_t wide(Value loss) { return loss.dtype() == TN_F64 ? TN_F64 : TN_F32; }

  // Inputs of examples, by name: another one may be as long as the batch by chance.
  Status check_inputs(Graph graph) const {
    for (const std::string& name : inputs_) {
      const std::vector<Value> inputs = graph.inputs();
      if (std::ranges::none_of(inputs, [&](Value v) { return v.name() == name; }))
        return invalid(cat("option examples: the graph has no input '", name, "'"));
    }
    return {};
  }

  Status check_lengths(Graph graph, const Examples& examples) const {
    for (const std::string& name : inputs_)
      if (!examples.has_examples(graph.find(name)))
        return invalid(cat("option examples: input ", name, ": expected data with as many ",
                           "examples along its first axis as the first input that is named, got ",
                           "another length, a parameter or a state"));
    return {};
  }

  // States come first among the outputs of a step.
  Result<uint64_t> chosen(const EditView& edit) const {
    std::vector<Value> outputs = edit.graph().outputs();
    if (outputs.empty()) return invalid("the graph has no outputs");
    uint64_t first = 0;
    while (first + 1 < outputs.size() && is_state_output(edit, outputs[first]))
      ++first;
    if (output_.empty()) return first;
    TN_TRY(found, find_outputs(edit, {output_}));
    return found[0];
  }

  // The same numbers in other places, as transposed weights are: their gradients have one norm.
  static bool only_moves(Node node) {
    const tn_op* row = node.row();
    return row && node.n_outputs() == 1 &&
           ((row->traits & TN_OP_VIEW) != 0 || Stated(node).family() == TN_COUPLING_PERMUTE);
  }

  // Why no rule can be asked for this parameter; empty: `reader` is the node that reads it, moved
  // to *as.
  std::string why_no_rule(const Examples& examples,
                          const Named& named,
                          Node* reader,
                          Value* as) const {
    if (only_vmap_) return "option by";
    if (!examples.why_mixed().empty()) return examples.why_mixed();
    Value& value = *as = named.value;
    if (examples.has_examples(value)) return "it differs by example";
    for (bool is_moved = true; is_moved;) {
      uint64_t n_readers = 0;
      for (uint64_t i = 0; i < value.consumer_count(); ++i)
        if (examples.is_behind(value.consumer(i)) && n_readers++ == 0) *reader = value.consumer(i);
      if (value.is_output() || n_readers != 1) return "it is read in several places";
      is_moved = !examples.reads(*reader) && only_moves(*reader) && reader->input(0) == value;
      if (is_moved) value = reader->output();
    }
    std::vector<Value> inputs = reader->inputs();
    if (std::ranges::count(inputs, value) != 1) return "a node reads it twice";
    if (is_composite(*reader) || function_of(*reader)) return "the node that reads it is composite";
    if (!examples.reads(*reader)) return "the node that reads it has no examples";
    for (Value output : reader->outputs())
      if (output && !examples.leads(output.type())) return "its reader's result has no examples";
    return "";
  }

  // What rows give, and, `is_by_node`, gradients by example of the nodes that read what is left.
  Result<Found> by_nodes(const EditView& edit,
                         uint64_t which,
                         const Examples& examples,
                         const std::vector<Named>& wrt,
                         bool is_by_node,
                         const Cancel& cancel) const {
    Found out{{edit, examples, cancel}, {}, {}, {}, {}};
    ExampleGradients& gradients = out.gradients;
    Reasons* const reasons = &out.report.by_vmap;
    Reasons refused;  // those that have no gradient by node either
    std::map<tn_node_id, Reader> readers;
    std::map<tn_value_id, Named> parameters;  // by the value that a row is asked for
    for (const Named& named : wrt) {
      Status planned = is_by_node && !examples.has_examples(named.value)
                           ? gradients.plan(named.value)
                           : unsupported("");
      if (!planned.ok()) refused[named.name] = planned.text();
      Node node;
      Value as;
      std::string why = why_no_rule(examples, named, &node, &as);
      if (!why.empty()) {
        reasons->emplace(named.name, why);
        continue;
      }
      parameters[as.id] = named;
      Reader& reader = readers[node.id];
      reader.node = node;
      reader.wanted.resize(node.n_inputs(), 0);
      for (uint64_t i = 0; i < node.n_inputs(); ++i)
        if (node.input(i) == as) reader.wanted[i] = 1;
    }
    std::vector<Value> results = gradients.results();
    for (const auto& [id, reader] : readers)
      for (Value output : reader.node.outputs())
        if (output && carries_gradient(reader.node, output) &&
            std::ranges::find(results, output) == results.end())
          results.push_back(output);
    TN_TRY(cotangents, cotangents_of(edit, which, results));
    TN_TRY(squares, by_rules(edit, examples, readers, parameters, cotangents, reasons));
    Builder b(edit);
    out.report.by_rules = wrt.size() - reasons->size();
    for (const Named& named : wrt) {
      auto why = reasons->find(named.name);
      if (why == reasons->end()) continue;
      if (auto no = refused.find(named.name); no != refused.end()) {
        if (!no->second.empty()) why->second = no->second;
        out.left.push_back(named);
        continue;
      }
      TN_TRY(gradient, gradients.of(named.value, cotangents));
      if (gradient) squares[named.value.id] = sum_of_squares(b, gradient);
    }
    TN_CHECK(b.status());
    out.report.loops = gradients.loops();
    out.cotangents = std::move(cotangents);
    out.squares = std::move(squares);
    return Result<Found>(std::move(out));
  }

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

  Result<Value> add_results(const EditView& edit,
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
    TN_CHECK(edit.output("example_norms", norms));
    return norms;
  }

  tn_ctx* ctx_ = nullptr;
  Wrt wrt_;
  std::string output_;
  std::vector<std::string> inputs_;  // that have examples; empty: found by their sizes
  bool has_wrt_ = false, each_ = false, only_vmap_ = false;
  double clip_ = 0;  // 0: not
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
  "clip": {"type": "number", "minimum": 0, "default": 0,
           "description": "of a joint graph: gradients in which no example has a norm above it; 0: as they are"},
  "examples": {"type": ["array", "string"], "items": {"type": "string"},
               "description": "of a joint graph: inputs whose first axis is that of examples; without it all that are as long as the first input"},
  "by": {"type": "string", "enum": ["rules", "vmap"], "default": "rules",
         "description": "rows' rules where there are, or each example's gradient for all"}}})")
