// SPDX-License-Identifier: Apache-2.0
// A file of tensors as a graph without nodes: each tensor is a constant and an output of its name.
#include "tenon/sdk/role/reader.hpp"

#include "header.hpp"

namespace tenon::safetensors_plugin {
namespace {

uint64_t read_length(const unsigned char* from) {
  uint64_t out = 0;
  for (unsigned i = 0; i < kLengthBytes; ++i)
    out |= uint64_t{from[i]} << 8 * i;
  return out;
}

class Reader {
 public:
  explicit Reader(tn_ctx* ctx) : ctx_(ctx) {}
  static Result<Reader> create(tn_ctx* ctx, const Options&) { return Reader(ctx); }

  int probe(std::span<const std::byte> head, std::string_view) const {
    if (head.size() <= kLengthBytes || head[kLengthBytes] != std::byte{'{'}) return 0;
    uint64_t length = read_length(reinterpret_cast<const unsigned char*>(head.data()));
    return length >= 2 && length <= kMaxHeader ? 90 : 0;
  }

  Status read(tn_blob* blob, tn_graph* into, const Cancel& cancel) {
    uint64_t size = services.blob->size(blob);
    const void* data = nullptr;
    if (size < kLengthBytes)
      return {TN_DATA_LOSS, cat("expected a safetensors file, got ", size, " bytes")};
    TN_CHECK(services.blob->map(blob, 0, size, &data));
    uint64_t length = read_length(static_cast<const unsigned char*>(data));
    if (length > kMaxHeader || length > size - kLengthBytes)
      return {TN_DATA_LOSS, cat("header: expected at most ",
                                std::min(kMaxHeader, size - kLengthBytes), " bytes, got ", length)};
    uint64_t start = kLengthBytes + length;
    TN_TRY(header,
           parse_header({static_cast<const char*>(data) + kLengthBytes, length}, size - start));
    TN_TRY(edit, Edit::begin(into));
    for (const Entry& entry : header.tensors) {
      TN_CHECK(cancel.check());
      TN_CHECK(add(edit, blob, start, entry).in(cat("tensor ", entry.name)));
    }
    for (const auto& [key, value] : header.metadata)
      TN_CHECK(edit.set_note(0, cat(kNoteMetadata, key), any_text(value)));
    return edit.commit();
  }

 private:
  Status add(const EditView& edit, tn_blob* blob, uint64_t start, const Entry& entry) const {
    if (entry.name.empty()) return invalid("expected a name, got ''");
    tn_tensor* raw = nullptr;
    TN_CHECK(services.tensor->from_blob(ctx_, blob, start + entry.begin,
                                        DenseView(entry.dtype, entry.dims).get(), &raw));
    TN_TRY(value, edit.constant(Tensor::take(raw), entry.name));
    return edit.output(entry.name, value);
  }

  tn_ctx* ctx_;
};

}  // namespace
}  // namespace tenon::safetensors_plugin

TENON_READER(reader,
             tenon::safetensors_plugin::Reader,
             "safetensors",
             "reads the tensors of a safetensors file as constants",
             R"({"properties": {}, "extensions": [".safetensors"]})")
