// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a student may learn of a value inside its teacher in the place of the numbers themselves:
// where it looks, or how samples lie to each other. Widths of the two may differ.

#include "soft.hpp"

namespace tenon::distiller {

enum class Match { kHint, kAttention, kRelation };

struct RelationShares {
  double distance = 25, angle = 50;
};

// Attention transfer (Zagoruyko and Komodakis, ICLR 2017, section 3.1): the mean squared difference
// of the maps of both, squares summed over channels and each sample's map brought to norm 1.
// Values of rank 4 have their channels on axis 1, of rank 3 at the end.
Result<Value> attention_loss(EditView edit, Value student, Value teacher);

// Relational distillation (Park et al., CVPR 2019, equations 5 to 8): distances of all pairs of
// samples over their mean, and cosines of the angles of all triplets, by the Huber loss, averaged
// over pairs and triplets. Values: [N, ...], each sample as one vector.
Result<Value> relation_loss(EditView edit,
                            Value student,
                            Value teacher,
                            const RelationShares& shares);

}  // namespace tenon::distiller
