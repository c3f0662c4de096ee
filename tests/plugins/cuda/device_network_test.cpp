// SPDX-License-Identifier: Apache-2.0
// Convolutions, and whole networks and their training steps, on a GPU; skipped where there is none.

#include "plugins/cuda/on_device.hpp"
#include "plugins/cuda/training_step.hpp"

namespace tenon {
namespace {

using tenon::test::json;
using tenon::test::Network;
using tenon::test::Numbers;
using tenon::test::OnDevice;

class Networks : public OnDevice {
 protected:
  // Random weights, the same in both plans; scales are one, what an optimizer remembers is zero.
  void set_states(const tn_graph* graph, const std::vector<tn_plan*>& plans) {
    std::mt19937 random(3);
    for (Value state : Graph{graph}.list(TN_LIST_STATES, 0)) {
      Type type = state.type();
      std::string name(state.name());
      if (type.dtype != TN_F32 || name.find('/') != std::string::npos) continue;
      Result<Tensor> made = Tensor::zeros(ctx_, TN_F32, type.dims);
      ASSERT_TRUE(made.ok());
      bool is_scale = name.starts_with("scale") || name.starts_with("variance");
      double fan = type.rank() < 2 ? 1 : static_cast<double>(type.elements() / type.dims[0]);
      for (int64_t i = 0; i < type.elements(); ++i) {
        float number = static_cast<float>(random() % 257) / 128 - 1;
        made->data<float>()[i] = is_scale ? 1 : number / static_cast<float>(std::sqrt(fan));
      }
      DLTensor view = made->dl();
      for (tn_plan* plan : plans)
        EXPECT_EQ(test::text_of(Status(services.eval->state_set(plan, str(name), &view))), "");
    }
  }

  // Without the loss times its scale, which says what the loss says, but not from one on.
  static std::vector<Numbers> unscaled(const tn_graph* graph, std::vector<Numbers> outputs) {
    for (size_t i = outputs.size(); i-- > 0;)
      if (Graph{graph}.output_name(i) == "scaled_loss")
        outputs.erase(outputs.begin() + static_cast<int64_t>(i));
    return outputs;
  }

  // Runs of a step on the device and on the reference, from the same states.
  void step_agrees(const Network& network,
                   const std::string& optimizer,
                   const std::string& precision,
                   double tolerance) {
    SCOPED_TRACE(precision);
    auto graph = test::training_step(ctx_, network, optimizer, precision);
    ASSERT_TRUE(graph.ok()) << test::text_of(graph.status());
    tn_plan* device = compile(graph->get(), {{"backend", "cuda"}});
    tn_plan* reference = compile(graph->get(), {{"backend", "reference"}});
    ASSERT_TRUE(device && reference);
    EXPECT_TRUE(describe(device)["fallback_nodes"].empty()) << describe(device);
    set_states(graph->get(), {device, reference});
    for (int run = 0; run < 4; ++run) {
      std::vector<Tensor> inputs = inputs_of(graph->get(), 7 + static_cast<uint32_t>(run));
      std::string failed;
      std::vector<Numbers> got = run_plan(device, inputs, &failed);
      ASSERT_EQ(failed, "");
      std::vector<Numbers> wanted = run_plan(reference, inputs, &failed);
      compare(unscaled(graph->get(), got), unscaled(graph->get(), wanted), tolerance);
      ASSERT_EQ(failed, "");
    }
  }
  std::vector<Numbers> run_plan(tn_plan* plan,
                                const std::vector<Tensor>& inputs,
                                std::string* failed) {
    return run(plan, inputs, failed);
  }

