// SPDX-License-Identifier: Apache-2.0
#pragma once
// A run as a file: all states of the step, and how far the loop is. The file is a safetensors file
// (header of JSON, then the tensors), so that other tools can read the weights; what the loop knows
// is text in its metadata. It appears whole or not at all.

#include <string>

#include "parameters.hpp"

namespace tenon::trainer {

struct Checkpoint {
  std::string run;  // JSON of the loop
  Weights tensors;
  std::string writer = TENON_PLUGIN_VERSION;  // the Tenon that wrote it
};

// With shard_bytes a checkpoint of more bytes lies in several files, PATH.a-1.safetensors and so on
// for a PATH.safetensors that lists them, each of at most so many bytes but for a tensor that is
// larger alone. The list is written last: until then the files of the earlier checkpoint stay.
Status save_checkpoint(tn_ctx* ctx,
                       const std::string& path,
                       const Checkpoint& checkpoint,
                       uint64_t shard_bytes = 0);

// Checks version, sizes and types; what is wrong is named.
Result<Checkpoint> load_checkpoint(tn_ctx* ctx, const std::string& path);

// With its shards.
Status remove_checkpoint(const std::string& path);

}  // namespace tenon::trainer
