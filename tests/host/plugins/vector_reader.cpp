// SPDX-License-Identifier: Apache-2.0
// Reads "vector N": a graph that doubles a vector of N numbers. Of "vector N and an edit" it leaves
// an edit open.
#include <charconv>
#include <optional>

#include "tenon/sdk/role/reader.hpp"

namespace {

constexpr std::string_view kStart = "vector ";

class VectorReader {
 public:
  static tenon::Result<VectorReader> create(tn_ctx*, const tenon::Options&) {
    return VectorReader{};
  }
  int probe(std::span<const std::byte> head, std::string_view) const {
    std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
    return text.starts_with(kStart) ? 90 : 0;
  }
  tenon::Status read(tn_blob* blob, tn_graph* into, const tenon::Cancel&) {
    const void* data = nullptr;
    uint64_t bytes = tenon::services.blob->size(blob);
    TN_CHECK(tenon::services.blob->map(blob, 0, bytes, &data));
    std::string_view text(static_cast<const char*>(data), bytes);
    int64_t length = -1;
    if (text.starts_with(kStart))
      std::from_chars(text.data() + kStart.size(), text.data() + text.size(), length);
    if (length < 0) return {TN_DATA_LOSS, "expected 'vector N'"};
    TN_TRY(edit, tenon::Edit::begin(into));
    TN_TRY(x, edit.input("x", tenon::Type(TN_F32, {length})));
    TN_TRY(node, edit.add({.type = "Double", .inputs = {x}, .domain = "test"}));
    TN_CHECK(edit.output("y", node.output(0)));
    TN_CHECK(edit.commit());
    if (!text.ends_with("and an edit")) return {};
    TN_TRY(left, tenon::Edit::begin(into));
    left_.emplace(std::move(left));
    return {};
  }

 private:
  std::optional<tenon::Edit> left_;
};

}  // namespace

TENON_READER(vector_reader,
             VectorReader,
             "vector.reader",
             "vectors from text",
             R"({"extensions": [".vec"], "properties": {}})")
