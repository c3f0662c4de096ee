// SPDX-License-Identifier: Apache-2.0
// autodiff.seed_draws: nodes that draw random numbers by their name get a seed of that name and of
// `salt`, so that copies of the graph with other names draw the same.
#include "tenon/sdk/role/pass.hpp"

#include "draws.hpp"

namespace tenon::autodiff {
namespace {

class SeedDraws {
 public:
  static Result<SeedDraws> create(tn_ctx*, const Options& options) {
    return SeedDraws(options.text("salt"));
  }
  Status run(tn_graph* graph, const Cancel&, Sink& report) {
    TN_TRY(edit, Edit::begin(graph));
    size_t count = 0;
    for (Node node : edit.graph().nodes()) {
      std::optional<Attr> seed = seed_to_repeat(node, cat(node.name(), salt_));
      if (!seed) continue;
      TN_CHECK(edit.set_attr(node, *seed));
      ++count;
    }
    TN_CHECK(edit.commit());
    return report.write(cat("{\"seeded\": ", count, "}"));
  }

 private:
  explicit SeedDraws(std::string salt) : salt_(std::move(salt)) {}
  std::string salt_;
};

}  // namespace
}  // namespace tenon::autodiff

TENON_PASS(seed_draws,
           tenon::autodiff::SeedDraws,
           "autodiff.seed_draws",
           "draws by a node's name become draws by a seed",
           R"({"properties": {
  "salt": {"type": "string", "default": "", "description": "makes draws of other copies differ"}}})")
