// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a part of a graph to an Executable, where a backend brings kernels for some operators and
// the kit does the rest: pointwise nodes in groups, views without a copy, all others by their rows.

#include "tenon/sdk/backend/epilogue.hpp"
#include "tenon/sdk/backend/evaluate.hpp"
#include "tenon/sdk/backend/executable.hpp"
#include "tenon/sdk/backend/groups.hpp"
#include "tenon/sdk/backend/rows.hpp"

namespace tenon::backend {

// A backend's kernel for one operator.
struct Kernel {
  std::string_view op;
  // Empty: the kernel takes the node, whose types and shapes are known. Else the kit does.
  std::string (*why_not)(const Graph&, const Node&);
  // Which axis of the result are channels, to which an epilogue's bias belongs; negative: from the
  // end.
  int channel_axis;
  // Whether the kernel, for `node`, computes what is behind it along with its result; NULL:
  // nothing.
  bool (*takes)(const Graph&, const Node& node, const EpilogueOp&, const Epilogue& so_far);
  // The step without its name, reads and writes: it reads the node's inputs and then the `other` of
  // each epilogue operation that has one, and writes the epilogue's result.
  std::function<Result<Step>(const Graph&, const Node&, const Epilogue&)> make;
};

using Kernels = std::vector<Kernel>;

// Takes what a kernel or the kit computes, and says of the others why not.
Status claim(const tn_graph* graph, const tn_claims& claims);
Result<std::unique_ptr<Executable>> compile(tn_ctx* ctx,
                                            const tn_graph* part,
                                            const Kernels& kernels);

// ---- definitions

inline Status claim(const tn_graph* source, const tn_claims& claims) {
  TN_TRY(graph, import_graph(source));
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    tenon::Node node = graph.nodes[i].source;
    std::string why = why_no_row(node);
    if (why.empty()) why = why_not_static(graph, static_cast<int>(i));
    if (why.empty()) {
      claims.take(claims.ctx, &node.id, 1);
    } else {
      claims.refuse(claims.ctx, node.id, str(why));
    }
  }
  return {};
}

namespace detail {

// Results that a row's kernel asks for, in the memory that is planned for them.
struct Planned {
  const Call& call;
  tn_outputs raw{this, get};

  static tn_status* get(void* self, uint64_t i, const DLTensor* proto, DLTensor* out) {
    const Call& call = static_cast<Planned*>(self)->call;
    return guard([&]() -> Status {
      if (i >= call.out.size() || !call.out[i])
        return {TN_INTERNAL, cat("the kernel wrote output ", i)};
      const DLTensor& planned = *call.out[i];
      if (dtype_of(*proto) != dtype_of(planned) ||
          !std::ranges::equal(shape_of(*proto), shape_of(planned)))
        return {TN_INTERNAL, cat("output ", i, ": the kernel asks for another type or shape")};
      *out = planned;
      return {};
    });
  }
};

class Compiler {
 public:
  Compiler(tn_ctx* ctx, const Kernels& kernels) : ctx_(ctx), kernels_(kernels) {}

  Result<std::unique_ptr<Executable>> run(const tn_graph* part) {
    TN_TRY(owned, OwnedGraph::copy_of(part));
    TN_CHECK(expand_composites(owned.get(), [&](tenon::Node node) { return has_kernel(node); }));
    TN_TRY(imported, import_graph(owned.get()));
    graph_ = std::move(imported);
    own_.resize(graph_.nodes.size());
    is_absorbed_.assign(graph_.nodes.size(), false);
    alias_.assign(graph_.values.size(), kNone);
    for (size_t i = 0; i < graph_.nodes.size(); ++i)
      TN_CHECK(add_own(static_cast<int>(i)));
    auto is_pointwise = [&](int node) { return this->is_pointwise(node); };
    Groups groups = Groups::find(graph_, is_pointwise, [&](int node, int root, size_t n, size_t) {
      return n <= kMostNodes && is_alike(node, root);
    });
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      int index = static_cast<int>(i);
      if (is_absorbed_[i] || groups.root_of(index) != index) continue;
      if (own_[i]) {
        steps_.push_back(std::move(*own_[i]));
      } else if (is_pointwise(index)) {
        add_group(groups.members(index));
      } else {
        TN_CHECK(add_row(index));
      }
    }
    return Executable::make(ctx_, std::move(graph_), std::move(steps_), std::move(alias_),
                            std::move(owned));
  }

 private:
  static constexpr size_t kMostNodes = 64;

  bool has_kernel(tenon::Node node) const {
    return node.domain().empty() &&
           std::ranges::any_of(kernels_, [&](const Kernel& k) { return node.is(k.op); });
  }

