// SPDX-License-Identifier: Apache-2.0
#pragma once
// Factors that inputs of a product are divided by and its weights multiplied with, channel by
// channel: what SmoothQuant and AWQ choose, each by its own rule. Plain numbers; no graph.

#include <cstdint>
#include <vector>

namespace tenon::quantizer {

// Rows of what a product reads, and the weight that it reads them with; both row-major.
struct ScaledLayer {
  int64_t rows = 0, columns = 0, outputs = 0;
  std::vector<float> inputs = {};   // [rows, columns]
  std::vector<float> weights = {};  // [outputs, columns]: a part of the outputs will do
  // [columns], over all data and outputs: largest magnitudes, and the mean magnitude.
  std::vector<float> largest_input = {}, largest_weight = {}, mean_input = {};
};

struct InputFactors {
  double exponent = -1;                 // of the rule; -1: no factors
  std::vector<float> factor;            // [columns]
  double snr_db = 0, plain_snr_db = 0;  // of the product in fewer bits, with them and without
};

// inputs w^T: [rows, outputs].
std::vector<float> product(const ScaledLayer& layer,
                           const std::vector<float>& inputs,
                           const std::vector<float>& weights);
double decibels_between(const std::vector<float>& right, const std::vector<float>& found);

}  // namespace tenon::quantizer
