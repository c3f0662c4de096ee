// SPDX-License-Identifier: Apache-2.0
// "pruner.importance.random": the control that every other score must beat.
#include "tenon/sdk/role/importance.hpp"

namespace tenon::pruner {
namespace {

class Random {
 public:
  static constexpr uint32_t kNeeds = 0;
  static Result<Random> create(tn_ctx*, const Options& options) {
    Random out;
    out.seed_ = static_cast<uint64_t>(options.integer("seed"));
    return out;
  }
  Status score(const tn_channel_group& group, std::span<double> scores) const {
    services.random->uniform(seed_, group.index, 0, scores.data(), scores.size());
    return {};
  }

 private:
  uint64_t seed_ = 0;
};

}  // namespace
}  // namespace tenon::pruner

TENON_IMPORTANCE(random,
                 tenon::pruner::Random,
                 "pruner.importance.random",
                 "random scores: the control for every other importance",
                 R"({"properties": {"seed": {"type": "integer", "minimum": 0, "default": 0,
  "description": "of the random numbers"}}})")
