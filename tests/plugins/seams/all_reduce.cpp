// SPDX-License-Identifier: Apache-2.0
// seams:AllReduce: the mean of a value over the ranks of a collective.
#include <map>
#include <mutex>

#include "tenon/role/collective.h"

#include "tenon/sdk/component.hpp"
#include "tenon/sdk/role/op.hpp"

namespace tenon::test {
namespace {

// The ranks that nodes have asked for: one component each, for all nodes with its options.
struct Ranks {
  std::mutex mutex;
  std::map<std::string, Component> made;

  Result<const Component*> get(tn_ctx* ctx, const std::string& id, const std::string& options) {
    std::lock_guard lock(mutex);
    std::string key = cat(id, " ", options);
    auto found = made.find(key);
    if (found != made.end()) return &found->second;
    TN_TRY(component, Component::create(ctx, "tenon.collective/1", id, options));
    return &made.emplace(key, std::move(component)).first->second;
  }
};

Status all_reduce_shape(EditView edit, Node node) {
  return edit.set_type(node.output(), node.input(0).type());
}

Status all_reduce_ref(OpSelf& self, const Call& call) {
  Node node = call.node();
  std::string id(node.attr_text("collective")), options(node.attr_text("options"));
  TN_TRY(rank, self.state<Ranks>().get(self.ctx(), id, options));
  TN_TRY(out, call.out(0, call.dtype(0), call.shape(0)));
  return Status(rank->table<tn_collective>()->all_reduce(
      rank->self(), str(node.name()), TN_REDUCE_MEAN, &call.in(0), &out, call.cancel().raw()));
}

// Of one rank, which meets nobody.
Result<Node> all_reduce_sample(EditView edit, uint64_t seed) {
  const auto n = static_cast<int64_t>(1 + seed % 5);
  TN_TRY(x, edit.input("x", Type(TN_F32, std::vector<int64_t>{n, 3})));
  return edit.add({.type = "AllReduce",
                   .inputs = {x},
                   .attrs = {{"collective", "seams.threads"},
                             {"options", R"({"group": "sample", "ranks": 1, "rank": 0})"}},
                   .domain = "seams"});
}

constexpr tn_op kAllReduce = op_row({
    .type = "AllReduce",
    .domain = "seams",
    .traits = TN_OP_STATEFUL,
    .attributes = R"([{"name": "collective", "type": "string"},
                      {"name": "options", "type": "string", "default": "{}"}])",
    .shape = shape<all_reduce_shape>,
    .ref = ref<all_reduce_ref>,
    .sample = sample<all_reduce_sample>,
    .recompute = "never",
});

}  // namespace

TENON_OPS(all_reduce, &kAllReduce)

}  // namespace tenon::test
