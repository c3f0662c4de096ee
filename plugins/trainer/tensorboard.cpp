// SPDX-License-Identifier: Apache-2.0
// "trainer.tensorboard": the figures of a run as an event file, which TensorBoard draws while the
// run goes on. A run that goes on writes another file into the folder, as TensorBoard expects.
#include <chrono>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "tenon/sdk/component.hpp"
#include "tenon/sdk/role/callback.hpp"

#include "appended.hpp"
#include "event_record.hpp"

namespace tenon::trainer {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

class TensorBoard {
 public:
  static Result<TensorBoard> create(tn_ctx*, const Options& options) {
    TensorBoard out;
    std::string name = cat("events.out.tfevents.", static_cast<int64_t>(now()), ".", getpid());
    out.file_ = Appended(cat(options.text("path"), "/", name, ".tenon"));
    out.every_ = static_cast<uint64_t>(options.integer("every"));
    return out;
  }

  Result<bool> step(const tn_progress_point& at) {
    if (at.step % every_ != 0) return false;
    TN_CHECK(write(at.step, {{"step/loss", static_cast<float>(at.loss)},
                             {"step/rate", static_cast<float>(at.rate)}}));
    return false;
  }

  Result<bool> epoch(std::string_view record, Graph) {
    nlohmann::json parsed = nlohmann::json::parse(record, nullptr, false);
    std::vector<std::pair<std::string, float>> scalars;
    for (const auto& [key, value] : parsed.items())
      if (value.is_number() && key != "steps")
        scalars.emplace_back(cat("epoch/", key), value.get<float>());
    TN_CHECK(write(parsed.value("steps", uint64_t{0}), scalars));
    return false;
  }

 private:
  Status write(uint64_t step, const std::vector<std::pair<std::string, float>>& scalars) {
    if (!begun_) TN_CHECK(file_.write(first_event(now())));
    begun_ = true;
    return file_.write(scalars_event(now(), step, scalars));
  }

  Appended file_;
  uint64_t every_ = 1;
  bool begun_ = false;
};

}  // namespace
}  // namespace tenon::trainer

TENON_CALLBACK(tensorboard,
               tenon::trainer::TensorBoard,
               "trainer.tensorboard",
               "loss, rate and what is recorded of epochs, for TensorBoard",
               R"({
  "required": ["path"],
  "properties": {
    "path": {"type": "path", "description": "a folder, for a file of its own"},
    "every": {"type": "integer", "minimum": 1, "default": 1, "description": "scalars every this many steps"}}})")
