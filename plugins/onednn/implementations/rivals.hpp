// SPDX-License-Identifier: Apache-2.0
#pragma once
// Implementations of one node that all apply, between which measured times decide. Each is tried
// where it would stand: with the layouts that are there, the node's own weights and the epilogue
// that it takes along or leaves to later steps, which are then lowered as well. A trial leaves
// nothing behind.

#include <functional>
#include <span>
#include <string>

#include "lowering/lowering.hpp"

namespace tenon::onednn {

struct Rival {
  const char* name;
  std::string traits;           // of the weights' numbers, that its time depends on
  std::function<void()> build;  // any number of times
};

// Builds, for the node that is being lowered, the one that the options' chooser decides for;
// rivals[0] is what the rules choose.
void build_fastest(Lowering& lowering, std::span<const Rival> rivals);

// All that the times of a node's rivals depend on beside machine, build and number of threads:
// types, shapes and layouts of what it reads, its attributes, and what follows as far as an
// epilogue may reach. No names, and of the numbers of weights only the rivals' traits: equal layers
// share a key.
std::string contest_key(const Lowering& lowering, std::span<const Rival> rivals);

}  // namespace tenon::onednn
