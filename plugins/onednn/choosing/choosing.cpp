// SPDX-License-Identifier: Apache-2.0
#include "choosing.hpp"

#include <string>
#include <vector>

#include "tenon/sdk/run.hpp"

#include "contest.hpp"
#include "fingerprint.hpp"
#include "measured_chooser.hpp"

namespace tenon::onednn {
namespace {

constexpr int64_t kDefaultMs = 500;  // as the schema says
constexpr int64_t kNsOfMs = 1'000'000;

// A base, so that it is there before the chooser that reads and fills it.
struct WithStore {
  ChoiceStore store;
};

struct StoredChooser : WithStore, MeasuredChooser {
  StoredChooser(tn_ctx* ctx, std::string folder, int64_t budget_ns)
      : WithStore{{std::move(folder), fingerprint(),
                   [ctx](const std::string& what) { log_line(ctx, TN_LOG_WARNING, what); }}},
        MeasuredChooser(store, budget_ns, hold_contest) {}
};

}  // namespace

Result<std::unique_ptr<Chooser>> new_chooser(tn_ctx* ctx, const Options& options) {
  const std::string how = options.text("choose", "rules");
  const std::vector<std::string> given = options.texts("choices");
  if (how == "rules" && given.empty()) return std::unique_ptr<Chooser>();
  const bool measures = how == "measured" && !options.flag("deterministic");
  const int64_t ms = measures ? options.integer("choose_ms", kDefaultMs) : 0;
  auto made = std::make_unique<StoredChooser>(
      ctx, how == "rules" ? "" : ChoiceStore::default_folder(), ms * kNsOfMs);
  if (std::string bad = made->store.take(given); !bad.empty())
    return invalid(cat("option choices: expected lines as a plan reports them, got ", bad));
  return std::unique_ptr<Chooser>(std::move(made));
}

}  // namespace tenon::onednn
