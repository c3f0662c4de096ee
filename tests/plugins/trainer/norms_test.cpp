// SPDX-License-Identifier: Apache-2.0
// Which running statistics a training run follows.
#include "training_session.hpp"

namespace tenon::test {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::FloatNear;
using testing::IsEmpty;

// x -> norm -> norm -> linear, with the same constants; the places of `second` and of notes are
// open.
std::string twice(std::string_view second = "%scale, %shift, %mean, %variance",
                  std::string_view notes = "") {
  return cat(R"(graph {
  input %x: f32[n, 2]
  constant %scale: f32[2] = [1, 1]
  constant %shift: f32[2] = [0, 0]
  constant %mean: f32[2] = [0, 0]
  constant %variance: f32[2] = [1, 1]
  constant %w: f32[2, 2] = [0.1, 0, 0, 0.1]
  %h: f32[n, 2] = BatchNormalization(%x, %scale, %shift, %mean, %variance) {momentum = 0.5} @first
  %k: f32[n, 2] = BatchNormalization(%h, )",
             second, R"() {momentum = 0.5} @second
  %y: f32[n, 2] = MatMul(%k, %w) @product
  output y = %y
)",
             notes, "}\n");
}

class Norms : public TrainingTest {
 protected:
  // One step on the batch (1, 0), (3, 8), whose mean is 2, 4 and whose variance is 1, 16.
  OwnedGraph trained(const std::string& text, json options = json::object()) {
    auto keep = [](void* all, uint32_t level, tn_str, tn_str message) {
      if (level == TN_LOG_WARNING)
        static_cast<std::vector<std::string>*>(all)->emplace_back(view(message));
    };
    options.update({{"batch", 2}, {"rate", 0.1}});
    Component two = data(write("two.csv", "a,b,label\n1,0,0\n3,8,1\n"));
    tenon_on_log(session_, keep, &warnings_);
    auto made = train(parse(text), two, options);
    tenon_on_log(session_, nullptr, nullptr);
    EXPECT_TRUE(made.ok()) << text_of(made.status());
    return made.ok() ? std::move(*made) : OwnedGraph();
  }
  std::vector<std::string> warnings_;
};

TEST_F(Norms, OneThatIsAppliedTwiceFollowsBothBatches) {
  OwnedGraph model = trained(twice());
  // What the first one makes has the mean 0 and the variance 1.
  EXPECT_THAT(weight(model, "mean"), ElementsAre(FloatNear(0.5f, 1e-5), FloatNear(1, 1e-5)));
  EXPECT_THAT(weight(model, "variance"), ElementsAre(FloatNear(1, 1e-4), FloatNear(4.75f, 1e-4)));
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_THAT(weight(trained(twice(), {{"batch_norm", "frozen"}}), "mean"), Each(0));
}

TEST_F(Norms, StatisticsThatOtherNodesReadStayAndAreNamed) {
  std::string other_scale = twice("%variance, %shift, %mean, %variance");
  EXPECT_THAT(weight(trained(other_scale), "mean"), Each(0));
  EXPECT_THAT(warnings_, Contains("BatchNormalization keeps its running statistics, which other "
                                  "nodes read too or compute: first, second"));
}

TEST_F(Norms, ThoseThatTheirNoteFreezesStay) {
  std::string_view frozen =
      "  note @first onnx.metadata.tenon.batch_norm = \"frozen\"\n"
      "  note @second onnx.metadata.tenon.batch_norm = \"frozen\"\n";
  OwnedGraph model = trained(twice("%scale, %shift, %mean, %variance", frozen));
  EXPECT_THAT(weight(model, "mean"), Each(0));
  EXPECT_THAT(weight(model, "variance"), Each(1));
  EXPECT_THAT(warnings_, IsEmpty());
}

}  // namespace
}  // namespace tenon::test
