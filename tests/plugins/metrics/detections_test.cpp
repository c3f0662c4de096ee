// SPDX-License-Identifier: Apache-2.0
// Mean average precision of boxes, against tests/golden/detections.json and by hand.
#include <gmock/gmock.h>

#include "plugins/plugin_session.hpp"

namespace tenon::test {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;

class Detections : public PluginTest {
 protected:
  void start(const json& options = json::object()) {
    Result<Component> made = make("tenon.metric/1", "metrics.mean_average_precision", options);
    ASSERT_TRUE(made.ok()) << text_of(made.status());
    metric_ = std::move(*made);
  }
  std::string update(int64_t n,
                     int64_t k,
                     int64_t m,
                     const Floats& boxes,
                     const Floats& scores,
                     const Floats& classes,
                     const Floats& labels) {
    DenseView a(TN_F32, std::vector<int64_t>{n, k, 4}, boxes.data());
    DenseView b(TN_F32, std::vector<int64_t>{n, k}, scores.data());
    DenseView c(TN_F32, std::vector<int64_t>{n, k}, classes.data());
    DenseView d(TN_F32, std::vector<int64_t>{n, m, 5}, labels.data());
    const DLTensor* outs[] = {a.get(), b.get(), c.get()};
    const DLTensor* wanted[] = {d.get()};
    return text_of(Status(metric_.table<tn_metric>()->update(metric_.self(), outs, 3, wanted, 1)));
  }
  double value() {
    double out = -1;
    int32_t better = 0;
    EXPECT_EQ(text_of(Status(metric_.table<tn_metric>()->value(metric_.self(), &out, &better))),
              "");
    EXPECT_EQ(better, 1);
    return out;
  }

  Component metric_;
};

TEST_F(Detections, FollowCocosRules) {
  const json all = golden("detections.json");
  const int64_t n = all["images"], k = all["found"], m = all["boxes"];
  for (const json& one : all["cases"]) {
    SCOPED_TRACE(one["options"].dump());
    start(one["options"]);
    const Floats boxes = one["boxes"], scores = one["scores"], classes = one["classes"];
    const Floats labels = one["labels"];
    // In two batches: what counts is all of them together.
    for (int64_t begin : {int64_t{0}, n / 3}) {
      const int64_t end = begin == 0 ? n / 3 : n;
      auto cut = [&](const Floats& of, int64_t each) {
        return Floats(of.begin() + begin * each, of.begin() + end * each);
      };
      ASSERT_EQ(update(end - begin, k, m, cut(boxes, 4 * k), cut(scores, k), cut(classes, k),
                       cut(labels, 5 * m)),
                "");
    }
    EXPECT_NEAR(value(), one["value"].get<double>(), 1e-6);
  }
}

TEST_F(Detections, ABoxIsFoundOnce) {
  const Floats box{0, 0, 2, 2};
  start();
  ASSERT_EQ(update(1, 1, 1, box, {0.5f}, {1}, {1, 0, 0, 2, 2}), "");
  EXPECT_EQ(value(), 1);
  start();  // the second is wrong, behind the right one: precision at full recall stays 1
  ASSERT_EQ(update(1, 2, 1, {0, 0, 2, 2, 0, 0, 2, 2}, {0.5f, 0.4f}, {1, 1}, {1, 0, 0, 2, 2}), "");
  EXPECT_EQ(value(), 1);
  start();  // another class, and one of two boxes found: 51 of 101 recalls
  ASSERT_EQ(update(1, 2, 2, {0, 0, 2, 2, 0, 0, 2, 2}, {0.5f, 0.4f}, {1, 0},
                   {1, 0, 0, 2, 2, 1, 8, 8, 9, 9}),
            "");
  EXPECT_NEAR(value(), 51.0 / 101, 1e-12);
}

TEST_F(Detections, WrongShapesAreNamed) {
  start();
  EXPECT_THAT(update(1, 1, 1, {0, 0, 2, 2}, {NAN}, {1}, {1, 0, 0, 2, 2}),
              HasSubstr("image 0: a score is not a number"));
  EXPECT_THAT(
      refusal("tenon.metric/1", "metrics.mean_average_precision", {{"from", 0.9}, {"to", 0.5}}),
      HasSubstr("option from: expected at most"));
}

}  // namespace
}  // namespace tenon::test
