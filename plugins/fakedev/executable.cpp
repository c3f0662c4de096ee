// SPDX-License-Identifier: Apache-2.0
#include "executable.hpp"

#include <algorithm>

#include "tenon/sdk/backend/report.hpp"
#include "tenon/sdk/trace.hpp"

namespace tenon::fakedev {

// What one run needs once its caller has gone on: descriptions of its own, and where results go.
struct Executable::Launch {
  DeviceState* state;
  std::vector<DenseView> device;  // what was given and asked for, as the host described it
  std::vector<DenseView> in;      // host addresses of device memory, or of scratch for states
  std::vector<DenseView> out;     // the same; empty shape table where the plan gives it late
  std::vector<std::vector<char>> scratch;
  const tn_outputs* late = nullptr;  // asked while the caller waits
  const tn_cancel* cancel = nullptr;
  bool profile = false;
  bool fail = false;

  // The same tensor at its host address, if it lies in memory of this device.
  Result<DenseView> reach(const DLTensor& tensor, const Memory& memory) {
    TN_CHECK(memory.check(tensor));
    char* data = static_cast<char*>(tensor.data) + tensor.byte_offset;
    device.emplace_back(dtype_of(tensor), shape_of(tensor), data);
    return DenseView(dtype_of(tensor), shape_of(tensor), Memory::to_host(tensor));
  }
};

Status DeviceState::set(std::string_view name, const DLTensor& value) {
  const char* data = data_of<const char>(value);
  keep(name, {data, data + bytes_of(dtype_of(value), element_count(value))});
  return {};
}

Status DeviceState::get(std::string_view name, DLTensor* out) {
  const std::vector<char>* found = values_.find(name);
  if (!found) return values_.unknown(name);
  std::reverse_copy(found->begin(), found->end(), data_of<char>(*out));
  return {};
}

std::vector<char> DeviceState::read(std::string_view name, uint64_t bytes) {
  const std::vector<char>* found = values_.find(name);
  return found ? std::vector<char>(found->rbegin(), found->rend()) : std::vector<char>(bytes);
}

Result<OwnedGraph> without_states(tn_ctx* ctx, const tn_graph* part) {
  tn_graph* raw = nullptr;
  TN_CHECK(services.graph->create(ctx, &raw));
  OwnedGraph out = OwnedGraph::take(raw);
  TN_TRY(edit, Edit::begin(raw));
  Graph from{part};
  std::vector<tn_value_id> map;
  for (Value input : from.inputs()) {
    TN_TRY(ours, edit.input(input.name(), input.type()));
    map.insert(map.end(), {input.id, ours.id});
  }
  size_t n_inputs = map.size();
  std::vector<Value> outputs = from.outputs();
  for (Value output : outputs)
    map.insert(map.end(), {output.id, 0});
  TN_CHECK(services.edit->splice(edit.raw, part, str(""), map.data(), map.size() / 2));
  for (size_t i = 0; i < outputs.size(); ++i) {
    TN_CHECK(edit.output(from.output_name(i), edit.value(map[n_inputs + 2 * i + 1])));
  }
  TN_CHECK(edit.commit());
  return out;
}

Result<std::unique_ptr<Executable>> Executable::compile(tn_ctx* ctx,
                                                        const tn_graph* part,
                                                        const Memory* memory) {
  std::unique_ptr<Executable> exe(new Executable(ctx, memory));
  Graph graph{part};
  exe->first_node_ = graph.nodes().front().name();
  std::vector<Value> before = graph.list(TN_LIST_STATES, 0), after = graph.list(TN_LIST_STATES, 1);
  auto describe = [&](Value value, const std::vector<Value>& states) {
    Io io{false, "", value.type()};
    auto at = std::find(states.begin(), states.end(), value);
    if (at != states.end()) {
      io.is_state = true;
      io.name = before[static_cast<size_t>(at - states.begin())].name();
    }
    return io;
  };
  for (Value v : graph.inputs())
    exe->inputs_.push_back(describe(v, before));
  for (Value v : graph.outputs()) {
    exe->outputs_.push_back(describe(v, after));
    exe->late_shapes_ = exe->late_shapes_ || !v.type().is_static();
  }
  TN_TRY(plain, without_states(ctx, part));
  TN_CHECK(services.eval->compile(ctx, plain.get(), nullptr, 0, str("{\"backend\": \"reference\"}"),
                                  &exe->plan_));
  return exe;
}

Executable::~Executable() {
  if (plan_) services.eval->release(plan_);
}

Status Executable::run(DeviceState* state,
                       const DLTensor* const* in,
                       uint64_t n_in,
                       const tn_outputs* outputs,
                       const tn_exec* exec,
                       bool fail) {
  if (exec->flags & TN_EXEC_CAPTURE) {
    if (late_shapes_)
      return {TN_FAILED_PRECONDITION, "cannot capture a run whose output shapes depend on data"};
    if (!exec->stream) return {TN_FAILED_PRECONDITION, "cannot capture a run without a stream"};
  }
  auto launch = std::make_shared<Launch>();
  launch->state = state;
  launch->fail = fail;
  launch->profile = exec->flags & TN_EXEC_PROFILE;
  launch->cancel = exec->cancel;
  launch->late = late_shapes_ ? outputs : nullptr;
  TN_CHECK(take_inputs(*launch, in, n_in));
  TN_CHECK(ask_outputs(*launch, outputs));
  return enqueue(*exec, [this, launch] { return work(*launch); }, late_shapes_);
}

Status Executable::take_inputs(Launch& launch, const DLTensor* const* in, uint64_t n_in) const {
  launch.scratch.resize(inputs_.size());
  uint64_t given = 0;
  for (const Io& io : inputs_) {
    if (io.is_state) {
      launch.in.emplace_back(io.type.dtype, io.type.dims);
      continue;
    }
    if (given >= n_in) return invalid(cat("expected more than ", n_in, " inputs"));
    TN_TRY(view, launch.reach(*in[given++], *memory_));
    launch.in.push_back(view);
  }
  return {};
}

Status Executable::ask_outputs(Launch& launch, const tn_outputs* outputs) const {
  uint64_t asked = 0;
  for (const Io& io : outputs_) {
    DenseView view(io.type.dtype, io.type.dims);
    if (!io.is_state && !late_shapes_) {
      view.get()->device = {kDLExtDev, 0};
      DLTensor out{};
      TN_CHECK(outputs->get(outputs->ctx, asked++, view.get(), &out));
      TN_TRY(reached, launch.reach(out, *memory_));
      view = reached;
    }
    launch.out.push_back(view);
  }
  return {};
}

std::string Executable::profile() const {
  return cat("[", backend::layer_text(backend::Layer{first_node_, "part", "fake"}, profiled_ns_),
             "]");
}

Status Executable::work(Launch& launch) {
  Span span(ctx_, "device", first_node_);
  if (launch.fail) return {TN_INTERNAL, "the fake device failed, as it was asked to"};
  // What was there when the work was queued must be there until it is done.
  for (DenseView& tensor : launch.device)
    TN_CHECK(memory_->check(*tensor.get()));
  uint64_t begin = backend::now_ns();
  std::vector<const DLTensor*> in;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].is_state) {
      uint64_t bytes = bytes_of(inputs_[i].type.dtype, inputs_[i].type.elements());
      launch.scratch[i] = launch.state->read(inputs_[i].name, bytes);
      launch.in[i] =
          DenseView(inputs_[i].type.dtype, inputs_[i].type.dims, launch.scratch[i].data());
    }
    in.push_back(launch.in[i].get());
  }
  struct Results {
    const Executable& exe;
    Launch& launch;
    std::vector<std::vector<char>> states;
  } results{*this, launch, std::vector<std::vector<char>>(outputs_.size())};
  auto get = [](void* self, uint64_t i, const DLTensor* proto, DLTensor* out) -> tn_status* {
    auto& r = *static_cast<Results*>(self);
    return guard([&]() -> Status {
      const Io& io = r.exe.outputs_[i];
      if (io.is_state) {
        r.states[i].resize(bytes_of(io.type.dtype, io.type.elements()));
        r.launch.out[i] = DenseView(io.type.dtype, io.type.dims, r.states[i].data());
      } else if (r.launch.late) {
        DLTensor wanted = *proto, device{};
        wanted.device = {kDLExtDev, 0};
        uint64_t position = 0;
        for (uint64_t k = 0; k < i; ++k)
          position += !r.exe.outputs_[k].is_state;
        TN_CHECK(r.launch.late->get(r.launch.late->ctx, position, &wanted, &device));
        TN_TRY(reached, r.launch.reach(device, *r.exe.memory_));
        r.launch.out[i] = reached;
      }
      *out = *r.launch.out[i];
      return {};
    });
  };
  tn_outputs outputs{&results, get};
  TN_CHECK(services.eval->run(plan_, in.data(), in.size(), &outputs, launch.cancel));
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i].is_state) launch.state->keep(outputs_[i].name, results.states[i]);
  if (launch.profile) profiled_ns_ = backend::now_ns() - begin;
  return {};
}

}  // namespace tenon::fakedev
