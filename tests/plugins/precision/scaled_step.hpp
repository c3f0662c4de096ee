// SPDX-License-Identifier: Apache-2.0
#pragma once
// A step with a scaled loss, w*factor, whose gradient and update are written by hand.
#include <limits>

#include "plugins/quantizer/pass_test.hpp"

namespace tenon::test {
class LossScale : public PassTest {
 protected:
  // w is a state, the loss is w*factor; `steps` counts, `mean` follows the input.
  void build_loss() {
    build([&](EditView edit) {
      Value w = input(edit, "w", {}), factor = input(edit, "factor", {});
      input(edit, "steps", {});
      input(edit, "mean", {});
      Value loss = node(edit, "Mul", {w, factor}, "loss_value");
      ASSERT_EQ(text_of(edit.output("loss", loss)), "");
    });
  }
  Value find(EditView edit, std::string_view name) { return edit.graph().find(name); }
  void pair(EditView edit, std::string_view name, Value next) {
    ASSERT_EQ(text_of(edit.output(cat(name, "/next"), next)), "");
    ASSERT_EQ(text_of(Status(services.edit->pair_state(edit.raw, find(edit, name).id, next.id))),
              "");
  }
  // What gradients and an optimizer add: the gradient of the scaled loss by w is scale*factor.
  void add_gradient() {
    model_ = std::move(result_);
    build([&](EditView edit) {
      Value gradient =
          node(edit, "Mul", {find(edit, "loss_scale/current"), find(edit, "factor")}, "grad/w");
      ASSERT_EQ(text_of(edit.output("grad/w", gradient)), "");
    });
  }
  // The optimizer finds gradients among the outputs, as trainer.step does, and takes them out.
  void add_update() {
    model_ = std::move(result_);
    build([&](EditView edit) {
      size_t at = 0;
      while (edit.graph().output_name(at) != "grad/w")
        ++at;
      Value gradient = edit.graph().outputs()[at];
      Value rate = *edit.constant<float>(TN_F32, {}, std::vector<float>{0.1f}, "rate");
      Value one = *edit.constant<float>(TN_F32, {}, std::vector<float>{1}, "one");
      Value step = node(edit, "Mul", {gradient, rate}, "step");
      pair(edit, "w", node(edit, "Sub", {find(edit, "w"), step}, "w_after"));
      pair(edit, "steps", node(edit, "Add", {find(edit, "steps"), one}, "steps_after"));
      pair(edit, "mean", node(edit, "Add", {find(edit, "mean"), one}, "mean_after"));
    });
  }
  void make(const json& options, const json& first = json::object()) {
    build_loss();
    ASSERT_EQ(apply("precision.loss_scale", first), "");
    initial_ = report_.value("initial", json::object());
    add_gradient();
    ASSERT_EQ(apply("precision.unscale", json::object()), "");
    add_update();
    ASSERT_EQ(apply("precision.loss_scale_step", options), "");
    Status compiled(services.eval->compile(ctx_, result_.get(), nullptr, 0,
                                           str("{\"backend\": \"reference\"}"), &plan_));
    ASSERT_EQ(text_of(std::move(compiled)), "");
    set("w", 1);
    for (const auto& [name, count] : initial_.items()) {
      int32_t number = count;
      DenseView tensor(TN_I32, std::vector<int64_t>{}, &number);
      ASSERT_EQ(text_of(Status(services.eval->state_set(plan_, str(name), tensor.get()))), "");
    }
  }
  // Another empty model, after one that was run.
  void start_over() {
    if (plan_) services.eval->release(std::exchange(plan_, nullptr));
    tn_graph* empty = nullptr;
    ASSERT_EQ(text_of(Status(services.graph->create(ctx_, &empty))), "");
    model_ = OwnedGraph::take(empty);
  }
  // What a preset makes of its library's own state and configuration, in both passes.
  void go_on(const char* preset, json given) {
    given["preset"] = preset;
    make(given, given);
  }
  std::string refused(const char* preset, json given) {
    start_over();
    build_loss();
    given["preset"] = preset;
    return apply("precision.loss_scale", given);
  }
  void TearDown() override {
    if (plan_) services.eval->release(plan_);
    PassTest::TearDown();
  }
  void set(std::string_view state, float value) {
    DenseView tensor(TN_F32, std::vector<int64_t>{}, &value);
    ASSERT_EQ(text_of(Status(services.eval->state_set(plan_, str(state), tensor.get()))), "");
  }
  void set_tracker(int32_t value) {
    DenseView tensor(TN_I32, std::vector<int64_t>{}, &value);
    ASSERT_EQ(text_of(Status(
                  services.eval->state_set(plan_, str("loss_scale/growth_tracker"), tensor.get()))),
              "");
  }
  template <class T>
  T get(std::string_view state, uint32_t dtype) {
    T value{};
    DenseView tensor(dtype, std::vector<int64_t>{}, &value);
    EXPECT_EQ(text_of(Status(services.eval->state_get(plan_, str(state), tensor.get()))), "");
    return value;
  }
  float scale() { return get<float>("loss_scale/scale", TN_F32); }
  int32_t tracker() { return get<int32_t>("loss_scale/growth_tracker", TN_I32); }
  // One step; whether it found infinity, and the loss and the gradient that it gave out.
  struct Step {
    bool found;
    float loss, scaled, gradient;
  };
  Step step(float factor) {
    DenseView tensor(TN_F32, std::vector<int64_t>{}, &factor);
    const DLTensor* in[] = {tensor.get()};
    Collected out(ctx_);
    EXPECT_EQ(text_of(Status(services.eval->run(plan_, in, 1, &out.raw, nullptr))), "");
    if (out.tensors.size() != 4) {
      ADD_FAILURE() << "got " << out.tensors.size() << " outputs";
      return {};
    }
    return {out.numbers<uint8_t>(3)[0] != 0, out.numbers<float>(0)[0], out.numbers<float>(1)[0],
            out.numbers<float>(2)[0]};
  }
  static constexpr float kInf = std::numeric_limits<float>::infinity();
  tn_plan* plan_ = nullptr;
  json initial_;
};

}  // namespace tenon::test
