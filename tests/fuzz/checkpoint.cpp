// SPDX-License-Identifier: Apache-2.0
// Bytes as a checkpoint of plugins/trainer; what is read is written again, and read to the same.
#include "../../plugins/trainer/checkpoint.hpp"

#include "fuzz_session.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon::trainer;
  const tn_host* host = tenon_host(tenon::fuzz::session());
  static const bool is_filled = tenon::services.fill(*host).empty();
  if (!is_filled) std::abort();
  std::string path = tenon::fuzz::written(data, size, "checkpoint");
  auto first = load_checkpoint(host->ctx, path);
  if (first.ok()) {
    if (!save_checkpoint(host->ctx, path, *first).ok()) std::abort();
    auto again = load_checkpoint(host->ctx, path);
    if (!again.ok() || again->run != first->run || again->tensors.size() != first->tensors.size())
      std::abort();
  }
  std::remove(path.c_str());
  return 0;
}
