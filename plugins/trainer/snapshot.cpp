// SPDX-License-Identifier: Apache-2.0
// "trainer.snapshot": the model as a file, each so many epochs, in the format that the name asks
// for.
#include <nlohmann/json.hpp>

#include "tenon/sdk/component.hpp"
#include "tenon/sdk/role/callback.hpp"

namespace tenon::trainer {
namespace {

constexpr std::string_view kWriter = "tenon.writer/1", kNumber = "{epoch}";

class Snapshot {
 public:
  static Result<Snapshot> create(tn_ctx* ctx, const Options& options) {
    std::string path = options.text("path");
    StringSink id;
    Status found(services.component->for_file(ctx, str(kWriter), str(path), id.get()));
    if (!found.ok()) return std::move(found).in("option path");
    TN_TRY(writer, Component::create(ctx, kWriter, id.text));
    return Snapshot(ctx, std::move(writer), path, static_cast<uint64_t>(options.integer("every")));
  }
  Result<bool> epoch(std::string_view record, Graph model) {
    nlohmann::json parsed = nlohmann::json::parse(record, nullptr, false);
    uint64_t number = parsed.is_object() ? parsed.value("epoch", uint64_t{0}) : 0;
    if (number == 0) return invalid("record: expected the number of the epoch");
    if (number % every_ == 0) TN_CHECK(write(path_of(number), model));
    return false;
  }

 private:
  Snapshot(tn_ctx* ctx, Component writer, std::string path, uint64_t every)
      : ctx_(ctx), writer_(std::move(writer)), path_(std::move(path)), every_(every) {}

  std::string path_of(uint64_t epoch) const {
    std::string path = path_;
    size_t at = path.find(kNumber);
    return at == path.npos ? path : path.replace(at, kNumber.size(), std::to_string(epoch));
  }
  Status write(const std::string& path, Graph model) const {
    tn_target* target = nullptr;
    TN_CHECK(services.blob->create(ctx_, str(path), &target));
    const auto* table = writer_.table<tn_writer>();
    Status written(table->write(writer_.self(), model.raw, target, nullptr));
    if (written.ok()) return Status(services.blob->commit(target));
    services.blob->abandon(target);
    return std::move(written).in(path);
  }

  tn_ctx* ctx_;
  Component writer_;
  std::string path_;
  uint64_t every_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_CALLBACK(snapshot,
               tenon::trainer::Snapshot,
               "trainer.snapshot",
               "writes the model every `every` epochs",
               R"({
  "required": ["path"],
  "properties": {
    "path": {"type": "path", "description": "file to write, whole or not at all; {epoch} in it becomes the epoch's number"},
    "every": {"type": "integer", "minimum": 1, "default": 1, "description": "a file every this many epochs"}}})")
