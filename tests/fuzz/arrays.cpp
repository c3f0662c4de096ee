// SPDX-License-Identifier: Apache-2.0
// Bytes as a file for the data sets of plugins/datasets: .npz and .npy by their first bytes, else
// CSV.
#include <cstring>

#include "fuzz_session.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto begins = [&](const char* with) {
    size_t n = std::strlen(with);
    return size >= n && std::memcmp(data, with, n) == 0;
  };
  bool is_table = !begins("PK") && !begins("\x93NUMPY");
  std::string path = tenon::fuzz::written(data, size, is_table ? "csv" : "npz");
  tenon::fuzz::read_samples(tenon::fuzz::session(), is_table ? "datasets.csv" : "datasets.npz",
                            path);
  std::remove(path.c_str());
  return 0;
}
