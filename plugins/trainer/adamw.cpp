// SPDX-License-Identifier: Apache-2.0
// "trainer.adamw": Adam with weight decay apart from the gradient (decoupled_adam.hpp).
#include "decoupled_adam.hpp"

namespace tenon::trainer {
namespace {

struct AdamW {
  static constexpr const char* kName = "adamw";
  static constexpr auto keep = Moments::as_it_is;
};

}  // namespace
}  // namespace tenon::trainer

TENON_OPTIMIZER(adamw,
                tenon::trainer::DecoupledAdam<tenon::trainer::AdamW>,
                "trainer.adamw",
                "Adam with weight decay apart from the gradient",
                R"({"properties": {)" TRAINER_MOMENTS_OPTIONS("1e-8")
                    TRAINER_DECAY_OPTIONS("0.01") R"(}})")
