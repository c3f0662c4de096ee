// SPDX-License-Identifier: Apache-2.0
// The plugin through the ABI, on machines with and without a GPU: it loads, says what there is, and
// claims nodes.

#include "tenon/role/backend.h"

#include "plugins/plugin_session.hpp"

namespace tenon {
namespace {

using tenon::test::json;

class CudaBackend : public tenon::test::PluginTest {
 protected:
  json devices() {
    Result<Component> cuda = make("tenon.backend/1", "cuda");
    EXPECT_TRUE(cuda.ok()) << test::text_of(cuda.status());
    StringSink sink;
    Status asked(cuda->table<tn_backend>()->devices(cuda->self(), sink.get()));
    EXPECT_TRUE(asked.ok()) << asked.message();
    return json::parse(sink.text);
  }
  static bool has_device(const json& devices) {
    return std::any_of(devices.begin(), devices.end(),
                       [](const json& one) { return !one.contains("why"); });
  }
  struct Answers {
    std::vector<std::string> taken;    // names of nodes
    std::vector<std::string> refused;  // reasons
    const tn_graph* graph;
  };
  static Answers claimed(const Component& cuda, const tn_graph* graph) {
    Answers answers{{}, {}, graph};
    tn_claims claims{&answers,
                     [](void* self, const tn_node_id* group, uint64_t n) {
                       auto& to = *static_cast<Answers*>(self);
                       for (uint64_t i = 0; i < n; ++i)
                         to.taken.emplace_back((Node{to.graph, group[i]}).name());
                     },
                     [](void* self, tn_node_id, tn_str why) {
                       static_cast<Answers*>(self)->refused.emplace_back(view(why));
                     }};
    Status asked(cuda.table<tn_backend>()->claim(cuda.self(), graph, 0, &claims));
    EXPECT_TRUE(asked.ok()) << asked.message();
    return answers;
  }
  OwnedGraph parse(const std::string& text) {
    EXPECT_EQ(tenon_plugin_load(session_, str("ops")), nullptr);
    tn_graph* raw = nullptr;
    Status parsed(services.graph->parse(ctx_, str(text), &raw));
    EXPECT_TRUE(parsed.ok()) << parsed.message();
    return OwnedGraph::take(raw);
  }
};

constexpr const char* kGraph = R"(graph {
  input %x: f32[2, 3]
  %h: f32[2, 3] = Softmax(%x) @softmax
  %n: i64[2, ?] = NonZero(%h) @nonzero
  output h = %h
  output n = %n
}
)";

TEST_F(CudaBackend, SaysWhatThereIsOrWhyThereIsNothing) {
  json found = devices();

  ASSERT_FALSE(found.empty());
  for (const json& device : found) {
    if (device.contains("why")) {
      EXPECT_NE(device["why"].get<std::string>(), "");
    } else {
      EXPECT_EQ(device["type"], 2);
      EXPECT_GE(device["architecture"], 80);
      EXPECT_GT(device["memory_bytes"], 0);
    }
  }
}

TEST_F(CudaBackend, IsInTheDoctorsReport) {
  StringSink sink;
  ASSERT_EQ(tenon_plugin_doctor(session_, sink.get()), nullptr);

  json report = json::parse(sink.text);

  json mine;
  for (const json& backend : report["backends"])
    if (backend["id"] == "cuda") mine = backend["devices"];
  EXPECT_EQ(mine, devices());
}

TEST_F(CudaBackend, RefusesPlansWhereThereIsNoDeviceAndSaysWhatToDo) {
  json found = devices();
  if (has_device(found)) GTEST_SKIP() << "there is a device";
  OwnedGraph graph = parse(kGraph);
  tn_plan* plan = nullptr;

  std::string why = test::text_of(
      Status(tenon_compile(session_, graph.get(), str(R"({"backend": "cuda"})"), &plan)));

  EXPECT_EQ(plan, nullptr);
  EXPECT_NE(why.find(found[0]["why"].get<std::string>()), std::string::npos) << why;
  EXPECT_NE(why.find("plugin doctor"), std::string::npos) << why;
}

TEST_F(CudaBackend, HasNoMemoryWhereThereIsNoDevice) {
  if (has_device(devices())) GTEST_SKIP() << "there is a device";
  Result<Component> cuda = make("tenon.backend/1", "cuda");
  ASSERT_TRUE(cuda.ok());
  auto* table = cuda->table<tn_backend>();
  void* made = &made;

  std::string no_memory = test::text_of(Status(table->alloc(cuda->self(), 0, 64, &made)));
  EXPECT_EQ(made, nullptr);
  std::string no_stream = test::text_of(Status(table->stream_new(cuda->self(), 0, &made)));
  table->free(cuda->self(), 0, nullptr, nullptr);

  EXPECT_NE(no_memory.find("install"), std::string::npos) << no_memory;
  EXPECT_NE(no_stream.find("install"), std::string::npos) << no_stream;
}

