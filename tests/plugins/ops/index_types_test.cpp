// SPDX-License-Identifier: Apache-2.0
// Indices of other types than int32 and int64: files hold them, and nothing refuses them before.

#include "plugins/plugin_session.hpp"

namespace tenon::test {
namespace {

class IndexTypes : public PluginTest, public testing::WithParamInterface<const char*> {
 protected:
  // What `op` gives for [10, 20, 30] and these indices on the backend "reference".
  std::vector<float> run(std::string_view op, std::string_view indices) {
    EXPECT_EQ(tenon_plugin_load(session_, str("ops")), nullptr);
    std::string text =
        cat("graph {\n  constant %x: f32[3] = [10, 20, 30]\n  constant %i: ", GetParam(), indices,
            "\n  %y: f32[2] = ", op, " @taken\n  output y = %y\n}\n");
    tn_graph* raw = nullptr;
    EXPECT_EQ(text_of(Status(services.graph->parse(ctx_, str(text), &raw))), "");
    if (!raw) return {};
    OwnedGraph owned = OwnedGraph::take(raw);
    tn_plan* plan = nullptr;
    std::string options = R"({"backend": "reference"})";
    EXPECT_EQ(text_of(Status(tenon_compile(session_, raw, str(options), &plan))), "");
    if (!plan) return {};
    Collected results(ctx_);
    EXPECT_EQ(text_of(Status(tenon_run(plan, nullptr, 0, &results.raw, nullptr))), "");
    services.eval->release(plan);
    return results.tensors.empty() ? std::vector<float>() : results.numbers<float>(0);
  }
};

TEST_P(IndexTypes, AreReadAsWideAsTheyAre) {
  EXPECT_EQ(run("Gather(%x, %i)", "[2] = [2, 1]"), (std::vector<float>{30, 20}));
  EXPECT_EQ(run("Slice(%x, %i, %i2)", "[1] = [1]\n  constant %i2: i64[1] = [3]"),
            (std::vector<float>{20, 30}));
}

INSTANTIATE_TEST_SUITE_P(Types,
                         IndexTypes,
                         testing::Values("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace tenon::test
