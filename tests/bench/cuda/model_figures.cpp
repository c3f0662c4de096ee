// SPDX-License-Identifier: Apache-2.0
#include "model_figures.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include "tenon/sdk/run.hpp"

#include "device_tensors.hpp"
#include "plugins/cuda/training_step.hpp"

namespace tenon::cuda {
namespace {

using nlohmann::json;
using test::Network;

constexpr int kRuns = 20, kWarm = 5;  // the first ones compile and capture

struct Case {
  std::string name, precision;  // of inference: the type of everything
  Network network;
  bool trains;
};

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const char* precision : {"fp32", "fp16", "bf16"}) {
    std::string dtype = std::string(precision) == "fp32"   ? "f32"
                        : std::string(precision) == "fp16" ? "f16"
                                                           : "bf16";
    test::ResNet resnet;
    test::MiniLm minilm;
    resnet.dtype = minilm.dtype = dtype;
    minilm.has_head = false;
    out.push_back({"resnet50_inference", precision, resnet.network(), false});
    out.push_back({"minilm_inference", precision, minilm.network(), false});
    resnet.dtype = minilm.dtype = "f32";
    resnet.trains = minilm.has_head = true;
    out.push_back({"resnet50_step", precision, resnet.network(), true});
    out.push_back({"minilm_step", precision, minilm.network(), true});
  }
  return out;
}

// Small numbers, in the bytes of the type; what counts classes or words is small too.
Result<Tensor> random_tensor(tn_ctx* ctx, const Type& type, std::mt19937& random) {
  TN_TRY(made, Tensor::zeros(ctx, type.dtype, type.dims));
  double fan = type.rank() < 2 ? 1 : static_cast<double>(type.elements() / type.dims[0]);
  auto scale = static_cast<float>(1 / std::sqrt(fan));
  for (int64_t i = 0; i < type.elements(); ++i) {
    float number = (static_cast<float>(random() % 256) / 128 - 1) * scale;
    uint32_t bits = std::bit_cast<uint32_t>(number);
    if (type.dtype == TN_F32) made.data<float>()[i] = number;
    if (type.dtype == TN_BF16) made.data<uint16_t>()[i] = static_cast<uint16_t>(bits >> 16);
    if (type.dtype == TN_F16 && std::abs(number) > 1e-4f) {
      made.data<uint16_t>()[i] = static_cast<uint16_t>(
          (bits >> 16 & 0x8000) | (((bits >> 23 & 255) - 112) << 10) | (bits >> 13 & 1023));
    }
    if (type.dtype == TN_I64) made.data<int64_t>()[i] = static_cast<int64_t>(random() % 10);
  }
  return made;
}

// Outputs that are kept from run to run.
struct Kept {
  explicit Kept(tn_ctx* owner) : ctx(owner) {}
  tn_ctx* ctx;
  std::vector<Tensor> tensors;
  tn_outputs raw{this, [](void* self, uint64_t i, const DLTensor* proto, DLTensor* to) {
                   auto& all = *static_cast<Kept*>(self);
                   return guard([&]() -> Status {
                     if (all.tensors.size() <= i) all.tensors.resize(i + 1);
                     if (!all.tensors[i]) {
                       TN_TRY(made, Tensor::zeros(all.ctx, dtype_of(*proto), shape_of(*proto)));
                       all.tensors[i] = made;
                     }
                     *to = all.tensors[i].dl();
                     return {};
                   });
                 }};
};

class Subject {
 public:
  Subject(tenon_session* session, tn_ctx* ctx, Device& device)
      : session_(session), ctx_(ctx), inputs_(device), outputs_(ctx) {}
  ~Subject() {
    if (plan_) services.eval->release(plan_);
  }

  Status prepare(const Case& one) {
    if (one.trains) {
      TN_TRY(made, test::training_step(ctx_, one.network, "trainer.sgd", one.precision));
      graph_ = std::move(made);
    } else {
      tn_graph* raw = nullptr;
      TN_CHECK(Status(services.graph->parse(ctx_, str(one.network.text), &raw)));
      graph_ = OwnedGraph::take(raw);
      TN_CHECK(fix_weights(one.network.weights));
    }
    json options = {{"backend", "cuda"}};
    if (one.precision == "fp32") options["precision"] = "tf32";
    TN_CHECK(Status(tenon_compile(session_, graph_.get(), str(options.dump()), &plan_)));
    return fill();
  }

