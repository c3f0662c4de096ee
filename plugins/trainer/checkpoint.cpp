// SPDX-License-Identifier: Apache-2.0
#include "checkpoint.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include <nlohmann/json.hpp>

namespace tenon::trainer {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the file has little-endian numbers");

// Another number whenever what the loop keeps gets another form.
constexpr const char *kVersion = "3", *kEarlier = "2";  // which had the history inside
constexpr const char *kVersionKey = "tenon.checkpoint", *kWriterKey = "tenon";

constexpr std::pair<uint32_t, const char*> kTypes[] = {
    {TN_F32, "F32"}, {TN_F64, "F64"}, {TN_F16, "F16"}, {TN_BF16, "BF16"}, {TN_I64, "I64"},
    {TN_I32, "I32"}, {TN_I16, "I16"}, {TN_I8, "I8"},   {TN_U8, "U8"},     {TN_BOOL, "BOOL"},
};

struct Blob {
  tn_blob* raw = nullptr;
  Blob() = default;
  Blob(const Blob&) = delete;
  ~Blob() {
    if (raw) services.blob->release(raw);
  }
};

Result<std::string> header_of(const Checkpoint& checkpoint) {
  json header = json::object();
  header["__metadata__"] = {
      {kVersionKey, kVersion}, {kWriterKey, checkpoint.writer}, {"run", checkpoint.run}};
  uint64_t at = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    DLTensor t = tensor.dl();
    const char* type = nullptr;
    for (const auto& [dtype, word] : kTypes)
      if (dtype == dtype_of(t)) type = word;
    if (!type) return unsupported(cat("state ", name, ": of type ", dtype_name(dtype_of(t))));
    uint64_t end = at + bytes_of(dtype_of(t), element_count(t));
    auto dims = shape_of(t);
    header[name] = {{"dtype", type},
                    {"shape", std::vector<int64_t>(dims.begin(), dims.end())},
                    {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

Status write_all(tn_target* target, const std::string& header, const Checkpoint& checkpoint) {
  uint64_t length = header.size();
  TN_CHECK(services.blob->write(target, {}, &length, sizeof length));
  TN_CHECK(services.blob->write(target, {}, header.data(), header.size()));
  for (const auto& [name, tensor] : checkpoint.tensors) {
    DLTensor t = tensor.dl();
    TN_CHECK(services.blob->write(target, {}, data_of<char>(t),
                                  bytes_of(dtype_of(t), element_count(t))));
  }
  return {};
}

Status check_version(const json& header) {
  const json meta = header.value("__metadata__", json::object());
  bool is_ours = meta.is_object() && meta.contains(kVersionKey);
  for (const json& value : is_ours ? meta : json::object())
    is_ours = is_ours && value.is_string();
  if (!is_ours) return invalid("expected a checkpoint of trainer.train, got another file");
  std::string version = meta[kVersionKey], writer = meta.value(kWriterKey, "");
  if (version == kVersion || version == kEarlier) return {};
  return unsupported(cat("a checkpoint of version ", version, ", written by ",
                         writer.empty() ? "an earlier build of Tenon" : "Tenon " + writer,
                         ": expected version ", kVersion, ", which Tenon ", TENON_PLUGIN_VERSION,
                         " reads; go on with the Tenon that wrote it, or give another folder"));
}

// One entry of the header, checked against the bytes that follow it.
Result<Tensor> read_tensor(tn_ctx* ctx, const json& entry, const char* data, uint64_t bytes) {
  uint32_t type = TN_DTYPE_NONE;
  const json stated = entry.is_object() ? entry.value("dtype", json()) : json();
  for (const auto& [dtype, word] : kTypes)
    if (stated == word) type = dtype;
  const json shape = entry.is_object() ? entry.value("shape", json()) : json();
  const json at = entry.is_object() ? entry.value("data_offsets", json()) : json();
  bool good = type != TN_DTYPE_NONE && shape.is_array() && at.is_array() && at.size() == 2;
  for (const json* list : {&shape, &at})
    for (size_t i = 0; good && i < list->size(); ++i)
      good = (*list)[i].is_number_unsigned();
  if (!good) return Status(TN_DATA_LOSS, "a broken entry");
  auto begin = at[0].get<uint64_t>(), end = at[1].get<uint64_t>();
  uint64_t elements = 1, limit = bytes + 1;
  for (const json& dim : shape) {
    auto size = dim.get<uint64_t>();
    if (size != 0 && elements > limit / size) return Status(TN_DATA_LOSS, "larger than the file");
    elements *= size;
  }
  if (begin > end || end > bytes || bytes_of(type, static_cast<int64_t>(elements)) != end - begin)
    return Status(TN_DATA_LOSS, "its bytes are not in the file");
  return Tensor::copy_of(ctx, *DenseView(type, shape.get<std::vector<int64_t>>(), data + begin));
}

Result<Checkpoint> parse(tn_ctx* ctx, const char* data, uint64_t size) {
  uint64_t length = 0;
  if (size >= 8) std::memcpy(&length, data, 8);
  if (size < 8 || length > size - 8) return Status(TN_DATA_LOSS, "the file ends too early");
  json header = json::parse(data + 8, data + 8 + length, nullptr, false);
  if (!header.is_object()) return Status(TN_DATA_LOSS, "no JSON header");
  TN_CHECK(check_version(header));
  Checkpoint out;
  const json& meta = header["__metadata__"];
  out.run = meta.value("run", "");
  out.writer = meta.value(kWriterKey, "");
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    Result<Tensor> tensor = read_tensor(ctx, entry, data + 8 + length, size - 8 - length);
    if (!tensor.ok()) return std::move(tensor).status().in(name);
    out.tensors[name] = *tensor;
  }
  return out;
}

}  // namespace

Status save_checkpoint(tn_ctx* ctx, const std::string& path, const Checkpoint& checkpoint) {
  TN_TRY(header, header_of(checkpoint));
  tn_target* target = nullptr;
  TN_CHECK(services.blob->create(ctx, str(path), &target));
  Status written = write_all(target, header, checkpoint);
  if (!written.ok()) {
    services.blob->abandon(target);
    return written;
  }
  return Status(services.blob->commit(target));
}

Result<Checkpoint> load_checkpoint(tn_ctx* ctx, const std::string& path) {
  Blob blob;
  TN_CHECK(services.blob->open(ctx, str(path), &blob.raw));
  uint64_t size = services.blob->size(blob.raw);
  const void* data = nullptr;
  if (size) TN_CHECK(services.blob->map(blob.raw, 0, size, &data));
  Result<Checkpoint> read = parse(ctx, static_cast<const char*>(data), size);
  if (!read.ok()) return std::move(read).status().in(path);
  return read;
}

}  // namespace tenon::trainer
