// SPDX-License-Identifier: Apache-2.0
#include "plugins/third_party/third_party_test.hpp"

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ThirdPartysVersion : public ThirdPartyTest {
 protected:
  // y = Grow(x) in a graph that imports this version; 0: that says nothing of it.
  void build_grow(int64_t version) {
    build([&](EditView edit) {
      if (version) {
        ASSERT_EQ(text_of(edit.set_note(0, "opset.acme", any_int(version))), "");
      }
      Value x = input(edit, "x", {2});
      ASSERT_EQ(text_of(edit.output("y", acme(edit, "Grow", {x}, "grow"))), "");
    });
  }
  uint64_t version_of(const OwnedGraph& graph) {
    const tn_op* row = graph.view().node(0).row();
    return row ? row->since_version : 0;
  }
};

TEST_F(ThirdPartysVersion, IsTheNewestThatTheGraphImports) {
  build_grow(3);

  EXPECT_EQ(version_of(model_), 2u);
  EXPECT_THAT(run(model_, {2}, {1, 5}), ElementsAre(2, 10));
}

TEST_F(ThirdPartysVersion, IsTheNewestOfAllWithoutAnImport) {
  build_grow(0);

  EXPECT_EQ(version_of(model_), 4u);
  EXPECT_THAT(run(model_, {2}, {1, 5}), ElementsAre(3, 15));
}

TEST_F(ThirdPartysVersion, IsNoneWhereAllAreNewer) {
  build_grow(1);

  EXPECT_EQ(model_.view().node(0).row(), nullptr);
}

TEST_F(ThirdPartysVersion, FollowsTheNote) {
  build_grow(3);
  build([&](EditView edit) { ASSERT_EQ(text_of(edit.set_note(0, "opset.acme", any_int(4))), ""); });

  EXPECT_THAT(run(model_, {2}, {1, 5}), ElementsAre(3, 15));
}

TEST_F(ThirdPartysVersion, GoesAlongWithAnExtract) {
  build_grow(3);
  tn_node_id id = model_.view().node(0).id;
  tn_graph* raw = nullptr;

  ASSERT_EQ(text_of(Status(services.graph->extract(model_.get(), &id, 1, &raw))), "");

  EXPECT_EQ(version_of(OwnedGraph::take(raw)), 2u);
}

TEST_F(ThirdPartysVersion, DoesNotMixWithAnother) {
  build_grow(3);
  OwnedGraph old = std::move(model_);
  tn_graph* raw = nullptr;
  ASSERT_EQ(text_of(Status(services.graph->create(ctx_, &raw))), "");
  model_ = OwnedGraph::take(raw);
  build([&](EditView edit) {
    ASSERT_EQ(text_of(edit.set_note(0, "opset.acme", any_int(4))), "");
    Value x = input(edit, "x", {2});
    tn_value_id pair[] = {old.view().inputs()[0].id, x.id};
    std::string refused =
        text_of(Status(services.edit->splice(edit.raw, old.get(), str(""), pair, 1)));
    EXPECT_THAT(refused, HasSubstr("opset.acme"));
    ASSERT_EQ(text_of(edit.output("y", x)), "");
  });
}

TEST_F(ThirdPartysVersion, SurvivesAFile) {
  for (int64_t version : {int64_t{0}, int64_t{3}}) {
    TearDown();
    ThirdPartyTest::SetUp();
    build_grow(version);
    std::string path = (folder_ / "grow.onnx").string();
    ASSERT_EQ(text_of(Status(tenon_save(session_, model_.get(), str(path), str(""), nullptr))), "");
    tn_graph* raw = nullptr;
    ASSERT_EQ(text_of(Status(tenon_load(session_, str(path), str(""), nullptr, &raw))), "");

    OwnedGraph read = OwnedGraph::take(raw);

    EXPECT_EQ(version_of(read), version ? 2u : 4u);
  }
}

}  // namespace
}  // namespace tenon::test
