// SPDX-License-Identifier: Apache-2.0
// fusion.fold: what a backend wants done once the shapes of the inputs are known. Computed shapes
// become constants, and no node is left that changes nothing or that is not needed. An Expand in
// front of what broadcasts goes first, or the constant that it expands would be folded to one of
// the full size.
#include "rounds.hpp"

FUSION_DECLARE_RULE(broadcast)
FUSION_DECLARE_RULE(constants)
FUSION_DECLARE_RULE(identity)
FUSION_DECLARE_RULE(chains)
FUSION_DECLARE_RULE(dead_code)

namespace tenon::fusion {
namespace {

using Fold = RoundsPass<false,
                        tenon_fusion_rule_broadcast,
                        tenon_fusion_rule_constants,
                        tenon_fusion_rule_identity,
                        tenon_fusion_rule_chains,
                        tenon_fusion_rule_dead_code>;

}  // namespace
}  // namespace tenon::fusion

TENON_PASS(fold,
           tenon::fusion::Fold,
           "fusion.fold",
           "broadcast, constants, identity, chains and dead_code until none applies",
           "{\"properties\": {" FUSION_SCOPE_OPTION ", " FUSION_BYTES_OPTION "}}")