  // The step of a backend's own kernel, with what it takes along.
  Status add_own(int index) {
    auto at = static_cast<size_t>(index);
    const Node& node = graph_.nodes[at];
    for (const Kernel& kernel : kernels_) {
      if (is_absorbed_[at] || kernel.op != node.op || !kernel.why_not(graph_, node).empty())
        continue;
      const Dims& dims = graph_.value(node.outputs[0]).dims;
      auto rank = static_cast<int>(dims.size());
      auto axis = static_cast<size_t>(kernel.channel_axis < 0 ? rank + kernel.channel_axis
                                                              : kernel.channel_axis);
      Epilogue epilogue =
          find_epilogue(graph_, index, axis, [&](const auto& op, const auto& so_far) {
            // Another operand must be there before the step runs.
            bool is_there = op.other == kNone || graph_.value(op.other).producer < index;
            return kernel.takes && is_there && kernel.takes(graph_, node, op, so_far);
          });
      TN_TRY(step, kernel.make(graph_, node, epilogue));
      describe(&step, node);
      step.reads = node.inputs;
      for (const EpilogueOp& op : epilogue.ops) {
        is_absorbed_[static_cast<size_t>(op.node)] = true;
        step.name += cat("+", graph_.node(op.node).name);
        if (op.other != kNone) step.reads.push_back(op.other);
      }
      step.writes = {epilogue.result};
      own_[at] = std::move(step);
      return {};
    }
    return {};
  }

  static void describe(Step* step, const Node& node) {
    step->name = node.name;
    step->op = node.op;
    Status ignored = cost_of(node.source, &step->flops, &step->bytes);  // for people
  }

  bool is_pointwise(int index) const {
    auto at = static_cast<size_t>(index);
    const Node& node = graph_.nodes[at];
    return !is_absorbed_[at] && !own_[at] && !node.expr.empty() && node.outputs.size() == 1;
  }
  // Numbers of both are computed alike, and nothing is rounded between them that would have been.
  bool is_alike(int index, int root) const {
    const Node &node = graph_.node(index), &last = graph_.node(root);
    uint32_t dtype = graph_.value(node.outputs[0]).dtype;
    bool is_exact = dtype == TN_F32 || dtype == TN_F64 || dtype == TN_BOOL || node.bits > 0;
    return is_exact && node.domain == last.domain && node.bits == last.bits;
  }

  void add_group(const std::vector<int>& members) {
    GroupProgram group = join_programs(graph_, members);
    const Node& last = graph_.node(members.back());
    Step step;
    describe(&step, last);
    for (int member : members)
      if (member != members.back()) step.name = cat(graph_.node(member).name, "+", step.name);
    step.kernel = "expression";
    step.reads = group.inputs;
    step.writes = {last.outputs[0]};
    step.work = [expr = std::move(group.expr), domain = last.domain,
                 bits = last.bits](const Call& call) {
      tn_expr_program program{expr.data(), expr.size(), static_cast<uint32_t>(call.in.size()),
                              domain,      bits,        0};
      return run_program(call.ctx, program, call.in, *call.out[0]);
    };
    steps_.push_back(std::move(step));
  }

  Status add_row(int index) {
    const Node& node = graph_.node(index);
    const tn_op* row = node.source.row();
    if (!row || !row->ref)
      return unsupported(cat("node ", node.name, ": ", why_no_row(node.source)));
    bool is_view = (row->traits & TN_OP_VIEW) && node.outputs.size() == 1 &&
                   graph_.value(node.outputs[0]).n_outputs == 0;
    if (is_view) {
      alias_[static_cast<size_t>(node.outputs[0])] = node.inputs[0];
      return {};
    }
    Step step;
    describe(&step, node);
    step.kernel = "row";
    step.reads = node.inputs;
    step.writes = node.outputs;
    step.work = [source = node.source, row](const Call& call) {
      Planned planned{call};
      return call_row(call.ctx, source, row, call.in, &planned.raw, call.cancel);
    };
    steps_.push_back(std::move(step));
    return {};
  }

  tn_ctx* ctx_;
  const Kernels& kernels_;
  Graph graph_;
  std::vector<std::optional<Step>> own_;  // by node
  std::vector<bool> is_absorbed_;         // by node: in another's epilogue
  std::vector<int> alias_;
  std::vector<Step> steps_;
};

}  // namespace detail

inline Result<std::unique_ptr<Executable>> compile(tn_ctx* ctx,
                                                   const tn_graph* part,
                                                   const Kernels& kernels) {
  return detail::Compiler(ctx, kernels).run(part);
}

}  // namespace tenon::backend
