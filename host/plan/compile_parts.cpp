// SPDX-License-Identifier: Apache-2.0
// Parts by the backends that claim them, or by the next ones where a compiler fails.
#include <algorithm>

#include "graph/op_table.hpp"
#include "plan/lessons.hpp"
#include "plan/partition.hpp"
#include "services/trace.hpp"

namespace tenon::host {
namespace {

class Compiler {
 public:
  Compiler(tn_plan* plan, tn_graph* graph, Lost lost)
      : plan_(plan), graph_(graph), lost_(std::move(lost)) {}
  ~Compiler() {
    for (CompiledPart& one : made_)
      give_up(one);
  }
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  Result<std::vector<CompiledPart>> run(std::vector<Fallback>* fallbacks) {
    for (;;) {  // each round takes nodes from a backend that had them
      std::vector<Fallback> found;
      TN_TRY(parts, split(&found));
      TN_TRY(is_done, compile_all(parts));
      if (!is_done) continue;
      *fallbacks = std::move(found);
      return std::move(made_);
    }
  }

 private:
  Result<std::vector<Part>> split(std::vector<Fallback>* found) {
    Span span(plan_->trace(), "compile", "partition");
    return partition(graph_, plan_->backends, lost_, found);
  }

  void give_up(CompiledPart& one) const {
    if (!one.exe) return;
    BackendUse& use = *plan_->backends[one.part.backend];
    use.table->exe_free(use.self, std::exchange(one.exe, nullptr));
  }

  // False: a backend has lost a part.
  Result<bool> compile_all(const std::vector<Part>& parts) {
    std::vector<CompiledPart> before = std::exchange(made_, {});
    Status failed;
    for (const Part& part : parts) {
      auto same = std::ranges::find_if(before, [&](const CompiledPart& one) {
        return one.part.backend == part.backend && one.part.nodes == part.nodes;
      });
      made_.push_back(same == before.end() ? CompiledPart{part, {}, nullptr} : std::move(*same));
      if (same != before.end()) {
        same->exe = nullptr;
        made_.back().part.depth = part.depth;
      }
      if (part.backend == kHostBackend || made_.back().exe) continue;
      failed = compile_one(made_.back());
      if (!failed.ok()) break;
    }
    for (CompiledPart& one : before)  // of nodes that are cut otherwise now
      give_up(one);
    if (failed.ok()) return true;
    TN_CHECK(lose_part(made_.back().part, std::move(failed)));
    return false;
  }

  // The nodes by themselves as a graph, compiled.
  Status compile_one(CompiledPart& one) const {
    BackendUse& use = *plan_->backends[one.part.backend];
    Span span(plan_->trace(), "compile", use.id);
    tn_graph* raw = nullptr;
    TN_CHECK(Status(
        graph_service()->extract(graph_, one.part.nodes.data(), one.part.nodes.size(), &raw)));
    one.graph = Ref<tn_graph>::take(raw);
    return use.called("compile",
                      use.table->compile(use.self, raw, use.device, use.options.get(), &one.exe));
  }

  // Of a part that is answered with TN_UNIMPLEMENTED, the nodes that the backend cannot compile
  // alone; all when none is at fault alone, or when the failure is another.
  std::vector<std::string> culprits(const Part& part, const Status& failed) const {
    std::vector<std::string> all, alone;
    bool asks = failed.code() == TN_UNIMPLEMENTED && part.nodes.size() > 1;
    for (tn_node_id node : part.nodes) {
      all.emplace_back(view(graph_service()->node_name(graph_, node)));
      if (!asks) continue;
      CompiledPart tried{{part.backend, 0, {node}}, {}, nullptr};
      if (compile_one(tried).code() == TN_UNIMPLEMENTED) alone.push_back(all.back());
      give_up(tried);
    }
    return alone.empty() ? all : alone;
  }

  // The failure itself, where no other backend can have the nodes.
  Status lose_part(const Part& part, Status failed) {
    if (part.backend + 1 == static_cast<int>(plan_->backends.size())) return failed;
    lose(*plan_, part.backend, culprits(part, failed), cat("compile failed: ", failed.text()),
         &lost_);
    return {};
  }

  tn_plan* plan_;
  tn_graph* graph_;
  Lost lost_;
  std::vector<CompiledPart> made_;
};

}  // namespace

Result<std::vector<CompiledPart>> compile_parts(tn_plan* plan,
                                                tn_graph* graph,
                                                Lost lost,
                                                std::vector<Fallback>* fallbacks) {
  return Compiler(plan, graph, std::move(lost)).run(fallbacks);
}

}  // namespace tenon::host
