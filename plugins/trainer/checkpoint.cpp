// SPDX-License-Identifier: Apache-2.0
#include "checkpoint.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

#include "tenon/sdk/safetensors.hpp"

namespace tenon::trainer {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "the file has little-endian numbers");

// Another number whenever what the loop keeps gets another form: 2 had the history inside; one in
// several files is of a version of its own.
constexpr const char *kVersion = "3", *kEarlier = "2", *kSharded = "4";
constexpr const char* kShardsKey = "shards";
constexpr const char *kVersionKey = "tenon.checkpoint", *kWriterKey = "tenon";

struct Blob {
  tn_blob* raw = nullptr;
  Blob() = default;
  Blob(const Blob&) = delete;
  ~Blob() {
    if (raw) services.blob->release(raw);
  }
};

// shards: the files that hold the tensors; none: this one does.
Result<std::string> header_of(const Checkpoint& checkpoint, const json& shards) {
  safetensors::Header header;
  header.metadata = {{kVersionKey, shards.empty() ? kVersion : kSharded},
                     {kWriterKey, checkpoint.writer},
                     {"run", checkpoint.run}};
  if (!shards.empty()) header.metadata.emplace_back(kShardsKey, shards.dump());
  uint64_t at = 0;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    DLTensor t = tensor.dl();
    uint32_t dtype = dtype_of(t);
    if (safetensors::name_of_dtype(dtype).empty())
      return unsupported(cat("state ", name, ": of type ", dtype_name(dtype)));
    uint64_t end = at + bytes_of(dtype, element_count(t));
    auto dims = shape_of(t);
    header.tensors.push_back({name, dtype, {dims.begin(), dims.end()}, at, end});
    at = end;
  }
  return safetensors::print_header(header);
}

Status write_all(tn_target* target, const std::string& header, const Checkpoint& checkpoint) {
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
  if (version == kVersion || version == kEarlier || version == kSharded) return {};
  return unsupported(cat("a checkpoint of version ", version, ", written by ",
                         writer.empty() ? "an earlier build of Tenon" : "Tenon " + writer,
                         ": expected version ", kVersion, ", which Tenon ", TENON_PLUGIN_VERSION,
                         " reads; go on with the Tenon that wrote it, or give another folder"));
}

// One entry of the header, checked against the bytes that follow it.
Result<Tensor> read_tensor(tn_ctx* ctx, const json& entry, const char* data, uint64_t bytes) {
  const json stated = entry.is_object() ? entry.value("dtype", json()) : json();
  const uint32_t type = stated.is_string() ? safetensors::dtype_of_name(stated.get<std::string>())
                                           : uint32_t{TN_DTYPE_NONE};
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

Result<Checkpoint> parse(tn_ctx* ctx, const char* data, uint64_t size, json* shards) {
  uint64_t length = 0;
  constexpr uint64_t kLengthBytes = safetensors::kLengthBytes;
  if (size >= kLengthBytes) std::memcpy(&length, data, kLengthBytes);
  if (size < kLengthBytes || length > size - kLengthBytes)
    return Status(TN_DATA_LOSS, "the file ends too early");
  const char* rest = data + kLengthBytes + length;
  json header = json::parse(data + kLengthBytes, rest, nullptr, false);
  if (!header.is_object()) return Status(TN_DATA_LOSS, "no JSON header");
  TN_CHECK(check_version(header));
  Checkpoint out;
  const json& meta = header["__metadata__"];
  out.run = meta.value("run", "");
  out.writer = meta.value(kWriterKey, "");
  if (shards) *shards = json::parse(meta.value(kShardsKey, "[]"), nullptr, false);
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    Result<Tensor> tensor = read_tensor(ctx, entry, rest, size - kLengthBytes - length);
    if (!tensor.ok()) return std::move(tensor).status().in(name);
    out.tensors[name] = *tensor;
  }
  return out;
}

Status write_file(tn_ctx* ctx,
                  const std::string& path,
                  const Checkpoint& checkpoint,
                  const json& shards = json::array()) {
  TN_TRY(header, header_of(checkpoint, shards));
  tn_target* target = nullptr;
  TN_CHECK(services.blob->create(ctx, str(path), &target));
  Status written = write_all(target, header, checkpoint);
  if (!written.ok()) {
    services.blob->abandon(target);
    return written;
  }
  return Status(services.blob->commit(target));
}

Result<Checkpoint> read_file(tn_ctx* ctx, const std::string& path, json* shards) {
  Blob blob;
  TN_CHECK(services.blob->open(ctx, str(path), &blob.raw));
  uint64_t size = services.blob->size(blob.raw);
  const void* data = nullptr;
  if (size) TN_CHECK(services.blob->map(blob.raw, 0, size, &data));
  Result<Checkpoint> read = parse(ctx, static_cast<const char*>(data), size, shards);
  if (!read.ok()) return std::move(read).status().in(path);
  return read;
}

