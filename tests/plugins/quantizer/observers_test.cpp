// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>

#include "plugins/plugin_session.hpp"

namespace tenon::test {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

class Observer : public PluginTest {
 protected:
  Component start(std::string_view kind, const json& options = json::object()) {
    Result<Component> made = make("tenon.observer/1", cat("quantizer.observer.", kind), options);
    if (made.ok()) return std::move(*made);
    ADD_FAILURE() << text_of(made.status());
    return {};
  }
  static std::string observe(const Component& c, const Floats& values) {
    std::vector<int64_t> shape{static_cast<int64_t>(values.size())};
    DenseView tensor(TN_F32, shape, values.data());
    return text_of(Status(c.table<tn_observer>()->observe(c.self(), tensor.get())));
  }
  static std::string save(const Component& c) {
    StringSink sink;
    EXPECT_EQ(text_of(Status(c.table<tn_observer>()->save(c.self(), sink.get()))), "");
    return sink.text;
  }
  static std::string merge(const Component& c, const std::string& saved) {
    return text_of(Status(c.table<tn_observer>()->merge(c.self(), {saved.data(), saved.size()})));
  }
  static tn_range range(const Component& c) {
    tn_range out{};
    EXPECT_EQ(text_of(Status(c.table<tn_observer>()->range(c.self(), &out))), "");
    return out;
  }
  tn_range range_of(std::string_view kind,
                    const Floats& values,
                    const json& options = json::object()) {
    Component c = start(kind, options);
    EXPECT_EQ(observe(c, values), "");
    return range(c);
  }
  Floats normal(size_t n, uint64_t seed) {
    std::vector<double> draws(n);
    services.random->normal(seed, 0, 0, draws.data(), n);
    return {draws.begin(), draws.end()};
  }
  // As the host lists them: what all promise is asked of a new one too.
  std::vector<std::string> all() {
    constexpr std::string_view kPrefix = "quantizer.observer.";
    StringSink text;
    Status listed(services.component->list(ctx_, str("tenon.observer/1"), text.get()));
    EXPECT_TRUE(listed.ok()) << listed.message();
    std::vector<std::string> kinds;
    for (const json& one : json::parse(text.text)) {
      std::string id = one["id"];
      if (id.starts_with(kPrefix)) kinds.push_back(id.substr(kPrefix.size()));
    }
    EXPECT_GT(kinds.size(), std::size(kExact));
    return kinds;
  }
  static constexpr const char* kExact[] = {"minmax", "percentile", "entropy", "mse"};
};

TEST_F(Observer, MinMaxGivesTheEnds) {
  tn_range range = range_of("minmax", {3, -1, 2});
  EXPECT_EQ(range.low, -1);
  EXPECT_EQ(range.high, 3);
  EXPECT_EQ(range.seen, 3u);
  EXPECT_EQ(range_of("minmax", {3, -1, 2}, {{"symmetric", true}}).low, -3);
}

TEST_F(Observer, MovingAverageWeighsThePast) {
  Component c = start("moving_average", {{"momentum", 0.5}});
  EXPECT_EQ(observe(c, {0, 4}), "");
  EXPECT_EQ(observe(c, {-2, 8}), "");
  EXPECT_EQ(range(c).low, -1);
  EXPECT_EQ(range(c).high, 6);
}

TEST_F(Observer, PercentileCutsBothTails) {
  Floats values(10001);
  std::iota(values.begin(), values.end(), -5000.0F);

  tn_range range = range_of("percentile", values, {{"percentile", 90}});

  EXPECT_NEAR(range.low, -4500, 2);
  EXPECT_NEAR(range.high, 4500, 2);
  EXPECT_NEAR(range_of("percentile", values, {{"percentile", 90}, {"symmetric", true}}).high, 4500,
              2);
  EXPECT_EQ(range_of("percentile", values, {{"percentile", 100}}).high, 5000);
}

TEST_F(Observer, EntropyDropsFarOutliers) {
  Floats values = normal(100000, 1);
  for (size_t i = 0; i < 10; ++i)
    values[i * 9973] = i % 2 ? 20.0F : -20.0F;

  tn_range range = range_of("entropy", values);

  EXPECT_LT(range.high, 8);
  EXPECT_GT(range.high, 2.5);
  EXPECT_EQ(range_of("minmax", values).high, 20);
}

TEST_F(Observer, EntropyKeepsAUniformTensorWhole) {
  std::vector<double> draws(200000);
  services.random->uniform(5, 0, 0, draws.data(), draws.size());
  Floats values;
  for (double x : draws)
    values.push_back(static_cast<float>(3 * x));

  EXPECT_GT(range_of("entropy", values).high, 2.9);
}

// Compression by the words of the definition, one bin after the other.
double slow_divergence(const std::vector<double>& bins, size_t kept, size_t levels) {
  std::vector<double> p(bins.begin(), bins.begin() + static_cast<int64_t>(kept)), q(kept, 0);
  p.back() += std::accumulate(bins.begin() + static_cast<int64_t>(kept), bins.end(), 0.0);
  size_t width = kept / levels;
  for (size_t level = 0; level < levels; ++level) {
    size_t first = level * width, end = level + 1 == levels ? kept : first + width;
    double mass = 0, filled = 0;
    for (size_t i = first; i < end; ++i) {
      mass += bins[i];
      filled += bins[i] > 0;
    }
    for (size_t i = first; i < end; ++i)
      q[i] = bins[i] > 0 ? mass / filled : 0;
  }
  auto smooth = [&](std::vector<double>& d) {
    double total = std::accumulate(d.begin(), d.end(), 0.0), empty = 0;
    for (double x : d)
      empty += x == 0;
    for (double& x : d)
      x = x == 0 ? 1e-4 / empty : x / total * (empty > 0 ? 1 - 1e-4 : 1);
  };
  smooth(p);
  smooth(q);
  double sum = 0;
  for (size_t i = 0; i < kept; ++i)
    sum += p[i] * std::log(p[i] / q[i]);
  return sum;
}

TEST_F(Observer, EntropyFindsTheSameAsTheSlowSearch) {
  for (uint64_t seed : {1u, 2u, 3u}) {
    Floats values = normal(3000, seed);
    for (float& x : values)
      x = x * std::abs(x);  // heavy tails: many bins are empty
    double most = 0;
    for (float x : values)
      most = std::max(most, std::abs(static_cast<double>(x)));
    double width = std::ldexp(1.0, std::ilogb(most) + 1 - 12);
    std::vector<double> bins(static_cast<size_t>(most / width) + 1, 0);
    for (float x : values) {
      double place = std::abs(static_cast<double>(x)) / width;
      size_t bin = x < 0 ? static_cast<size_t>(std::ceil(place)) - 1 : static_cast<size_t>(place);
      bins[bin] += 1;
    }
    bins[0] = std::min(bins[0], bins[1]);  // a spike at zero is no part of the question
    double total = std::accumulate(bins.begin(), bins.end(), 0.0);
    size_t best = bins.size();
    double least = std::numeric_limits<double>::infinity();
    for (size_t kept = 128; kept <= bins.size(); ++kept) {
      double inside = std::accumulate(bins.begin(), bins.begin() + static_cast<int64_t>(kept), 0.0);
      if (inside < 0.999 * total) continue;
      double one = slow_divergence(bins, kept, 128);
      if (one > least) continue;
      least = one;
      best = kept;
    }

    tn_range got = range_of("entropy", values, {{"symmetric", true}});

    EXPECT_DOUBLE_EQ(got.high, std::min(most, static_cast<double>(best) * width))
        << "seed " << seed;
  }
}

// Of quantizing to uint8 in [0, high], in decibels.
double snr_of(const Floats& values, double high) {
  double signal = 0, noise = 0, scale = high / 255;
  for (float x : values) {
    double back = scale * std::clamp(std::nearbyint(double{x} / scale), 0.0, 255.0);
    signal += double{x} * x;
    noise += (x - back) * (x - back);
  }
  return 10 * std::log10(signal / noise);
}

// What a ReLU leaves: a share of zeros, and the rest as |N(0, 1)| * 4 / 3. A search that counts the
// zeros keeps [0, 2.67] of half a normal distribution and [0, 0.39] where nine of ten are zero.
TEST_F(Observer, EntropySurvivesTheZerosBehindARelu) {
  for (double share : {0.0, 0.5, 0.9, 0.99}) {
    Floats values = normal(200000, 11);
    std::vector<double> draws(values.size());
    services.random->uniform(12, 0, 0, draws.data(), draws.size());
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = draws[i] < share ? 0 : std::abs(values[i]) * 4 / 3;

    double whole = range_of("minmax", values).high, kept = range_of("entropy", values).high;

    EXPECT_GT(kept, 0.6 * whole) << share;
    EXPECT_GE(snr_of(values, kept), snr_of(values, whole) - 0.1) << share;
  }
}

TEST_F(Observer, EntropyKeepsTheEndOfAClip) {
  Floats values = normal(100000, 13);
  for (float& x : values)
    x = std::clamp(3 * x + 1, 0.0F, 6.0F);  // ReLU6: as many at 6 as a tail holds

  EXPECT_GT(range_of("entropy", values).high, 5.9);
}

TEST_F(Observer, MseCutsWhatCostsMoreThanItSaves) {
  Floats values = normal(100000, 9);
  values[0] = 40;
  tn_range range = range_of("mse", values, {{"bits", 4}, {"symmetric", true}});
  EXPECT_LT(range.high, 12);
  EXPECT_EQ(range_of("mse", {0, 255}).high, 255);
}

TEST_F(Observer, OrderAndPartsDoNotMatter) {
  Floats small = normal(5000, 3), large = normal(3000, 4);
  for (float& x : large)
    x *= 300;
  for (const char* kind : kExact) {
    Component whole = start(kind), other = start(kind), part = start(kind);
    EXPECT_EQ(observe(whole, small), "");
    EXPECT_EQ(observe(whole, large), "");
    EXPECT_EQ(observe(other, large), "");
    EXPECT_EQ(observe(part, small), "");
    EXPECT_EQ(merge(other, save(part)), "");

    EXPECT_TRUE(save(whole) == save(other)) << kind;
    EXPECT_EQ(range(whole).high, range(other).high) << kind;
    EXPECT_EQ(range(whole).low, range(other).low) << kind;
  }
}

TEST_F(Observer, MemoryDoesNotGrowWithTheStream) {
  Component c = start("entropy");
  Floats values = normal(10000, 1);
  EXPECT_EQ(observe(c, values), "");
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(observe(c, values), "");
  EXPECT_LT(save(c).size(), 200000u);
  EXPECT_EQ(range(c).seen, 510000u);
}

TEST_F(Observer, CountsWhatIsNotFiniteApart) {
  for (const std::string& kind : all()) {
    tn_range range = range_of(kind, {1, kNan, -1, kInf, -kInf, 0.5});
    EXPECT_EQ(range.seen, 3u) << kind;
    EXPECT_EQ(range.not_finite, 3u) << kind;
    EXPECT_LE(range.high, 1) << kind;
    EXPECT_GE(range.low, -1) << kind;
  }
}

TEST_F(Observer, ZerosAndConstantsHaveARange) {
  for (const std::string& kind : all()) {
    EXPECT_EQ(range_of(kind, {0, 0, 0}).high, 0) << kind;
    EXPECT_EQ(range_of(kind, {2.5, 2.5}).high, 2.5) << kind;
    EXPECT_EQ(range_of(kind, {1e-42F}).high, static_cast<double>(1e-42F)) << kind;
    EXPECT_GT(range_of(kind, {3e38F, -3e38F}).high, 0) << kind;
  }
}

TEST_F(Observer, RefusesNothingSeenAndOtherTypes) {
  for (const std::string& kind : all()) {
    Component c = start(kind);
    tn_range out{};
    EXPECT_THAT(text_of(Status(c.table<tn_observer>()->range(c.self(), &out))),
                HasSubstr("saw no numbers"));
    EXPECT_EQ(observe(c, {kNan}), "");
    EXPECT_THAT(text_of(Status(c.table<tn_observer>()->range(c.self(), &out))),
                HasSubstr("no finite number"));
    std::vector<int64_t> numbers{1, 2}, shape{2};
    DenseView ints(TN_I64, shape, numbers.data());
    EXPECT_THAT(text_of(Status(c.table<tn_observer>()->observe(c.self(), ints.get()))),
                HasSubstr("got int64"));
  }
}

TEST_F(Observer, RefusesBrokenOrForeignState) {
  for (const std::string& kind : all()) {
    Component c = start(kind);
    EXPECT_EQ(observe(c, {1, 2}), "");
    std::string good = save(c);
    EXPECT_NE(merge(c, ""), "") << kind;
    EXPECT_NE(merge(c, R"({"kind": "other"})"), "") << kind;
    EXPECT_NE(merge(c, good.substr(0, good.size() / 2)), "") << kind;
    json broken = json::parse(good);
    broken["low"] = "x";
    EXPECT_NE(merge(c, broken.dump()), "") << kind;
    EXPECT_EQ(merge(c, good), "") << kind;
  }
  Component c = start("entropy");
  EXPECT_NE(merge(c, R"({"kind":"histogram","seen":1,"not_finite":0,"low":1,"high":1,"exponent":-11,
                         "bins":[99999],"counts":[1]})"),
            "");
}

TEST_F(Observer, HalfTypesAreObserved) {
  std::vector<uint16_t> halves{0x3c00, 0xc000, 0x7c00};  // 1, -2, infinity
  std::vector<int64_t> shape{3};
  Component c = start("minmax");
  DenseView tensor(TN_F16, shape, halves.data());
  EXPECT_EQ(text_of(Status(c.table<tn_observer>()->observe(c.self(), tensor.get()))), "");
  EXPECT_EQ(range(c).low, -2);
  EXPECT_EQ(range(c).high, 1);
  EXPECT_EQ(range(c).not_finite, 1u);
}

}  // namespace
}  // namespace tenon::test
