// SPDX-License-Identifier: Apache-2.0
// Loss scalers of other libraries: their defaults, their configurations, and the states that a run
// goes on from.
#include "scaler.hpp"

#include <cmath>
#include <limits>
#include <span>

#include <nlohmann/json.hpp>

#include "tenon/nearest.hpp"

namespace tenon::precision {
namespace {

using nlohmann::json;

constexpr double kMostScale = std::numeric_limits<float>::max();

constexpr Scaler kScalers[] = {
    {},
    {.name = "apex", .highest = 16777216},
    {.name = "deepspeed", .init = 4294967296, .interval = 1000, .lowest = 1, .hysteresis = 2},
};

// An object of a library, read key by key; the first mistake is kept.
class Given {
 public:
  Given(std::string_view where, const json& object) : where_(where), object_(object) {}

  bool has(const char* key) const { return object_.contains(key) && !object_[key].is_null(); }
  double number(const char* key, double fallback) {
    if (!has(key)) return fallback;
    if (object_[key].is_number() && std::isfinite(object_[key].get<double>())) return object_[key];
    fail(key, "a number");
    return fallback;
  }
  double positive(const char* key, double fallback) {
    double out = number(key, fallback);
    if (!(out > 0) && status_.ok()) fail(key, "a number above 0");
    return out;
  }
  int64_t count(const char* key, int64_t fallback, int64_t least) {
    if (!has(key)) return fallback;
    double out = number(key, 0);
    if (out == std::floor(out) && out >= static_cast<double>(least) && out <= 2147483647)
      return static_cast<int64_t>(out);
    fail(key, cat("a whole number of at least ", least));
    return fallback;
  }
  bool flag(const char* key, bool fallback) {
    if (!has(key)) return fallback;
    if (object_[key].is_boolean()) return object_[key];
    fail(key, "true or false");
    return fallback;
  }
  void require(std::initializer_list<const char*> keys) {
    for (const char* key : keys)
      if (!has(key) && status_.ok())
        status_ = invalid(cat(where_, ": expected ", key, ", got ", keys_text()));
  }
  void allow(std::initializer_list<std::string_view> keys) {
    std::vector<std::string_view> known(keys);
    for (const auto& [key, value] : object_.items())
      if (std::find(known.begin(), known.end(), key) == known.end() && status_.ok())
        status_ = invalid(cat(where_, ": unknown key ", key, did_you_mean(key, known)));
  }
  void refuse(std::string why) {
    if (status_.ok()) status_ = invalid(cat(where_, ": ", why));
  }
  Status status() { return std::move(status_); }

 private:
  void fail(const char* key, std::string_view expected) {
    refuse(cat(key, ": expected ", expected, ", got ", object_[key].dump()));
  }
  std::string keys_text() const {
    std::string out;
    for (const auto& [key, value] : object_.items())
      out += cat(out.empty() ? "" : ", ", key);
    return out.empty() ? "none" : out;
  }

