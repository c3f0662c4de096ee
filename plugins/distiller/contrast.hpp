// SPDX-License-Identifier: Apache-2.0
#pragma once
// Contrastive distillation (Tian, Krishnan and Isola, "Contrastive representation distillation",
// ICLR 2020): of all samples the student's should lie nearest to the teacher's of the same sample.

#include "matches.hpp"

namespace tenon::distiller {

// The other samples of the batch are what a sample must not be taken for, in the place of the
// paper's memory of the whole data set: -log of the share of exp(cosine / softness) that the right
// pair has, over the teacher's samples and over the student's, the mean of both (InfoNCE, van den
// Oord et al. 2018, equation 4, on both sides). Values: [N, channels] or with places, over which
// channels are averaged; each side has a trained map to `width` numbers.
Result<Value> contrast_loss(EditView edit, const Matched& pair, const MatchPlan& plan);

}  // namespace tenon::distiller
