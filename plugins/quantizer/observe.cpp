// SPDX-License-Identifier: Apache-2.0
// "quantizer.observe": looks at the activations of a model that is being trained in 8 bits once
// more, and moves their ranges: an average over time (Jacob et al., CVPR 2018, section 3.1).
// Training goes on with ranges that no longer move ("frozen") by not applying it any more.
#include <map>

#include <nlohmann/json.hpp>

#include "tenon/sdk/role/pass.hpp"

#include "calibration.hpp"
#include "scale.hpp"

namespace tenon::quantizer {
namespace {

// One scale and zero point, and the values that are stored with them.
struct Stored {
  Value scale, zero;
  std::vector<Value> values;
  bool is_signed = false;

  tn_range range() const {
    double step = *scale.constant().data<float>();
    double low = is_signed ? -128 : 0, zero_point = is_signed ? *zero.constant().data<int8_t>()
                                                              : *zero.constant().data<uint8_t>();
    return {(low - zero_point) * step, (low + 255 - zero_point) * step, 0, 0};
  }
};

bool is_number(Value v) {
  return v && v.is_constant() && v.type().rank() == 0;
}

std::vector<Stored> stored_values(Graph graph) {
  std::vector<Stored> out;
  std::map<tn_value_id, size_t> by_scale;
  for (Node node : graph.nodes()) {
    if (!node.is("QuantizeLinear") || node.input(0).is_constant()) continue;
    Value scale = node.input(1), zero = node.input(2);
    if (!is_number(scale) || !is_number(zero) || scale.dtype() != TN_F32) continue;
    if (zero.dtype() != TN_U8 && zero.dtype() != TN_I8) continue;
    auto [at, fresh] = by_scale.emplace(scale.id, out.size());
    if (fresh) out.push_back({scale, zero, {}, zero.dtype() == TN_I8});
    out[at->second].values.push_back(node.input(0));
  }
  return out;
}

class Observe {
 public:
  static Result<Observe> create(tn_ctx* ctx, const Options& options) {
    Observe out;
    out.ctx_ = ctx;
    TN_TRY(data, component_option(ctx, options, "data", "tenon.dataset/1"));
    out.data_ = std::move(data);
    out.samples_ = static_cast<uint64_t>(options.integer("samples"));
    out.batch_ = static_cast<uint64_t>(options.integer("batch"));
    out.momentum_ = options.number("momentum");
    out.plan_ = {options.text("observer"), options.text("observer_options"),
                 options.texts("backend"), false, options.text("non_finite") == "refuse"};
    if (out.plan_.backends.empty()) out.plan_.backends = {"onednn", "reference"};
    return Result<Observe>(std::move(out));
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    std::vector<Stored> all = stored_values({raw});
    if (all.empty())
      return {TN_FAILED_PRECONDITION,
              "expected a model with activations behind QuantizeLinear, as quantizer.qat leaves "
              "it, got none"};
    std::vector<Value> values;
    for (const Stored& one : all)
      values.insert(values.end(), one.values.begin(), one.values.end());
    CalibrationPlan plan = plan_;
    plan.symmetric = all[0].is_signed;
    TN_TRY(feed, DataFeed::make(ctx_, data_, {raw}, samples_, batch_));
    TN_TRY(calibrated, calibrate(ctx_, {raw}, values, &feed, plan, cancel));
    TN_TRY(edit, Edit::begin(raw));
    nlohmann::ordered_json report = nlohmann::ordered_json::array();
    size_t at = 0;
    for (const Stored& one : all) {
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
  static Status put(EditView edit, const Stored& one, const Params& params) {
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
  Component data_;
  uint64_t samples_ = 0, batch_ = 1;
  double momentum_ = 0;
  CalibrationPlan plan_;
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(observe,
           tenon::quantizer::Observe,
           "quantizer.observe",
           "moves the ranges of activations of a model that is trained in 8 bits",
           R"({
  "properties": {
    "data": {"type": "component", "role": "tenon.dataset/1", "description": "a data set, an id or a file"},
    "momentum": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.5,
                 "description": "share of the range as it is; 0: what is seen now"},
    "samples": {"type": "integer", "minimum": 1, "default": 256, "description": "at most so many samples"},
    "batch": {"type": "integer", "minimum": 1, "default": 8, "description": "samples at once"},
    "observer": {"type": "string", "default": "mse",
                 "description": "entropy, minmax, moving_average, mse, percentile, or the id of another"},
    "observer_options": {"type": "object", "description": "options of the observer"},
    "backend": {"type": ["array", "string"], "items": {"type": "string"},
                "description": "runs the model; the first that is there of: onednn, reference"},
    "non_finite": {"type": "string", "enum": ["refuse", "ignore"], "default": "refuse",
                   "description": "NaN or infinity in a value during calibration"}},
  "required": ["data"]})")