  std::string where_;
  const json& object_;
  Status status_;
};

// A scale that never moves: what DeepSpeed and Apex call static. An overflow still skips its step.
void make_static(Scaler& out, double scale) {
  out.init = out.lowest = out.highest = scale;
  out.hysteresis = 1;
}

// https://www.deepspeed.ai/docs/config-json, "FP16 training options", with its defaults.
Status read_deepspeed_config(const json& object, Scaler& out) {
  Given given("option config", object);
  given.allow({"enabled", "auto_cast", "loss_scale", "initial_scale_power", "loss_scale_window",
               "hysteresis", "consecutive_hysteresis", "min_loss_scale",
               "fp16_master_weights_and_grads"});
  if (!given.flag("enabled", true)) given.refuse("enabled is false: leave loss scaling out");
  if (given.flag("fp16_master_weights_and_grads", false))
    given.refuse("fp16_master_weights_and_grads: parameters stay in float32 here, or use level O3");
  double power = given.number("initial_scale_power", 16);
  if (!(power >= 0 && power <= 126)) given.refuse("initial_scale_power: expected 0 to 126");
  out.init = std::exp2(power);
  out.interval = given.count("loss_scale_window", 1000, 1);
  out.hysteresis = given.count("hysteresis", 2, 1);
  out.consecutive = given.flag("consecutive_hysteresis", false);
  out.lowest = given.number("min_loss_scale", 1);
  double fixed = given.number("loss_scale", 0);
  if (fixed < 0)
    given.refuse(
        cat("loss_scale: expected a scale, or 0 for a dynamic one, got ", json(fixed).dump()));
  if (fixed > 0) make_static(out, fixed);
  return given.status();
}

// apex.amp.initialize(loss_scale="dynamic", min_loss_scale=None, max_loss_scale=2**24).
Status read_apex_config(const json& object, Scaler& out) {
  Given given("option config", object);
  given.allow({"loss_scale", "min_loss_scale", "max_loss_scale"});
  out.lowest = given.number("min_loss_scale", 0);
  out.highest = given.positive("max_loss_scale", 16777216);
  out.init = std::min(out.init, out.highest);
  if (given.has("loss_scale") && object["loss_scale"] != "dynamic")
    make_static(out, given.positive("loss_scale", 1));
  return given.status();
}

Status read_torch_state(const json& object, Scaler& out) {
  Given given("option state", object);
  given.require({"scale", "_growth_tracker"});
  out.init = given.positive("scale", out.init);
  out.growth = given.positive("growth_factor", out.growth);
  out.backoff = given.positive("backoff_factor", out.backoff);
  out.interval = given.count("growth_interval", out.interval, 1);
  out.tracker = static_cast<int32_t>(given.count("_growth_tracker", 0, 0));
  return given.status();
}

// {"loss_scaler0": {"loss_scale": 65536.0, "unskipped": 3}}, or what is in it.
Status read_apex_state(const json& object, Scaler& out) {
  const bool is_whole = object.contains("loss_scaler0") && object["loss_scaler0"].is_object();
  if (is_whole && object.size() > 1)
    return invalid(cat("option state: expected the state of one loss scaler, got ", object.size(),
                       ": give that of one of them"));
  Given given("option state", is_whole ? object["loss_scaler0"] : object);
  given.require({"loss_scale", "unskipped"});
  out.init = given.positive("loss_scale", out.init);
  out.tracker = static_cast<int32_t>(given.count("unskipped", 0, 0));
  return given.status();
}

Status read_deepspeed_state(const json& object, Scaler& out) {
  Given given("option state", object);
  if (!given.flag("dynamic_loss_scale", true)) {
    given.require({"cur_scale"});
    make_static(out, given.positive("cur_scale", 1));
    return given.status();
  }
  given.require({"cur_scale", "cur_iter", "last_overflow_iter"});
  out.init = given.positive("cur_scale", out.init);
  if (double factor = given.positive("scale_factor", 2); given.has("scale_factor")) {
    out.growth = factor;
    out.backoff = 1 / factor;
  }
  out.interval = given.count("scale_window", out.interval, 1);
  out.lowest = given.number("min_scale", out.lowest);
  out.hysteresis = given.count("delayed_shift", out.hysteresis, 1);
  out.consecutive = given.flag("consecutive_hysteresis", out.consecutive);
  out.hysteresis_left = static_cast<int32_t>(given.count("cur_hysteresis", out.hysteresis, 1));
  int64_t good = given.count("cur_iter", 0, 0) - given.count("last_overflow_iter", -1, -1) - 1;
  if (good < 0) given.refuse("last_overflow_iter: expected less than cur_iter");
  out.tracker = static_cast<int32_t>(std::max<int64_t>(good, 0) % out.interval);
  return given.status();
}

using Read = Status (*)(const json&, Scaler&);

Status read_object(const Options& options, const char* key, Read read, Scaler& out) {
  if (!options.has(key)) return {};
  if (!read)
    return invalid(cat("option ", key, ": preset torch has none: give its options by name"));
  return read(json::parse(options.text(key)), out);
}

}  // namespace

Result<Scaler> scaler_of(const Options& options) {
  Scaler out;
  for (const Scaler& one : kScalers)
    if (options.text("preset", "torch") == one.name) out = one;
  const bool is_apex = out.name == "apex", is_torch = out.name == "torch";
  TN_CHECK(read_object(options, "config",
                       is_torch  ? nullptr
                       : is_apex ? read_apex_config
                                 : read_deepspeed_config,
                       out));
  const bool is_static = out.lowest == out.highest;
  const double fixed = out.init;
  TN_CHECK(read_object(options, "state",
                       is_torch  ? read_torch_state
                       : is_apex ? read_apex_state
                                 : read_deepspeed_state,
                       out));
  if (is_static) {
    if (out.init != fixed)
      return invalid(cat("option state: expected the scale ", json(fixed).dump(),
                         ", which never moves as option config has it, got ", json(out.init).dump(),
                         ": leave one of them out"));
    make_static(out, fixed);
  }
  auto number = [&](const char* key, double& to) {
    if (options.has(key)) to = options.number(key);
  };
  auto count = [&](const char* key, int64_t& to) {
    if (options.has(key)) to = options.integer(key);
  };
  number("init_scale", out.init);
  number("growth_factor", out.growth);
  number("backoff_factor", out.backoff);
  count("growth_interval", out.interval);
  number("min_scale", out.lowest);
  number("max_scale", out.highest);
  count("hysteresis", out.hysteresis);
  if (options.has("consecutive_hysteresis"))
    out.consecutive = options.flag("consecutive_hysteresis");
  if (!(out.init <= kMostScale))
    return invalid(cat("expected an initial scale of at most ", json(kMostScale).dump(), ", got ",
                       json(out.init).dump()));
  if (out.hysteresis <= 1) out.hysteresis_left = 0;  // no state counts them
  if (!(out.lowest <= out.highest))
    return invalid(
        cat("option min_scale: expected at most max_scale, ", out.highest, ", got ", out.lowest));
  return out;
}

}  // namespace tenon::precision
