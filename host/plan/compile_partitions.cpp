// SPDX-License-Identifier: Apache-2.0
// Partitions by the backends that claim them, or by the next ones where a compiler fails.
#include <algorithm>
#include <unordered_set>

#include "graph/edit.hpp"
#include "graph/op_table.hpp"
#include "plan/assumptions.hpp"
#include "plan/open_sizes.hpp"
#include "plan/partition.hpp"
#include "services/trace.hpp"

namespace tenon::host {
namespace {

// Whether a partition with all nodes, cut out of the graph, would be the graph again.
bool is_whole(const tn_graph& graph) {
  const Tables& t = *graph.tables;
  auto is_read = [&](tn_value_id id) { return !t.values.find(id)->uses.empty(); };
  auto is_made_once = [&](const Output& output) {
    const Value& value = *t.values.find(output.value);
    return value.producer != 0 && value.as_output == 1;
  };
  return t.states.empty() && std::ranges::all_of(t.inputs, is_read) &&
         std::ranges::all_of(t.outputs, is_made_once);
}

// What others read besides results that nodes outside of the cut read.
Status lend(tn_graph* cut, const tn_graph& whole, const std::vector<tn_value_id>& lent) {
  if (lent.empty()) return {};
  TN_TRY(edit, begin_edit(cut));
  for (tn_value_id id : lent) {
    const std::string& name = *whole.tables->values.find(id)->name;
    const tn_value_id ours = edit->tables().find_value(name);
    if (edit->tables().values.find(ours)->as_output == 0) TN_CHECK(edit->add_output(name, ours));
  }
  return edit->commit();
}

class Compiler {
 public:
  Compiler(Compiled* bound, bool spares_constants)
      : bound_(bound),
        plan_(bound->plan),
        graph_(bound->graph.get()),
        lost_(bound->compiled_under.lost),
        spares_constants_(spares_constants) {
    if (bound->is_open) late_sizes_ = LateSizes::kAll;
    if (!plan_->states.empty()) late_sizes_ = LateSizes::kNone;  // states stay with their plan
  }

  Result<std::vector<CompiledPartition>> run() {
    for (;;) {  // each round takes nodes from a backend that had them
      bound_->fallbacks.clear();
      TN_TRY(partitions, split());
      TN_TRY(is_done, compile_all(partitions));
      if (is_done) return std::move(made_);
    }
  }

 private:
  Result<std::vector<Partition>> split() {
    Span span(plan_->trace(), "compile", "partition");
    return partition(graph_, plan_->backends, lost_, late_sizes_, &bound_->fallbacks);
  }

  // False: a backend has lost a partition.
  Result<bool> compile_all(const std::vector<Partition>& partitions) {
    TN_CHECK(begin(partitions));
    if (bound_->is_open && !pays_open(made_))
      return Status(TN_UNIMPLEMENTED, "most nodes read sizes that change");
    for (CompiledPartition& one : made_) {
      if (one.partition.backend < 0 || one.exe) continue;
      spare_constants(one.partition.nodes);
      Status failed = compile_one(one);
      if (failed.ok()) continue;
      if (has_discarded_constants(*graph_)) return failed;
      spare_constants({});  // backends are asked again
      TN_CHECK(lose_partition(one.partition, std::move(failed)));
      return false;
    }
    return true;
  }

  // What the round before has compiled stays.
  Status begin(const std::vector<Partition>& partitions) {
    std::vector<CompiledPartition> before = std::exchange(made_, {});
    for (const Partition& partition : partitions) {
      auto same = std::ranges::find_if(before, [&](const CompiledPartition& one) {
        return one.partition.backend == partition.backend && one.partition.nodes == partition.nodes;
      });
      made_.push_back(same == before.end() ? CompiledPartition() : std::move(*same));
      made_.back().partition = partition;
      if (!partition.is_late() && partition.backend != kLightBackend) continue;
      TN_TRY(cut, cut_late(*graph_, partition.nodes, partition.repeated, late_sizes_));
      TN_CHECK(lend(cut.get(), *graph_, partition.lent));
      made_.back().graph = std::move(cut);
      if (!partition.is_late())
        made_.back().partition.backend = static_cast<int>(plan_->backends.size()) - 1;
    }
    return {};
  }

