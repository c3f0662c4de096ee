// SPDX-License-Identifier: Apache-2.0
// "trainer.adamw_8bit": trainer.adamw with its two moments in 8 bits (blocks.hpp): 2.03 bytes for
// each number of a tensor of 4,096 and more, in place of 8. The update is from the moments as they
// are before they are rounded: a second moment that became 0 beside a first one would divide by
// epsilon.
#include "blocks.hpp"
#include "decoupled_adam.hpp"

namespace tenon::trainer {
namespace {

struct AdamW8Bit {
  static constexpr const char* kName = "adamw_8bit";
  static constexpr auto keep = Blocks::keep;
};

}  // namespace
}  // namespace tenon::trainer

TENON_OPTIMIZER(adamw_8bit,
                tenon::trainer::DecoupledAdam<tenon::trainer::AdamW8Bit>,
                "trainer.adamw_8bit",
                "trainer.adamw with moments in 8 bits",
                R"({"properties": {)" TRAINER_MOMENTS_OPTIONS("1e-8")
                    TRAINER_DECAY_OPTIONS("0.01") R"(}})")
