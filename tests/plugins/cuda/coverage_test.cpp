// SPDX-License-Identifier: Apache-2.0
// The networks that are to run wholly on the device: which of their nodes the backend refuses, and
// that their plans give what the reference gives.

#include <set>

#include "codegen/compiler.hpp"
#include "plan_fixture.hpp"
#include "plugins/cuda/training_step.hpp"

namespace tenon::cuda {
namespace {

using tenon::test::MiniLm;
using tenon::test::Network;
using tenon::test::ResNet;

// A network by name, trained in a precision or run in a type.
struct Subject {
  std::string name;
  Network network;
  std::string precision, optimizer;  // empty: inference
};

Network minilm(const std::string& dtype, bool has_attention, bool trains) {
  MiniLm made;
  made.dtype = dtype;
  made.has_attention = has_attention;
  made.has_head = trains;
  made.words = 1000;  // the number of words makes no difference here
  return made.network();
}

Network resnet(const std::string& dtype, bool trains) {
  ResNet made;
  made.dtype = dtype;
  made.trains = trains;
  return made.network();
}

std::vector<Subject> subjects() {
  std::vector<Subject> out;
  for (const char* dtype : {"f32", "f16", "bf16"}) {
    out.push_back({cat("resnet50_", dtype), resnet(dtype, false), "", ""});
    out.push_back({cat("minilm_", dtype), minilm(dtype, false, false), "", ""});
    out.push_back({cat("minilm_attention_", dtype), minilm(dtype, true, false), "", ""});
  }
  for (const char* precision : {"fp32", "fp16", "bf16"}) {
    auto step = [&](const char* name, const Network& network, const char* optimizer) {
      out.push_back({cat(name, "_step_", precision), network, precision, optimizer});
    };
    step("mlp", tenon::test::mlp("f32", 64, 128), "trainer.adamw");
    step("cnn", tenon::test::cnn("f32", 64), "trainer.sgd");
    step("resnet50", resnet("f32", true), "trainer.sgd");
    step("minilm", minilm("f32", false, true), "trainer.adamw");
  }
  return out;
}

class Coverage : public test::Plans {
 protected:
  // As the backend gets it: after its passes, with refused nodes taken apart.
  OwnedGraph prepared(const Subject& subject) {
    OwnedGraph graph;
    if (subject.optimizer.empty()) {
      graph = parse(subject.network.text);
    } else {
      auto made =
          tenon::test::training_step(ctx_, subject.network, subject.optimizer, subject.precision);
      if (made.ok()) {
        graph = std::move(*made);
      } else {
        ADD_FAILURE() << tenon::test::text_of(made.status());
      }
    }
    if (!graph.get()) return graph;
    EXPECT_EQ(tenon::test::text_of(tenon::test::run_pass(ctx_, graph.get(), "fusion.default")), "");
    for (int round = 0; round < 3 && take_apart(graph.get()); ++round) {
    }
    return graph;
  }

  // Whether a refused node came apart.
  bool take_apart(tn_graph* graph) {
    Imported imported = *import_graph(graph);
    Result<Edit> edit = Edit::begin(graph);
    EXPECT_TRUE(edit.ok());
    bool has_changed = false;
    for (size_t i = 0; i < imported.nodes.size(); ++i) {
      if (why_not(imported, static_cast<int>(i)).empty()) continue;
      tn_node_id id = imported.nodes[i].source.id;
      const tn_op* row = services.op->of(graph, id);
      if (!row || !row->decompose) continue;
      has_changed |= Status(services.op->decompose(edit->raw, id)).ok();
    }
    EXPECT_EQ(tenon::test::text_of(edit->commit()), "");
    return has_changed;
  }

  // "operator: reason", with how often, for people.
  static std::map<std::string, int> refusals(const tn_graph* graph) {
    Imported imported = *import_graph(graph);
    std::map<std::string, int> out;
    for (size_t i = 0; i < imported.nodes.size(); ++i) {
      std::string why = why_not(imported, static_cast<int>(i));
      if (!why.empty()) ++out[cat(imported.nodes[i].op, ": ", why)];
    }
    return out;
  }

  // Runs both for some runs, states kept.
  void agree(const Subject& subject, int runs, double tolerance) {
    SCOPED_TRACE(subject.name);
    OwnedGraph graph = prepared(subject);
    ASSERT_TRUE(graph.get());
    Result<Plan> plan = lower(*import_graph(graph.get()));
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    Numbers numbers;
    numbers.inputs = [&](int run) {
      return inputs_of(graph.get(), 5 + static_cast<uint32_t>(run));
    };
    numbers.states = [&](tn_plan* reference) { return first_states(graph.get(), reference); };
    check_with(numbers, *plan, graph.get(), runs, tolerance);
  }

