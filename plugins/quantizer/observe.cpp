// SPDX-License-Identifier: Apache-2.0
// "quantizer.observe": looks at the activations of a model that is being trained in 8 bits once
// more, and moves their ranges: an average over time (Jacob et al., CVPR 2018, section 3.1).
// Training goes on with ranges that no longer move ("frozen") by not applying it any more.
#include <nlohmann/json.hpp>

#include "tenon/sdk/role/pass.hpp"

#include "calibration.hpp"
#include "calibration_options.hpp"
#include "scale.hpp"
#include "stored_value.hpp"

namespace tenon::quantizer {
namespace {

class Observe {
 public:
  static Result<Observe> create(tn_ctx* ctx, const Options& options) {
    Observe out;
    out.ctx_ = ctx;
    TN_TRY(data, FeedOptions::read(ctx, options));
    out.data_ = std::move(data);
    out.momentum_ = options.number("momentum");
    TN_TRY(plan, CalibrationPlan::from(options));
    out.plan_ = std::move(plan);
    return Result<Observe>(std::move(out));
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    TN_TRY(all, stored_values({raw}));
    std::vector<Value> values;
    for (const StoredValues& one : all)
      values.insert(values.end(), one.values.begin(), one.values.end());
    CalibrationPlan plan = plan_;
    plan.observer.symmetric = all[0].is_signed;
    TN_TRY(feed, Feed::make(ctx_, data_.data, {raw}, calibration_feed(data_)));
    TN_TRY(calibrated, calibrate(ctx_, {raw}, values, &feed, plan, cancel));
    TN_TRY(edit, Edit::begin(raw));
    nlohmann::ordered_json report = nlohmann::ordered_json::array();
    size_t at = 0;
    for (const StoredValues& one : all) {
      tn_range seen{0, 0, 0, 0}, before = one.range();
      for (size_t i = 0; i < one.values.size(); ++i, ++at) {
        seen.low = std::min(seen.low, calibrated.ranges[at].low);
        seen.high = std::max(seen.high, calibrated.ranges[at].high);
      }
      tn_range after{mixed(before.low, seen.low), mixed(before.high, seen.high), 0, 0};
      TN_CHECK(put(edit, one, params_for(after, one.is_signed)));
      report.push_back({{"name", one.values[0].name()},
                        {"before", {before.low, before.high}},
                        {"seen", {seen.low, seen.high}},
                        {"after", {after.low, after.high}}});
    }
    TN_CHECK(edit.commit());
    return sink.write(nlohmann::ordered_json{{"values", report}}.dump());
  }

 private:
  double mixed(double before, double seen) const {
    return momentum_ * before + (1 - momentum_) * seen;
  }
  static Status put(EditView edit, const StoredValues& one, const Params& params) {
    TN_CHECK(replace<float>(edit, one.scale, TN_F32, {params.scale}));
    std::vector<uint8_t> zero{static_cast<uint8_t>(params.zero_point)};
    return replace<uint8_t>(edit, one.zero, one.zero.dtype(), zero);
  }
  template <class T>
  static Status replace(EditView edit, Value old, uint32_t dtype, const std::vector<T>& number) {
    std::string name(old.name());
    TN_CHECK(Status(services.edit->set_value_name(edit.raw, old.id, str(name + "/before"))));
    TN_TRY(fresh, edit.constant<T>(dtype, {}, number, name));
    return edit.replace(edit.value(old.id), fresh);
  }

  tn_ctx* ctx_ = nullptr;
  FeedOptions data_;
  double momentum_ = 0;
  CalibrationPlan plan_;
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(observe,
           tenon::quantizer::Observe,
           "quantizer.observe",
           "moves the ranges of activations of a model that is trained in 8 bits",
           R"({"required": ["data"], "properties": {)" TENON_CALIBRATION_OPTIONS R"(,
    "momentum": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.5,
                 "description": "momentum: weight of the present range; 0: the range of this data"}}})")
