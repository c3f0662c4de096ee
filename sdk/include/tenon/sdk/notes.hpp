// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names of notes that one plugin leaves in a graph and another one reads. Notes that belong to a
// concern of the SDK stand with it: original.hpp, setting.hpp, role/optimizer.hpp.

#include <string_view>

namespace tenon {

// On a Dropout whose mask is one number for each "sample" or for the whole "batch"; ONNX files keep
// it. From layers.stochastic_depth, for whoever trains.
inline constexpr std::string_view kDropoutOverNote = "onnx.metadata.tenon.dropout_over";
// On the cotangents that reverse accumulation begins with. From autodiff, for passes on the joint
// graph.
inline constexpr std::string_view kSeedNote = "autodiff.seed";
// On the graph of a step: the steps of an epoch. From the trainer, for passes of train_as.
inline constexpr std::string_view kEpochStepsNote = "epoch_steps";

}  // namespace tenon
