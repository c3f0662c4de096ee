// SPDX-License-Identifier: Apache-2.0
// Writes what vector_reader reads; with the option "fail", only half of it.
#include "tenon/sdk/role/writer.hpp"

namespace {

class VectorWriter {
 public:
  static tenon::Result<VectorWriter> create(tn_ctx*, const tenon::Options& options) {
    return VectorWriter{options.flag("fail")};
  }
  tenon::Status write(const tn_graph* raw, tn_target* target, const tenon::Cancel&) {
    tn_value_id x = tenon::services.graph->value_at(raw, TN_LIST_INPUTS, 0, 0);
    std::string text = "vector " + std::to_string(tenon::Value{raw, x}.type().dims[0]);
    uint64_t bytes = fail_ ? text.size() / 2 : text.size();
    TN_CHECK(tenon::services.blob->write(target, {}, text.data(), bytes));
    return fail_ ? tenon::Status(TN_UNAVAILABLE, "the test disk is full") : tenon::Status();
  }

  bool fail_;
};

}  // namespace

TENON_WRITER(vector_writer,
             VectorWriter,
             "vector.writer",
             "vectors as text",
             R"({"extensions": [".vec"],
                 "properties": {"fail": {"type": "boolean", "default": false}}})")
