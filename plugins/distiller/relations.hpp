// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a student may learn of a value inside its teacher in the place of the numbers themselves:
// where it looks, or how samples lie to each other. Widths of the two may differ.

#include "matches.hpp"

namespace tenon::distiller {

// Attention transfer (Zagoruyko and Komodakis, ICLR 2017, section 3.1): the mean squared difference
// of the maps of both, squares summed over channels and each sample's map brought to norm 1.
// Values of rank 4 have their channels on axis 1, of rank 3 at the end.
Result<Value> attention_loss(EditView edit, const Matched& pair, const MatchPlan& plan);

// Relational distillation (Park et al., CVPR 2019, equations 5 to 8): distances of all pairs of
// samples over their mean, and cosines of the angles of all triplets, by the Huber loss, averaged
// over pairs and triplets. Values: [N, ...], each sample as one vector.
Result<Value> relation_loss(EditView edit, const Matched& pair, const MatchPlan& plan);

// Similarity-preserving distillation (Tung and Mori, ICCV 2019, equations 2 to 4): products of all
// pairs of samples, each row of them brought to norm 1, and the mean squared difference of both. A
// batch of one sample says nothing. Values: [N, ...], each sample as one vector.
Result<Value> similarity_loss(EditView edit, const Matched& pair, const MatchPlan& plan);

}  // namespace tenon::distiller
