// SPDX-License-Identifier: Apache-2.0
#include "sites.hpp"

#include <algorithm>
#include <unordered_set>

namespace tenon::kernels {
namespace {

// Why no kernel can have the place, whatever it computes; empty: nothing speaks against it.
std::string why_not(const Site& site) {
  auto is_known = [](Value value) {
    Type type = value.type();
    return type.kind == TN_KIND_TENSOR && type.is_static() && type.dtype != TN_DTYPE_NONE;
  };
  Node root = site.nodes.front();
  for (Value input : site.inputs)
    if (!is_known(input)) return cat("the shape of ", input.name(), " depends on data");
  if (!is_known(root.output())) return "the shape of its result depends on data";
  for (uint64_t i = 1; i < root.n_outputs(); ++i)
    if (Value more = root.output(i); more.is_used())
      return cat(more.name(), " is read, and a kernel makes the first output alone");
  return {};
}

}  // namespace

Result<FusedKernel> FusedKernel::make(tn_ctx* ctx, const std::string& id) {
  TN_TRY(component, Component::create(ctx, "tenon.kernel/1", id));
  const auto* table = component.table<tn_kernel>();
  StringSink text;
  TN_CHECK(Status(table->pattern(component.self(), text.get())).in(id));
  Result<Pattern> pattern = Pattern::parse(text.text);
  if (!pattern.ok()) return std::move(pattern).status().in(id);
  return FusedKernel{id, std::move(component), std::move(*pattern)};
}

Result<std::vector<Site>> find_sites(Graph graph,
                                     const std::vector<FusedKernel>& kernels,
                                     std::vector<Refusal>* refused) {
  std::vector<Site> out;
  std::unordered_set<tn_node_id> taken;
  for (const FusedKernel& kernel : kernels) {
    for (Node root : graph.nodes()) {
      if (!kernel.pattern.may_start(root.type())) continue;
      std::optional<Match> match = kernel.pattern.match(root);
      if (!match || std::ranges::any_of(match->nodes,
                                        [&](const Node& node) { return taken.count(node.id) > 0; }))
        continue;
      Site site{&kernel, match->nodes, {}};
      for (const std::string& name : kernel.pattern.names())
        site.inputs.push_back((*match)[name]);
      std::string why = why_not(site);
      if (why.empty()) {
        Status claimed = site.as_abi([&](const tn_kernel_site* raw) {
          return Status(kernel.table()->claim(kernel.self(), raw));
        });
        if (!claimed.ok() && claimed.code() != TN_UNIMPLEMENTED)
          return std::move(claimed).in(kernel.id);
        if (!claimed.ok()) why = claimed.text();
      }
      if (!why.empty()) {
        refused->push_back({root, cat(kernel.id, ": ", why)});
        continue;
      }
      for (const Node& node : site.nodes)
        taken.insert(node.id);
      out.push_back(std::move(site));
    }
  }
  return out;
}

}  // namespace tenon::kernels
