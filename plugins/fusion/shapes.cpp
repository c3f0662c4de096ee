// SPDX-License-Identifier: Apache-2.0
// fusion.shapes: what a transformation needs that asks for sizes, such as a gradient. Integers that
// follow from other integers and known shapes become constants, an If whose condition is one
// becomes its branch, tensors of a sequence of known length are those of a Split; weights stay as
// they are, under their names, also where one is made from another, and so does what is decided by
// their numbers, which training changes.
#include "rounds.hpp"

FUSION_DECLARE_RULE(constants)
FUSION_DECLARE_RULE(branches)
FUSION_DECLARE_RULE(sequences)

namespace tenon::fusion {
namespace {

using Shapes = RoundsPass<true,
                          tenon_fusion_rule_constants,
                          tenon_fusion_rule_branches,
                          tenon_fusion_rule_sequences>;

}  // namespace
}  // namespace tenon::fusion

TENON_PASS(shapes,
           tenon::fusion::Shapes,
           "fusion.shapes",
           "computes integers that depend on constants and known shapes only",
           "{\"properties\": {" FUSION_SCOPE_OPTION ", " FUSION_BYTES_OPTION "}}")
