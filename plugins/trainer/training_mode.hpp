// SPDX-License-Identifier: Apache-2.0
#pragma once
// A model as it runs while it is trained.

#include <string>
#include <string_view>
#include <vector>

#include "tenon/sdk/edit.hpp"

namespace tenon::trainer {

// What the ratio of Dropout is called among the numbers that schedules drive.
inline constexpr std::string_view kDropout = "dropout";

// The input that Dropout draws by: int64[2], the seed and the number of the step.
inline constexpr std::string_view kDropoutKey = "dropout/key";

struct TrainingMode {
  uint64_t seed = 0;             // of the numbers that Dropout draws
  bool batch_statistics = true;  // false: BatchNormalization keeps the statistics that it has
  bool drives_dropout = false;   // the ratio of all Dropout nodes is a setting (sdk/setting.hpp)
  // Without states: running statistics stay as they are, and the key is an input, kDropoutKey.
  bool stateless = false;
};

// BatchNormalization uses the statistics of the batch and keeps running ones as states under the
// names of its constants, one after the other where several nodes apply one normalization. A node
// with the note tenon.batch_norm = "frozen", which ONNX files keep, stays as it is; with "unbiased"
// its running variance is PyTorch's, that of the batch times n/(n - 1). Dropout draws by a key that
// is state. Gives the names of the constants that became running statistics.
Result<std::vector<std::string>> to_training_mode(EditView edit, const TrainingMode& mode);

// BatchNormalization that to_training_mode leaves as it is: other nodes read its statistics too, or
// compute them.
std::vector<std::string_view> norms_without_own_statistics(Graph graph);

// A constant becomes an input of the same name, for the caller to close as a state.
Result<Value> input_for_constant(EditView edit, Value constant);

}  // namespace tenon::trainer