uint64_t bytes_of(const Tensor& tensor) {
  DLTensor t = tensor.dl();
  return tenon::bytes_of(dtype_of(t), element_count(t));
}

// Tensors in their order, as many to a shard as fit.
std::vector<Checkpoint> split(const Checkpoint& whole, uint64_t shard_bytes) {
  std::vector<Checkpoint> out;
  uint64_t bytes = 0;
  for (const auto& [name, tensor] : whole.tensors) {
    uint64_t more = bytes_of(tensor);
    if (out.empty() || bytes + more > shard_bytes) {
      out.push_back({"", {}, whole.writer});
      bytes = 0;
    }
    out.back().tensors[name] = tensor;
    bytes += more;
  }
  return out;
}

// "a-1.safetensors" of "checkpoint.a-1.safetensors", beside "checkpoint.safetensors"; empty:
// another file.
std::string shard_part(const fs::path& of, const std::string& name) {
  std::string stem = of.stem().string() + ".", end = of.extension().string();
  bool fits = name.size() > stem.size() + end.size() && name.starts_with(stem) &&
              name.ends_with(end) && name != of.filename().string();
  std::string part = fits ? name.substr(stem.size(), name.size() - stem.size() - end.size()) : "";
  bool is_ours = part.size() > 2 && (part[0] == 'a' || part[0] == 'b') && part[1] == '-';
  return is_ours ? part : "";
}

void remove_shards(const fs::path& of, const json& but) {
  std::error_code ignored;
  std::vector<fs::path> gone;
  for (const fs::directory_entry& entry : fs::directory_iterator(of.parent_path(), ignored)) {
    std::string name = entry.path().filename().string();
    bool stays = std::find(but.begin(), but.end(), name) != but.end();
    if (!stays && !shard_part(of, name).empty()) gone.push_back(entry.path());
  }
  for (const fs::path& path : gone)
    fs::remove(path, ignored);
}

// The name that the shards of the checkpoint that lies there do not have.
Result<std::string> free_name(tn_ctx* ctx, const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::string("a");
  json shards;
  TN_TRY(unused, read_file(ctx, path.string(), &shards));
  (void)unused;
  bool has_a = shards.is_array() && !shards.empty() && shards[0].is_string() &&
               shard_part(path, shards[0]).starts_with('a');
  return std::string(has_a ? "b" : "a");
}

}  // namespace

Status save_checkpoint(tn_ctx* ctx,
                       const std::string& path,
                       const Checkpoint& checkpoint,
                       uint64_t shard_bytes) {
  uint64_t bytes = 0;
  for (const auto& [name, tensor] : checkpoint.tensors)
    bytes += bytes_of(tensor);
  fs::path at = path;
  if (shard_bytes == 0 || bytes <= shard_bytes) {
    TN_CHECK(write_file(ctx, path, checkpoint));
    remove_shards(at, json::array());
    return {};
  }
  TN_TRY(name, free_name(ctx, at));
  json files = json::array();
  for (const Checkpoint& shard : split(checkpoint, shard_bytes)) {
    std::string file = cat(at.stem().string(), ".", name, "-", files.size() + 1, ".safetensors");
    TN_CHECK(write_file(ctx, (at.parent_path() / file).string(), shard));
    files.push_back(file);
  }
  TN_CHECK(write_file(ctx, path, {checkpoint.run, {}, checkpoint.writer}, files));
  remove_shards(at, files);
  return {};
}

Result<Checkpoint> load_checkpoint(tn_ctx* ctx, const std::string& path) {
  json shards;
  TN_TRY(out, read_file(ctx, path, &shards));
  if (!shards.is_array()) return Status(TN_DATA_LOSS, cat(path, ": a broken list of shards"));
  for (const json& name : shards) {
    if (!name.is_string() || shard_part(path, name).empty())
      return Status(TN_DATA_LOSS, cat(path, ": expected names of shards, got ", name.dump()));
    fs::path file = fs::path(path).parent_path() / name.get<std::string>();
    TN_TRY(part, read_file(ctx, file.string(), nullptr));
    out.tensors.merge(part.tensors);
  }
  return std::move(out);
}

Status remove_checkpoint(const std::string& path) {
  std::error_code failed;
  fs::remove(path, failed);
  if (failed) return {TN_DATA_LOSS, cat(path, ": ", failed.message())};
  remove_shards(path, json::array());
  return {};
}

}  // namespace tenon::trainer