  // A constant may be discarded if these nodes alone read it and nothing but this graph holds it,
  // as passes over the bound graph make them; others are as they are.
  void spare_constants(const std::vector<tn_node_id>& nodes) const {
    const Tables& t = *graph_->tables;
    if (!spares_constants_ || graph_->tables.use_count() != 1) return;
    const std::unordered_set<tn_node_id> inside(nodes.begin(), nodes.end());
    for (tn_value_id id : t.constants) {
      const Value& value = *t.values.find(id);
      if (!t.values.is_own(id) || !value.constant || !value.constant->has_one_reference()) continue;
      value.constant->is_spare =
          value.as_output == 0 && std::ranges::all_of(value.uses, [&](const Use& use) {
            return inside.contains(use.node);
          });
    }
  }

  Result<Ref<tn_graph>> cut_out(const std::vector<tn_node_id>& nodes) const {
    if (nodes.size() == graph_->tables->order.size() && is_whole(*graph_))
      return Ref<tn_graph>::take(clone(*graph_));
    TN_TRY(cut, extract(*graph_, nodes.data(), nodes.size(), true));
    return Ref<tn_graph>::take(cut);
  }

  // The nodes by themselves as a graph, compiled.
  Status compile_one(CompiledPartition& one) const {
    BackendUse& use = *plan_->backends[one.partition.backend];
    Span span(plan_->trace(), "compile", use.id);
    if (!one.graph) {
      TN_TRY(cut, cut_out(one.partition.nodes));
      TN_CHECK(lend(cut.get(), *graph_, one.partition.lent));
      one.graph = std::move(cut);
    }
    void* exe = nullptr;
    Status compiled = use.called(
        "compile",
        use.table->compile(use.self, one.graph.get(), use.device, use.options.get(), &exe));
    one.exe = Exe(exe, {&use});
    return compiled;
  }

  // Of a partition that is answered with TN_UNIMPLEMENTED, the nodes that the backend cannot
  // compile alone; all when none is at fault alone, or when the failure is another.
  std::vector<std::string> culprits(const Partition& partition, const Status& failed) const {
    std::vector<std::string> all, alone;
    bool asks = failed.code() == TN_UNIMPLEMENTED && partition.nodes.size() > 1;
    for (tn_node_id node : partition.nodes) {
      all.emplace_back(view(graph_service()->node_name(graph_, node)));
      if (!asks) continue;
      CompiledPartition tried{{partition.backend, 0, {node}, {}}, {}, {}};
      if (compile_one(tried).code() == TN_UNIMPLEMENTED) alone.push_back(all.back());
    }
    return alone.empty() ? all : alone;
  }

  // The failure itself, where no other backend can have the nodes.
  Status lose_partition(const Partition& partition, Status failed) {
    if (partition.backend + 1 == static_cast<int>(plan_->backends.size())) return failed;
    lose(*plan_, partition.backend, culprits(partition, failed),
         cat("compile failed: ", failed.text()), &lost_);
    return {};
  }

  Compiled* bound_;
  tn_plan* plan_;
  tn_graph* graph_;
  Lost lost_;
  LateSizes late_sizes_ = LateSizes::kHeavy;
  const bool spares_constants_;
  std::vector<CompiledPartition> made_;
};

}  // namespace

bool has_discarded_constants(const tn_graph& graph) {
  const Tables& t = *graph.tables;
  return std::ranges::any_of(t.constants, [&](tn_value_id id) {
    const Ref<tn_tensor>& constant = t.values.find(id)->constant;
    return constant && constant->is_discarded();
  });
}

Result<std::vector<CompiledPartition>> compile_partitions(Compiled* bound, bool spares_constants) {
  return Compiler(bound, spares_constants).run();
}

}  // namespace tenon::host