TEST_F(CudaBackend, TakesWhatItCanAndSaysWhyNotTheRest) {
  OwnedGraph graph = parse(kGraph);
  Result<Component> cuda = make("tenon.backend/1", "cuda");
  ASSERT_TRUE(cuda.ok());

  Answers answers = claimed(*cuda, graph.get());

  EXPECT_EQ(answers.taken, std::vector<std::string>{"softmax"});
  EXPECT_EQ(answers.refused,
            std::vector<std::string>{"the type or shape of value n depends on data"});
}

// Asked before the device is: so it is said on every machine.
TEST_F(CudaBackend, LeavesConvolutionsToOthersWhereCudnnIsMissing) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[1, 2, 4, 4]
  input %w: f32[2, 2, 1, 1]
  %c: f32[1, 2, 4, 4] = Conv(%x, %w) @conv
  %t: f32[1, 2, 4, 4] = ConvTranspose(%c, %w) @transposed
  %r: f32[1, 2, 4, 4] = Relu(%t) @relu
  output r = %r
}
)");
  const char* nowhere = "/nowhere/libcudnn.so.9";
  for (auto [library, said] :
       {std::pair(nowhere, "/nowhere/libcudnn.so.9 was not found; install cuDNN 9"),
        {"", "option cudnn is empty"}}) {
    Result<Component> cuda = make("tenon.backend/1", "cuda", {{"cudnn", library}});
    ASSERT_TRUE(cuda.ok()) << test::text_of(cuda.status());

    Answers answers = claimed(*cuda, graph.get());

    EXPECT_EQ(answers.taken, std::vector<std::string>{"relu"});
    ASSERT_EQ(answers.refused.size(), 2u);
    for (const std::string& why : answers.refused) {
      EXPECT_TRUE(why.starts_with("convolution needs cuDNN 9")) << why;
      bool is_built = why.find("this plugin was built") == std::string::npos;
      EXPECT_TRUE(!is_built || why.find(said) != std::string::npos) << why;
    }
  }
}

TEST_F(CudaBackend, LeavesProductsToOthersWhereCublasltIsMissing) {
  OwnedGraph graph = parse(R"(graph {
  input %x: f32[2, 3]
  input %w: f32[3, 4]
  input %b: f32[4]
  %m: f32[2, 4] = MatMul(%x, %w) @matmul
  %g: f32[2, 4] = Gemm(%x, %w, %b) @gemm
  %s: f32[2, 4] = Add(%m, %g) @sum
  output s = %s
}
)");
  const char* nowhere = "/nowhere/libcublasLt.so.13";
  for (auto [library, said] :
       {std::pair(nowhere, "/nowhere/libcublasLt.so.13 was not found; install the CUDA toolkit 13"),
        {"", "option cublaslt is empty"}}) {
    Result<Component> cuda = make("tenon.backend/1", "cuda", {{"cublaslt", library}});
    ASSERT_TRUE(cuda.ok()) << test::text_of(cuda.status());

    Answers answers = claimed(*cuda, graph.get());

    EXPECT_EQ(answers.taken, std::vector<std::string>{"sum"});
    ASSERT_EQ(answers.refused.size(), 2u);
    for (const std::string& why : answers.refused)
      EXPECT_TRUE(why.starts_with(cat("a product needs cuBLASLt: ", said))) << why;
  }
}

TEST_F(CudaBackend, UsesTheDeviceThatItIsGiven) {
  Result<Component> cuda = make("tenon.backend/1", "cuda", {{"device", 99}});
  ASSERT_TRUE(cuda.ok()) << test::text_of(cuda.status());
  StringSink sink;
  ASSERT_EQ(test::text_of(Status(cuda->table<tn_backend>()->devices(cuda->self(), sink.get()))),
            "");

  json found = json::parse(sink.text);

  ASSERT_EQ(found.size(), 1u);
  ASSERT_TRUE(found[0].contains("why"));
  std::string wanted = has_device(devices()) ? "expected one of 0" : "install";
  EXPECT_NE(found[0]["why"].get<std::string>().find(wanted), std::string::npos) << found;
}

TEST_F(CudaBackend, NamesAWrongOption) {
  std::string why = refusal("tenon.backend/1", "cuda", {{"precision", "tf33"}});

  EXPECT_NE(why.find("precision"), std::string::npos) << why;
  EXPECT_NE(why.find("tf32"), std::string::npos) << why;
}

}  // namespace
}  // namespace tenon
