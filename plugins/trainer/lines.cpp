// SPDX-License-Identifier: Apache-2.0
// "trainer.lines": the figures of a run as JSON, a line for each step and each epoch. A run that
// goes on appends; of a step that it did twice the later line counts.
#include <nlohmann/json.hpp>

#include "tenon/sdk/component.hpp"
#include "tenon/sdk/role/callback.hpp"

#include "appended.hpp"

namespace tenon::trainer {
namespace {

using nlohmann::json;

class Lines {
 public:
  static Result<Lines> create(tn_ctx*, const Options& options) {
    Lines out;
    out.file_ = Appended(options.text("path"));
    out.every_ = static_cast<uint64_t>(options.integer("every"));
    return out;
  }

  // A loss that is no number is null, which JSON has in its place.
  Result<bool> step(const tn_progress_point& at) {
    if (at.step % every_ != 0) return false;
    json line{{"event", "step"}, {"step", at.step}, {"epoch", at.epoch},
              {"loss", at.loss}, {"rate", at.rate}, {"skipped", at.skipped != 0}};
    TN_CHECK(file_.write(line.dump() + "\n"));
    return false;
  }

  Result<bool> epoch(std::string_view record, Graph) {
    json line = json::parse(record, nullptr, false);
    line["event"] = "epoch";
    TN_CHECK(file_.write(line.dump() + "\n"));
    return false;
  }

 private:
  Appended file_;
  uint64_t every_ = 1;
};

}  // namespace
}  // namespace tenon::trainer

TENON_CALLBACK(lines,
               tenon::trainer::Lines,
               "trainer.lines",
               "loss, rate and what is recorded of epochs, as lines of JSON",
               R"({
  "required": ["path"],
  "properties": {
    "path": {"type": "path", "description": "a file, which is appended to"},
    "every": {"type": "integer", "minimum": 1, "default": 1, "description": "a line every this many steps"}}})")
