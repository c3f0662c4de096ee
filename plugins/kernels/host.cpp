// SPDX-License-Identifier: Apache-2.0
// "kernels.host": a backend on the CPU that is nothing but the fused kernels which a plan names. It
// joins a plan that has the option "kernels", before the backends that run the rest.
#include <unordered_map>

#include "tenon/sdk/backend/cpu_backend.hpp"

#include "sites.hpp"

namespace tenon::kernels {
namespace {

class HostKernels : public backend::CpuBackend<HostKernels> {
 public:
  static constexpr std::string_view kDevice = "CPU, fused kernels of plugins";

  static Result<HostKernels> create(tn_ctx* ctx, const Options& options) {
    HostKernels made(ctx);
    for (const std::string& id : options.texts("kernels")) {
      TN_TRY(kernel, FusedKernel::make(ctx, id));
      made.kernels_.push_back(std::move(kernel));
    }
    return made;
  }

  // Patterns are sought in what the other backends have prepared.
  Status prepare(Sink&) { return {}; }

  Status claim(const tn_graph* graph, int32_t, const tn_claims& claims) {
    std::vector<Refusal> refused;
    TN_TRY(sites, find_sites({graph}, kernels_, &refused));
    for (const Site& site : sites)
      site.as_abi(
          [&](const tn_kernel_site* raw) { claims.take(claims.ctx, raw->nodes, raw->n_nodes); });
    for (const Refusal& one : refused)
      claims.refuse(claims.ctx, one.node.id, str(one.why));
    return {};
  }

  Result<void*> compile(const tn_graph* part, int32_t, const Options&) {
    TN_TRY(owned, OwnedGraph::copy_of(part));
    TN_TRY(graph, backend::import_graph(owned.get()));
    std::vector<Refusal> refused;
    TN_TRY(sites, find_sites(owned.view(), kernels_, &refused));
    TN_TRY(steps, steps_of(graph, sites));
    std::vector<int> alias(graph.values.size(), backend::kNone);
    TN_TRY(made, backend::Executable::make(ctx_, std::move(graph), std::move(steps),
                                           std::move(alias), std::move(owned)));
    return static_cast<void*>(made.release());
  }

 private:
  explicit HostKernels(tn_ctx* ctx) : CpuBackend(ctx), ctx_(ctx) {}

  // One for each site, where its last node stands.
  Result<std::vector<backend::Step>> steps_of(const backend::Graph& graph,
                                              const std::vector<Site>& sites) const {
    std::unordered_map<tn_value_id, int> values;
    std::unordered_map<tn_node_id, const Site*> roots;
    size_t n_covered = 0;
    for (const backend::Node& node : graph.nodes) {
      for (size_t i = 0; i < node.inputs.size(); ++i)
        values[node.source.input(i).id] = node.inputs[i];
      for (size_t i = 0; i < node.outputs.size(); ++i)
        values[node.source.output(i).id] = node.outputs[i];
    }
    for (const Site& site : sites) {
      roots[site.nodes.front().id] = &site;
      n_covered += site.nodes.size();
    }
    if (n_covered != graph.nodes.size())
      return Status(TN_INTERNAL, cat("expected kernels for ", graph.nodes.size(),
                                     " nodes, which they have claimed, got ", n_covered));
    std::vector<backend::Step> steps;
    for (const backend::Node& node : graph.nodes) {
      auto found = roots.find(node.source.id);
      if (found == roots.end()) continue;
      TN_TRY(step, step_of(*found->second));
      for (Value input : found->second->inputs)
        step.reads.push_back(values.at(input.id));
      step.writes = {values.at(node.source.output().id)};
      steps.push_back(std::move(step));
    }
    return steps;
  }

  static Result<backend::Step> step_of(const Site& site) {
    backend::Step step;
    for (size_t i = site.nodes.size(); i-- > 0;) {
      double flops = 0, bytes = 0;
      Status unknown = backend::cost_of(site.nodes[i], &flops, &bytes);  // for people
      step.name += cat(step.name.empty() ? "" : "+", site.nodes[i].name());
      step.flops += flops;
    }
    auto add_bytes = [&](Value value) {
      Type type = value.type();
      step.bytes += static_cast<double>(bytes_of(type.dtype, type.elements()));
    };
    for (Value input : site.inputs)
      add_bytes(input);
    add_bytes(site.nodes.front().output());
    step.op = std::string(site.nodes.front().type());
    step.kernel = site.kernel->id;
    const tn_kernel* table = site.kernel->table();
    void* self = site.kernel->self();
    void* raw = nullptr;
    TN_CHECK(site.as_abi([&](const tn_kernel_site* given) {
      return Status(table->compile(self, given, &raw)).in(site.kernel->id);
    }));
    // Shared, for a std::function is copied.
    std::shared_ptr<void> exe(raw, [table, self](void* made) { table->exe_free(self, made); });
    step.work = [table, self, exe](const backend::Call& call) {
      return Status(
          table->run(self, exe.get(), call.in.data(), call.in.size(), call.out[0], call.cancel));
    };
    return step;
  }

  tn_ctx* ctx_;
  std::vector<FusedKernel> kernels_;
};

}  // namespace
}  // namespace tenon::kernels

TENON_BACKEND(host,
              tenon::kernels::HostKernels,
              "kernels.host",
              "runs the fused kernels of other plugins that a plan names",
              R"({"joined_by": "kernels", "properties": {
  "kernels": {"type": ["array", "string"], "items": {"type": "string"},
              "description": "ids of components of role tenon.kernel/1; the first that fits a place has it"}}})")
