// SPDX-License-Identifier: Apache-2.0
// "quantizer.observer.minmax": the smallest and the largest number.
#include "extremes.hpp"

namespace tenon::quantizer {
namespace {

class MinMax {
 public:
  static Result<MinMax> create(tn_ctx*, const Options& options) {
    MinMax out;
    out.symmetric_ = options.flag("symmetric");
    return out;
  }
  Status observe(const DLTensor& tensor) {
    return with_floats(tensor, [&](const auto* data, size_t n) { all_.add(data, n); });
  }
  Status save(Sink& sink) const {
    nlohmann::json out = to_json(all_);
    out["kind"] = "minmax";
    return sink.write(out.dump());
  }
  Status merge(std::string_view saved) {
    // The ends are in a histogram as well.
    Result<nlohmann::json> parsed = parse_saved(saved, "histogram");
    if (!parsed.ok()) parsed = parse_saved(saved, "minmax");
    if (!parsed.ok()) return std::move(parsed).status();
    TN_TRY(other, extremes_in(*parsed));
    all_.add(other);
    return {};
  }
  Result<tn_range> range() const { return make_range(all_, all_.low, all_.high, symmetric_); }

 private:
  bool symmetric_ = false;
  Extremes all_;
};

}  // namespace
}  // namespace tenon::quantizer

TENON_OBSERVER(minmax,
               tenon::quantizer::MinMax,
               "quantizer.observer.minmax",
               "the smallest and the largest number seen",
               R"({"properties": {)" TENON_OBSERVER_OPTIONS "}}")
