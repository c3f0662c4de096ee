// SPDX-License-Identifier: Apache-2.0
#include "skeleton.hpp"

#include <cstring>

namespace tenon::onnx_plugin {
namespace {

// Protobuf itself stops at 100 nested messages; a body of If costs three.
constexpr int kMaxDepth = 100;
constexpr uint64_t kMaxSkeleton = 1u << 30;

enum class Kind : uint8_t { kModel, kGraph, kFunction, kNode, kAttribute, kTensor, kSparse, kLeaf };

struct FieldRow {
  Kind message;
  uint32_t field;
  Kind inner;
};

// Which fields lead to tensors; all others are copied as they are.
constexpr FieldRow kFields[] = {
    {Kind::kModel, 7, Kind::kGraph},         {Kind::kModel, 25, Kind::kFunction},
    {Kind::kGraph, 1, Kind::kNode},          {Kind::kGraph, 5, Kind::kTensor},
    {Kind::kGraph, 15, Kind::kSparse},       {Kind::kFunction, 7, Kind::kNode},
    {Kind::kFunction, 11, Kind::kAttribute}, {Kind::kNode, 5, Kind::kAttribute},
    {Kind::kAttribute, 5, Kind::kTensor},    {Kind::kAttribute, 6, Kind::kGraph},
    {Kind::kAttribute, 10, Kind::kTensor},   {Kind::kAttribute, 11, Kind::kGraph},
    {Kind::kAttribute, 22, Kind::kSparse},   {Kind::kAttribute, 23, Kind::kSparse},
    {Kind::kSparse, 1, Kind::kTensor},       {Kind::kSparse, 2, Kind::kTensor},
};
constexpr uint32_t kTrainingInfo = 20;  // of ModelProto
constexpr uint32_t kRawData = 9;        // of TensorProto

Kind inner_kind(Kind message, uint32_t field) {
  for (const FieldRow& row : kFields)
    if (row.message == message && row.field == field) return row.inner;
  return Kind::kLeaf;
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

struct Field {
  uint32_t number;
  uint32_t wire;
  uint64_t begin;  // of the tag
  uint64_t data;   // of the value, without its length
  uint64_t end;
};

class Walk {
 public:
  Walk(std::string_view file, Skeleton& out) : file_(file), out_(out) {}

  Status message(Kind kind, uint64_t at, uint64_t end, std::string& to, int depth) {
    if (depth > kMaxDepth)
      return invalid(
          cat("expected at most ", kMaxDepth, " nested messages, got more at offset ", at));
    while (at < end) {
      TN_TRY(field, next(at, end));
      TN_CHECK(copy(kind, field, to, depth));
      at = field.end;
    }
    return {};
  }

 private:
  Status copy(Kind kind, const Field& field, std::string& to, int depth) {
    if (kind == Kind::kModel && field.number == kTrainingInfo) {
      out_.had_training = true;
      return {};
    }
    bool bytes = field.wire == 2;
    if (kind == Kind::kTensor && field.number == kRawData && bytes) {
      Window window{field.data, field.end - field.data};
      put_varint(to, kRawData << 3 | 2);
      put_varint(to, sizeof window);
      to.append(reinterpret_cast<const char*>(&window), sizeof window);
      return {};
    }
    Kind inner = bytes ? inner_kind(kind, field.number) : Kind::kLeaf;
    if (inner == Kind::kLeaf) {
      if (field.end - field.begin > kMaxSkeleton - std::min<uint64_t>(to.size(), kMaxSkeleton))
        return {TN_RESOURCE_EXHAUSTED,
                cat("field at offset ", field.begin,
                    ": expected less than 1 GB of structure and untyped data, got more (store the "
                    "weights as raw_data or external data)")};
      to.append(file_.substr(field.begin, field.end - field.begin));
      return {};
    }
    std::string body;
    TN_CHECK(message(inner, field.data, field.end, body, depth + 1));
    put_varint(to, field.number << 3 | 2);
    put_varint(to, body.size());
    to += body;
    return {};
  }

  Result<Field> next(uint64_t at, uint64_t end) const {
    Field field{0, 0, at, 0, 0};
    TN_TRY(tag, varint(at, end));
    if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff) return broken(field.begin, "a field number");
    field.number = static_cast<uint32_t>(tag >> 3);
    field.wire = static_cast<uint32_t>(tag & 7);
    uint64_t bytes = 0;
    switch (field.wire) {
      case 0: {
        TN_TRY(value, varint(at, end));
        (void)value;
        break;
      }
      case 1:
        bytes = 8;
        break;
      case 2: {
        TN_TRY(length, varint(at, end));
        bytes = length;
        break;
      }
      case 5:
        bytes = 4;
        break;
      default:
        return broken(field.begin, "a field of a known kind");
    }
    if (bytes > end - at)
      return Status(TN_DATA_LOSS, cat("field at offset ", field.begin, ": expected ", bytes,
                                      " bytes, got ", end - at, " (is the file cut short?)"));
    field.data = at;
    field.end = at + bytes;
    return field;
  }

  Result<uint64_t> varint(uint64_t& at, uint64_t end) const {
    uint64_t value = 0;
    uint64_t begin = at;
    for (int shift = 0; shift < 70 && at < end; shift += 7) {
      auto byte = static_cast<uint8_t>(file_[at++]);
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if (!(byte & 0x80)) return value;
    }
    return broken(begin, "a number");
  }

  static Status broken(uint64_t offset, std::string_view expected) {
    return {TN_DATA_LOSS, cat("offset ", offset, ": expected ", expected,
                              ", got something else (is it an ONNX file, and whole?)")};
  }

  std::string_view file_;
  Skeleton& out_;
};

}  // namespace

Result<Skeleton> make_skeleton(std::string_view file) {
  Skeleton out;
  TN_CHECK(Walk(file, out).message(Kind::kModel, 0, file.size(), out.bytes, 0));
  return out;
}

Result<Window> window_of(std::string_view raw_data) {
  Window window{};
  if (raw_data.size() != sizeof window) return invalid("raw_data: expected a window of the file");
  std::memcpy(&window, raw_data.data(), sizeof window);
  return window;
}

}  // namespace tenon::onnx_plugin
