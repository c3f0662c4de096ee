// SPDX-License-Identifier: Apache-2.0
#include "sizes/late_nodes.hpp"

#include <algorithm>
#include <utility>

#include "graph/edit.hpp"
#include "graph/op_table.hpp"

namespace tenon::host {
namespace {

// What each open size is taken for, and the work at which the last resort takes about as long as a
// compiler takes for a small plan.
constexpr int64_t kSupposedSize = 64;
constexpr double kLeastFlops = 1 << 23;
// Of one node: a few operations with each number of some rows of a mask.
constexpr double kMostLightFlops = 1 << 12, kMostLightBytes = 1 << 14;
constexpr uint32_t kNotLight = TN_OP_RANDOM | TN_OP_STATEFUL | TN_OP_CONTROL;

// others: what the open sizes behind the first one of a value are taken for.
TypeRef supposed(const TypeRef& type, int64_t others) {
  if (type->kind != TN_KIND_TENSOR || type->rank == TN_RANK_UNKNOWN) return type;
  Type out = *type;
  int64_t size = kSupposedSize;
  for (int64_t& dim : out.dims)
    if (dim < 0) dim = std::exchange(size, others);
  out.symbols.clear();
  return seal(std::move(out));
}

// The values that the nodes read and make.
template <class Visit>
void each_value(const Tables& tables, const std::vector<tn_node_id>& nodes, Visit visit) {
  for (tn_node_id id : nodes) {
    const Node& node = *tables.nodes.find(id);
    for (const std::vector<tn_value_id>* list : {&node.inputs, &node.outputs})
      for (tn_value_id each : *list)
        if (each) visit(each);
  }
}

// A view of the graph in which all that the nodes read and make has sizes.
Ref<tn_graph> with_supposed_sizes(const tn_graph& graph,
                                  const std::vector<tn_node_id>& nodes,
                                  int64_t others) {
  auto tables = std::make_shared<Tables>(*graph.tables);
  each_value(*graph.tables, nodes, [&](tn_value_id id) {
    Value* value = tables->values.edit(id);
    value->type = supposed(value->type, others);
  });
  return Ref<tn_graph>::take(new_graph(graph.ctx, std::move(tables)));
}

struct Work {
  double flops = 0, bytes = 0;
};
// With supposed sizes.
Work work_of(const tn_graph& sized, tn_node_id id) {
  Work work;
  const tn_op* row = op_service()->of(&sized, id);
  if (!row || !row->cost ||
      !Status(row->cost(row->self, &sized, id, &work.flops, &work.bytes)).ok())
    return {};
  return work;
}

// Whether it pays to compile them for each run's sizes.
bool are_heavy(const tn_graph& graph, const std::vector<tn_node_id>& nodes) {
  const Ref<tn_graph> sized = with_supposed_sizes(graph, nodes, kSupposedSize);
  double sum = 0;
  for (tn_node_id id : nodes)
    sum += work_of(*sized.get(), id).flops;
  return sum >= kLeastFlops;
}

bool have_lists(const Tables& tables, const std::vector<tn_node_id>& nodes) {
  bool out = false;
  each_value(tables, nodes, [&](tn_value_id id) {
    out = out || tables.values.find(id)->type->kind != TN_KIND_TENSOR;
  });
  return out;
}

// Late nodes with little to compute, behind no others. Numbers go with those that read them. Where
// sizes are left open most nodes do not see them, so that hardly a value has two of them: what
// looks open beside the first is taken for 1.
void spare_light(Assignment& all, const Lateness& lateness, const std::vector<tn_node_id>& late) {
  const Tables& tables = *all.graph->tables;
  const Ref<tn_graph> sized = with_supposed_sizes(*all.graph, late, 1);
  const auto backend_of = [&](tn_node_id id) -> int& { return all.backend[all.index.at(id)]; };
  for (tn_node_id id : late) {
    const tn_op* row = op_service()->of(all.graph, id);
    const Work work = work_of(*sized.get(), id);
    const bool runs_there =
        row && (row->ref || row->expr.len > 0) && (row->traits & kNotLight) == 0;
    const bool is_light = work.flops <= kMostLightFlops && work.bytes <= kMostLightBytes;
    const auto is_late = [&](tn_value_id in) {
      const tn_node_id producer = in ? tables.values.find(in)->producer : 0;
      return producer && backend_of(producer) == kLateBackend && !lateness.is_number(producer);
    };
    if (!lateness.is_number(id) && runs_there && is_light &&
        std::ranges::none_of(tables.nodes.find(id)->inputs, is_late))
      backend_of(id) = kLightBackend;
  }
  for (size_t i = late.size(); i-- > 0;) {
    const auto is_read = [&](tn_value_id output) {
      const Value& value = *tables.values.find(output);
      return value.as_output > 0 || std::ranges::any_of(value.uses, [&](const Use& use) {
               return backend_of(use.node) != kLateBackend;
             });
    };
    if (lateness.is_number(late[i]) &&
        std::ranges::any_of(tables.nodes.find(late[i])->outputs, is_read))
      backend_of(late[i]) = kLightBackend;
  }
}

// Numbers that late nodes alone read are repeated by each partition that reads them.
void drop_repeated(Assignment& all, const Lateness& lateness) {
  const Tables& tables = *all.graph->tables;
  for (size_t i = all.nodes.size(); i-- > 0;) {
    if (all.backend[i] != kLateBackend || !lateness.is_number(all.nodes[i])) continue;
    auto is_elsewhere = [&](tn_value_id id) {
      const Value& value = *tables.values.find(id);
      return value.as_output > 0 || std::ranges::any_of(value.uses, [&](const Use& use) {
               const int reader = all.backend[all.index.at(use.node)];
               const bool repeats = reader == kLateBackend && !lateness.is_number(use.node);
               return reader != kRepeated && !repeats;
             });
    };
    if (!std::ranges::any_of(tables.nodes.find(all.nodes[i])->outputs, is_elsewhere))
      all.backend[i] = kRepeated;
  }
}

}  // namespace

void assign_late(Assignment& all, const BackendUses& backends, LateSizes which) {
  if (which == LateSizes::kNone) return;
  const Lateness lateness(*all.graph);
  std::vector<tn_node_id> late;
  for (size_t i = 0; i < all.nodes.size(); ++i) {
    const int backend = all.backend[i];
    if (backend < 0 || !lateness.is_late(all.nodes[i])) continue;
    const bool is_last = backend > 0 && backends[backend]->last_resort;
    if (is_last || which == LateSizes::kAll) late.push_back(all.nodes[i]);
  }
  if (late.empty() || have_lists(*all.graph->tables, late)) return;
  if (which == LateSizes::kHeavy && !are_heavy(*all.graph, late)) return;
  for (tn_node_id id : late)
    all.backend[all.index[id]] = kLateBackend;
  std::erase_if(all.groups, [&](const std::vector<size_t>& group) {
    return std::ranges::any_of(group, [&](size_t i) { return all.backend[i] == kLateBackend; });
  });
  if (which == LateSizes::kAll && backends.back()->last_resort) spare_light(all, lateness, late);
  drop_repeated(all, lateness);
}

std::vector<tn_node_id> numbers_for(const tn_graph& graph,
                                    const Lateness& lateness,
                                    const std::vector<tn_node_id>& nodes) {
  std::unordered_set<tn_node_id> there(nodes.begin(), nodes.end());
  std::vector<tn_node_id> out, next = nodes;
  while (!next.empty()) {
    const Node& node = *graph.tables->nodes.find(next.back());
    next.pop_back();
    for (tn_value_id input : node.inputs) {
      const tn_node_id producer = input ? graph.tables->values.find(input)->producer : 0;
      if (!producer || !lateness.is_number(producer) || !there.insert(producer).second) continue;
      out.push_back(producer);
      next.push_back(producer);
    }
  }
  return out;
}

Result<Ref<tn_graph>> cut_late(const tn_graph& graph,
                               std::vector<tn_node_id> nodes,
                               const std::vector<tn_node_id>& repeated,
                               LateSizes which) {
  nodes.insert(nodes.end(), repeated.begin(), repeated.end());
  TN_TRY(raw, extract(graph, nodes.data(), nodes.size(), true));
  Ref<tn_graph> cut = Ref<tn_graph>::take(raw);
  TN_TRY(edit, begin_edit(cut.get()));
  for (uint64_t i = edit->tables().outputs.size(); i-- > 0;) {
    const Value& output = *edit->tables().values.find(edit->tables().outputs[i].value);
    const tn_node_id producer =
        graph.tables->values.find(graph.tables->find_value(*output.name))->producer;
    if (std::ranges::count(repeated, producer)) TN_CHECK(edit->remove_output(i));
  }
  if (which == LateSizes::kAll) edit->forget_declared_sizes();  // those of earlier runs
  TN_CHECK(edit->commit());
  return cut;
}

}  // namespace tenon::host
