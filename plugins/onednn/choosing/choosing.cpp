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

// With the store that it reads and fills.
class StoredChooser : public Chooser {
 public:
  StoredChooser(tn_ctx* ctx, std::string folder, int64_t budget_ns)
      : store_(std::move(folder),
               fingerprint(),
               [ctx](const std::string& what) { log_line(ctx, TN_LOG_WARNING, what); }),
        chooser_(store_, budget_ns, hold_contest) {}

  ChoiceStore& store() { return store_; }
  std::optional<Decision> kept(const std::string& key) override { return chooser_.kept(key); }
  bool measures() override { return chooser_.measures(); }
  Decision decide(Contest contest) override { return chooser_.decide(std::move(contest)); }
  Decision keep_ruled(const std::string& key, const std::string& ruled) override {
    return chooser_.keep_ruled(key, ruled);
  }

 private:
  ChoiceStore store_;
  MeasuredChooser chooser_;
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
  if (std::string bad = made->store().take(given); !bad.empty())
    return invalid(cat("option choices: expected lines as a plan reports them, got ", bad));
  return std::unique_ptr<Chooser>(std::move(made));
}

}  // namespace tenon::onednn