  // Random weights of a size that keeps sums small, set in the reference too.
  std::vector<test::Bytes> first_states(const tn_graph* graph, tn_plan* reference) {
    std::vector<test::Bytes> out;
    uint32_t seed = 1;
    for (Value state : Graph{graph}.list(TN_LIST_STATES, 0)) {
      Type type = state.type();
      std::vector<float> numbers(static_cast<size_t>(type.elements()), 0);
      std::string name(state.name());
      bool is_slot = name.find('/') != std::string::npos;
      double fan = type.rank() < 2 ? 1 : static_cast<double>(type.elements() / type.dims[0]);
      std::mt19937 random(seed++);
      for (float& x : numbers)
        x = static_cast<float>(static_cast<double>(random() % 257) / 128 - 1) /
            static_cast<float>(std::sqrt(fan));
      bool is_scale = name.starts_with("scale") || name.starts_with("variance");
      if (is_scale || is_slot) std::fill(numbers.begin(), numbers.end(), is_slot ? 0.0f : 1.0f);
      out.push_back(test::packed(type.dtype, numbers));
      DenseView view(type.dtype, type.dims, out.back().data());
      EXPECT_EQ(
          tenon::test::text_of(Status(services.eval->state_set(reference, str(name), view.get()))),
          "");
    }
    return out;
  }

  // Floats in [-1, 1]; what is whole counts a class or a word.
  static std::vector<test::Bytes> inputs_of(const tn_graph* graph, uint32_t seed) {
    std::vector<test::Bytes> out;
    std::vector<Value> states = Graph{graph}.list(TN_LIST_STATES, 0);
    std::mt19937 random(seed);
    for (Value input : Graph{graph}.inputs()) {
      if (std::find(states.begin(), states.end(), input) != states.end()) continue;
      std::vector<float> numbers(static_cast<size_t>(input.type().elements()));
      for (float& x : numbers) {
        unsigned number = random() % 129;
        x = is_float(input.dtype()) ? static_cast<float>(number) / 64 - 1
                                    : static_cast<float>(number % 4);
      }
      if (input.name() == "learning_rate") numbers[0] = 0.01f;
      out.push_back(test::packed(input.dtype(), numbers));
    }
    return out;
  }
};

TEST_F(Coverage, LeavesNoNodeToAnother) {
  std::string source;
  std::set<std::string> known;
  for (const Subject& subject : subjects()) {
    SCOPED_TRACE(subject.name);
    OwnedGraph graph = prepared(subject);
    ASSERT_TRUE(graph.get());
    std::map<std::string, int> refused = refusals(graph.get());
    for (const auto& [what, count] : refused)
      ADD_FAILURE() << subject.name << ": " << count << " x " << what;
    if (!refused.empty()) continue;
    Result<Plan> plan = lower(*import_graph(graph.get()));
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_EQ(test::broken_properties(*plan), std::vector<std::string>{});
    std::map<std::string, int> kinds;
    for (const Step& step : plan->steps) {
      const Launch* launch = std::get_if<Launch>(&step.work);
      bool is_generated = launch && !launch->source.empty();
      ++kinds[is_generated ? "pointwise" : step.kernel];
      if (is_generated && known.insert(launch->symbol).second) source += launch->source;
    }
    std::string text;
    for (const auto& [kind, count] : kinds)
      text += cat(" ", kind, " ", count);
    std::printf("%-24s %4zu steps, arena %.1f MiB:%s\n", subject.name.c_str(), plan->steps.size(),
                static_cast<double>(plan->arena_bytes) / (1 << 20), text.c_str());
  }
  if (Result<CompilerVersion> there = compiler_version(); !there.ok()) {
    GTEST_SKIP() << there.status().message();
  }
  for (int architecture : {80, 90}) {
    Result<std::string> made = compile_text(source, architecture);
    ASSERT_TRUE(made.ok()) << made.status().message();
  }
}

// Small ones of the same build, so that the CPU can run their plans.
ResNet small_resnet(bool trains) {
  ResNet made;
  made.batch = 3;
  made.size = 20;
  made.width = 3;
  made.classes = 5;
  made.blocks = {1, 2};
  made.trains = trains;
  return made;
}

MiniLm small_minilm(bool has_attention) {
  MiniLm made;
  made.batch = 2;
  made.length = 6;
  made.hidden = 8;
  made.heads = 2;
  made.inner = 12;
  made.words = 4;
  made.layers = 2;
  made.classes = 5;
  made.has_attention = has_attention;
  return made;
}

TEST_F(Coverage, InferenceAgreesWithTheReference) {
  agree({"resnet", small_resnet(false).network(), "", ""}, 1, 1e-4);
  agree({"minilm", small_minilm(false).network(), "", ""}, 1, 1e-4);
  agree({"minilm with Attention", small_minilm(true).network(), "", ""}, 1, 1e-4);
}

TEST_F(Coverage, StepsAgreeWithTheReference) {
  agree({"mlp", tenon::test::mlp("f32", 4, 8), "fp32", "trainer.adamw"}, 3, 1e-4);
  agree({"cnn", tenon::test::cnn("f32", 2), "fp32", "trainer.sgd"}, 3, 1e-4);
  agree({"resnet", small_resnet(true).network(), "fp32", "trainer.sgd"}, 2, 1e-3);
  agree({"minilm", small_minilm(false).network(), "fp32", "trainer.adamw"}, 2, 1e-3);
}

TEST_F(Coverage, StepsInMixedPrecisionAgreeWithTheReference) {
  for (const char* precision : {"bf16", "fp16"}) {
    SCOPED_TRACE(precision);
    agree({"cnn", tenon::test::cnn("f32", 2), precision, "trainer.sgd"}, 2, 3e-2);
    agree({"minilm", small_minilm(false).network(), precision, "trainer.adamw"}, 2, 3e-2);
  }
}

}  // namespace
}  // namespace tenon::cuda
