// SPDX-License-Identifier: Apache-2.0
#include "lists.hpp"

#include <cstring>

namespace tenon::ops {
namespace {

constexpr uint64_t kMagic = 0x003154534c4e54ull;  // "TNLST1"
constexpr uint64_t kAlignment = 64, kMostRank = 64;

uint64_t aligned(uint64_t at) {
  return (at + kAlignment - 1) / kAlignment * kAlignment;
}

// Reads words and payloads, never beyond the end.
class Reader {
 public:
  Reader(const char* data, uint64_t size) : data_(data), size_(size) {}
  Result<uint64_t> word() {
    if (size_ - at_ < sizeof(uint64_t)) return cut();
    uint64_t out = 0;
    std::memcpy(&out, data_ + at_, sizeof out);
    at_ += sizeof out;
    return out;
  }
  Result<const char*> payload(uint64_t bytes) {
    uint64_t from = aligned(at_);
    if (from > size_ || size_ - from < bytes) return cut();
    at_ = from + bytes;
    if (uint64_t next = (at_ + 7) / 8 * 8; next <= size_) at_ = next;
    return data_ + from;
  }

 private:
  Status cut() const { return invalid(cat("packed list: cut short after ", size_, " bytes")); }
  const char* data_;
  uint64_t size_, at_ = 0;
};

Result<Item> read_item(Reader& in) {
  Item item;
  TN_TRY(flags, in.word());
  TN_TRY(dtype, in.word());
  TN_TRY(rank, in.word());
  if (flags > 1 || dtype > UINT32_MAX || TN_DTYPE_BITS(dtype) == 0 || rank > kMostRank)
    return invalid("packed list: expected the head of an item, got other numbers");
  item.is_list = flags == 1;
  item.dtype = static_cast<uint32_t>(dtype);
  uint64_t elements = 1;
  for (uint64_t d = 0; d < rank; ++d) {
    TN_TRY(dim, in.word());
    constexpr uint64_t kMost = UINT64_MAX / 4096;
    if (dim > kMost || (dim > 0 && elements > kMost / dim))
      return invalid(cat("packed list: a dimension of ", dim));
    elements *= dim;
    item.dims.push_back(static_cast<int64_t>(dim));
  }
  TN_TRY(data, in.payload(item.bytes()));
  item.data = data;
  return item;
}

}  // namespace

Result<std::vector<Item>> unpack(const DLTensor& list) {
  if (dtype_of(list) != TN_U8 || list.ndim != 1)
    return invalid(cat("expected a packed list of uint8, got ", dtype_name(dtype_of(list))));
  Reader in(data_of<const char>(list), static_cast<uint64_t>(list.shape[0]));
  TN_TRY(magic, in.word());
  if (magic != kMagic) return invalid("expected a packed list, got other bytes");
  TN_TRY(count, in.word());
  std::vector<Item> out;
  for (uint64_t i = 0; i < count; ++i) {
    TN_TRY(item, read_item(in));
    out.push_back(std::move(item));
  }
  return out;
}

Status pack(const Call& call, uint64_t i, const std::vector<Item>& items) {
  std::vector<char> bytes;
  auto word = [&](uint64_t value) {
    bytes.resize((bytes.size() + 7) / 8 * 8);
    const char* raw = reinterpret_cast<const char*>(&value);
    bytes.insert(bytes.end(), raw, raw + sizeof value);
  };
  word(kMagic);
  word(items.size());
  for (const Item& item : items) {
    word(item.is_list ? 1 : 0);
    word(item.dtype);
    word(item.dims.size());
    for (int64_t dim : item.dims)
      word(static_cast<uint64_t>(dim));
    bytes.resize(aligned(bytes.size()));
    if (item.bytes() > 0) bytes.insert(bytes.end(), item.data, item.data + item.bytes());
  }
  TN_TRY(out, call.out(i, TN_U8, {static_cast<int64_t>(bytes.size())}));
  std::memcpy(data_of<char>(out), bytes.data(), bytes.size());
  return {};
}

Status put(const Call& call, uint64_t i, const Item& item) {
  TN_TRY(out, call.out(i, item.dtype, item.dims));
  if (item.bytes() > 0) std::memcpy(data_of<char>(out), item.data, item.bytes());
  return {};
}

}  // namespace tenon::ops