  static test::ResNet small_resnet(bool trains) {
    test::ResNet made;
    made.batch = 4;
    made.size = 32;
    made.width = 8;
    made.classes = 10;
    made.blocks = {1, 2};
    made.trains = trains;
    return made;
  }
  static test::MiniLm small_minilm() {
    test::MiniLm made;
    made.batch = 2;
    made.length = 16;
    made.hidden = 64;
    made.heads = 4;
    made.inner = 128;
    made.words = 8;
    made.layers = 2;
    made.classes = 5;
    return made;
  }
};

TEST_F(Networks, Convolve) {
  for (const char* how :
       {"group = 1", "group = 2", "strides = ints [2, 2], pads = ints [1, 1, 1, 1]",
        "dilations = ints [2, 2]"}) {
    SCOPED_TRACE(how);
    std::string channels = std::string(how) == "group = 2" ? "4" : "8";
    bool strided = std::string(how).starts_with("strides");
    std::string side = strided ? "5" : std::string(how).starts_with("dil") ? "5" : "7";
    for (const char* type : {"f32", "f16", "bf16"}) {
      std::string text = cat("graph {\n  input %x: T[2, 8, 9, 9]\n  input %w: T[16, ", channels,
                             ", 3, 3]\n  input %b: T[16]\n  %c: T[2, 16, ", side, ", ", side,
                             "] = Conv(%x, %w, %b) {", how, "} @conv\n  %y: T[2, 16, ", side, ", ",
                             side, "] = Relu(%c) @relu\n  output y = %y\n}\n");
      for (size_t at; (at = text.find(": T")) != std::string::npos;)
        text.replace(at + 2, 1, type);
      agree(text, std::string(type) == "f32" ? 1e-5 : std::string(type) == "f16" ? 1e-2 : 3e-2);
    }
  }
}

TEST_F(Networks, ConvolveAndAddAResidual) {
  for (const char* type : {"f32", "f16", "bf16"}) {
    SCOPED_TRACE(type);
    std::string text = R"(graph {
  input %x: T[2, 8, 9, 9]
  input %w: T[16, 8, 1, 1]
  input %v: T[16, 8, 3, 3]
  input %b: T[16]
  %l: T[2, 16, 9, 9] = Conv(%x, %w) @left
  %r: T[2, 16, 9, 9] = Conv(%x, %v, %b) {pads = ints [1, 1, 1, 1]} @right
  %s: T[2, 16, 9, 9] = Add(%l, %r) @sum
  %y: T[2, 16, 9, 9] = Relu(%s) @relu
  output y = %y
}
)";
    for (size_t at; (at = text.find(": T")) != std::string::npos;)
      text.replace(at + 2, 1, type);
    agree(text, std::string(type) == "f32" ? 1e-5 : std::string(type) == "f16" ? 1e-2 : 3e-2);
  }
}

TEST_F(Networks, TransposeConvolutions) {
  agree(R"(graph {
  input %x: f32[2, 8, 5, 5]
  input %w: f32[8, 4, 3, 3]
  input %b: f32[8]
  %t: f32[2, 8, 10, 10] = ConvTranspose(%x, %w, %b) {group = 2, strides = ints [2, 2], pads = ints [1, 1, 1, 1], output_padding = ints [1, 1]} @transpose
  %y: f32[2, 8, 10, 10] = Relu(%t) @relu
  output y = %y
}
)",
        1e-5);
}

TEST_F(Networks, ConvolveAlongOneAxis) {
  agree(R"(graph {
  input %x: f32[2, 8, 20]
  input %w: f32[4, 8, 3]
  %y: f32[2, 4, 18] = Conv(%x, %w) @conv
  output y = %y
}
)",
        1e-5);
}

TEST_F(Networks, InferAsTheReferenceDoes) {
  agree(small_resnet(false).network().text, 1e-4);
  agree(small_minilm().network().text, 1e-4);
}

// The reference's losses in bfloat16 lie within 7e-3 of those in float32, in each of these runs.
// What rounds elsewhere lies as far from them, so both within twice that; three more bits make an
// eighth.
TEST_F(Networks, TrainAsTheReferenceDoes) {
  for (auto [precision, tolerance] : {std::pair("fp32", 1e-3), {"fp16", 2e-3}, {"bf16", 1.4e-2}}) {
    step_agrees(test::mlp("f32", 16, 32), "trainer.adamw", precision, tolerance);
    step_agrees(test::cnn("f32", 4), "trainer.sgd", precision, tolerance);
    step_agrees(small_resnet(true).network(), "trainer.sgd", precision, tolerance);
    step_agrees(small_minilm().network(), "trainer.adamw", precision, tolerance);
  }
}

}  // namespace
}  // namespace tenon
