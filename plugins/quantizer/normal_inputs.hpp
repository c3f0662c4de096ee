// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is known of a value without data: a BatchNormalization makes channels of mean `bias` and
// deviation |`scale`|, about normal ones, and pointwise nodes behind it make something of them
// (Nagel et al., ICCV 2019, section 4.2.1).

#include <string>
#include <vector>

#include "tenon/sdk/evaluation.hpp"

namespace tenon::quantizer {

// The mean of each channel, by quadrature over the normal distribution with the nodes themselves:
// no operator has a formula of its own. Empty where it is not made so; why says what is in the way.
Result<std::vector<double>> channel_means(tn_ctx* ctx, Value value, std::string* why);

// These means in the sizes that the channels have in a model in which the normalization is folded
// and its layer then divided by factors, as quantizer.equalize does: the layer's bias says which.
// why: it does not say it.
void follow_factors(Graph folded, Value value, std::vector<double>* means, std::string* why);

}  // namespace tenon::quantizer
