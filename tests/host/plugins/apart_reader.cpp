// SPDX-License-Identifier: Apache-2.0
// A reader whose id does not begin with its plugin's: its format is its whole id.
#include "tenon/sdk/role/reader.hpp"

namespace {

class ApartReader {
 public:
  static tenon::Result<ApartReader> create(tn_ctx*, const tenon::Options&) { return ApartReader{}; }
  int probe(std::span<const std::byte>, std::string_view) const { return 0; }
  tenon::Status read(tn_blob*, tn_graph*, const tenon::Cancel&) { return {}; }
};

}  // namespace

TENON_READER(apart_reader, ApartReader, "com.acme.apart", "empty graphs", R"({"properties": {}})")