  Result<double> wall_ms() {
    std::vector<double> all;
    for (int i = 0; i < kRuns + kWarm; ++i) {
      auto begin = std::chrono::steady_clock::now();
      TN_CHECK(
          Status(tenon_run(plan_, pointers_.data(), pointers_.size(), &outputs_.raw, nullptr)));
      std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
      if (i >= kWarm) all.push_back(took.count());
    }
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  }

  // The sum over the steps of a run, and the operators that take most of it.
  Status profile(json* out) {
    StringSink sink;
    TN_CHECK(Status(services.eval->profile(plan_, pointers_.data(), pointers_.size(), sink.get())));
    double ns = 0;
    std::map<std::string, double> by_operator;
    for (const json& layer : json::parse(sink.text)) {
      ns += layer["ns"].get<double>();
      by_operator[layer["op"]] += layer["ns"].get<double>() / 1e6;
    }
    (*out)["kernels_ms"] = ns / 1e6;
    (*out)["by_operator_ms"] = by_operator;
    StringSink described;
    TN_CHECK(Status(services.eval->describe(plan_, described.get())));
    (*out)["fallback_nodes"] = json::parse(described.text)["fallback_nodes"].size();
    return {};
  }

 private:
  // Inputs become constants, as a loaded model has them.
  Status fix_weights(const std::vector<std::string>& names) {
    std::mt19937 random(2);
    TN_TRY(edit, Edit::begin(graph_.get()));
    for (const std::string& name : names) {
      Value input = edit.graph().find(name);
      TN_TRY(tensor, random_tensor(ctx_, input.type(), random));
      TN_TRY(constant, edit.constant(tensor));
      TN_CHECK(Status(services.edit->replace_uses(edit.raw, input.id, constant.id)));
    }
    std::vector<Value> inputs = edit.graph().inputs();
    for (uint64_t i = inputs.size(); i-- > 0;) {
      bool is_weight = std::find(names.begin(), names.end(), inputs[i].name()) != names.end();
      if (is_weight) TN_CHECK(Status(services.edit->remove_input(edit.raw, i)));
    }
    return edit.commit();
  }

  Status fill() {
    std::mt19937 random(1);
    Graph graph = graph_.view();
    std::vector<Value> states = graph.list(TN_LIST_STATES, 0);
    for (Value input : graph.inputs()) {
      bool is_state = std::find(states.begin(), states.end(), input) != states.end();
      if (is_state && input.name().find('/') != std::string_view::npos) continue;  // zeros
      TN_TRY(tensor, random_tensor(ctx_, input.type(), random));
      if (is_state) {
        DLTensor view = tensor.dl();
        TN_CHECK(Status(services.eval->state_set(plan_, str(input.name()), &view)));
      } else {
        TN_CHECK(inputs_.add(tensor));
      }
    }
    pointers_ = inputs_.pointers();
    return {};
  }

  tenon_session* session_;
  tn_ctx* ctx_;
  OwnedGraph graph_;
  tn_plan* plan_ = nullptr;
  DeviceTensors inputs_;
  std::vector<const DLTensor*> pointers_;
  Kept outputs_;
};

Status measure(tenon_session* session, tn_ctx* ctx, Device& device, const Case& one, json* out) {
  Subject subject(session, ctx, device);
  TN_CHECK(subject.prepare(one));
  TN_TRY(wall, subject.wall_ms());
  (*out)["wall_ms"] = wall;
  return subject.profile(out);
}

}  // namespace

void measure_models(tenon_session* session, Device& device, const Print& print) {
  tn_ctx* ctx = tenon_host(session)->ctx;
  for (const Case& one : cases()) {
    json figures = json::object();
    Status status = measure(session, ctx, device, one, &figures);
    if (!status.ok()) {
      tn_status* raw = status.release();
      StringSink sink;
      Status written(services.status->text(raw, sink.get()));
      services.status->release(raw);
      figures["failed"] = sink.text;
    }
    print(cat(one.name, "_", one.precision), figures);
  }
}

}  // namespace tenon::cuda
