// SPDX-License-Identifier: Apache-2.0
#include "settings.hpp"

#include "implementations/choice.hpp"
#include "team/team.hpp"

namespace tenon::onednn {
namespace {

Use use_of(std::string_view name) {
  if (name == "off") return Use::kOff;
  return name == "all" ? Use::kAll : Use::kAuto;
}

Status check_without(const std::vector<std::string>& without) {
  const Names& known = implementation_names();
  for (const std::string& name : without) {
    if (known.count(name) != 0) continue;
    std::string all;
    for (const std::string& one : known)
      all += cat(all.empty() ? "" : ", ", one);
    return invalid(cat("option without: expected some of ", all, ", got ", name));
  }
  return {};
}

}  // namespace

Result<Settings> Settings::of(const Options& options) {
  Settings made;
  made.precision = options.text("precision", made.precision);
  made.winograd = options.text("winograd", made.winograd);
  made.sparse = options.text("sparse", made.sparse);
  made.without = options.texts("without");
  TN_CHECK(check_without(made.without));
  made.threads = options.integer("threads", 0);
  return made;
}

CompileOptions Settings::with(const Options& of_the_plan) const {
  CompileOptions compile;
  const std::string kept_in = of_the_plan.text("precision", precision);
  compile.bf16 = kept_in == "bf16";
  compile.int8_rows = kept_in != "fp32";
  compile.winograd = use_of(of_the_plan.text("winograd", winograd));
  compile.sparse = use_of(of_the_plan.text("sparse", sparse));
  compile.without = of_the_plan.has("without") ? of_the_plan.texts("without") : without;
  const int64_t wanted = of_the_plan.integer("threads", threads);
  compile.threads = wanted > 0 ? static_cast<int>(wanted) : team::max_threads();
  return compile;
}

}  // namespace tenon::onednn
