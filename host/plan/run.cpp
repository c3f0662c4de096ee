// SPDX-License-Identifier: Apache-2.0
// One run of a compiled plan: steps in order over the slots of a RunContext.
#include <algorithm>
#include <cstring>

#include <nlohmann/json.hpp>

#include "plan/plan.hpp"
#include "plan/result_checks.hpp"
#include "services/clock.hpp"
#include "services/trace.hpp"
#include "values/tensor.hpp"
#include "values/tensor_layout.hpp"

namespace tenon::host {
namespace {

class Run {
 public:
  Run(RunContext& context, const RunRequest& request)
      : rc_(context), c_(*context.compiled), plan_(*c_.plan), request_(request) {}

  Status run() {
    TN_CHECK(point_at_inputs());
    Status status;
    for (const Step& step : c_.steps) {
      rc_.at = &step;
      status = run_step(step);
      if (!status.ok()) break;
    }
    // Work in flight must end before its memory is given up, also after a failure.
    Status waited = rc_.wait_all();
    if (!status.ok()) return status;
    rc_.at = nullptr;  // what fails from here on is no step's
    TN_CHECK(std::move(waited));
    TN_CHECK(hand_out_rest());
    return keep_states();
  }

 private:
  Status point_at_inputs() {
    for (size_t i = 0; i < c_.slots.size(); ++i) {
      const Slot& slot = c_.slots[i];
      if (slot.input >= 0) rc_.tensors[i] = *request_.in[slot.input];
      if (slot.space != kCpuSpace && slot.is_static) {  // where a run before had a caller's
        rc_.tensors[i].data = rc_.owned[i];
        rc_.tensors[i].byte_offset = 0;
      }
      if (slot.state >= 0 && plan_.states[slot.state]->now)
        rc_.tensors[i] = plan_.states[slot.state]->now->dl;
      if (slot.next_state >= 0) {
        rc_.tensors[i].data = plan_.states[slot.next_state]->next->dl.data;
      }
    }
    return {};
  }

  Status run_step(const Step& step) {
    switch (step.kind) {
      case StepKind::kCopy:
        return spanned("copy", step, &Run::run_copy);
      case StepKind::kControl:
        return spanned("control", step, &Run::run_control);
      case StepKind::kLate:
        return spanned("late sizes", step, &Run::run_late);
      case StepKind::kPartition:
        return spanned("partition", step, &Run::run_partition);
    }
    return {};
  }

  Status spanned(std::string_view category, const Step& step, Status (Run::*body)(const Step&)) {
    Span span(plan_.trace(), category, step.label);
    return (this->*body)(step);
  }

  void set_arguments(const Step& step) {
    rc_.arguments.clear();
    for (int slot : step.in)
      rc_.arguments.push_back(slot < 0 ? nullptr : &rc_.tensors[slot]);
  }

  // A caller's tensor on a device comes to the CPU when somebody there reads it.
  Status fetch(int index) {
    std::optional<int> at = plan_.backend_at(rc_.tensors[index].device);
    if (c_.slots[index].input < 0 || !at) return {};
    DLTensor from = rc_.tensors[index];
    TN_CHECK(give_dynamic(index, from));
    BackendUse& use = *plan_.backends[*at];
    TN_CHECK(on_device(*at, DeviceQueues::kCopies, {}, {}, [&](const tn_exec& exec) {
      return use.called("copy", use.table->copy(use.self, &from, &rc_.tensors[index], &exec));
    }));
    return rc_.wait_all();
  }
  Status fetch_all(const Step& step) {
    for (int slot : step.in)
      if (slot >= 0) TN_CHECK(fetch(slot));
    return rc_.wait_all();
  }

  struct Asked {
    Run* run;
    const Step* step;
  };

  static tn_status* give(void* asked, uint64_t i, const DLTensor* proto, DLTensor* out) {
    auto& [run, step] = *static_cast<Asked*>(asked);
    if (i >= step->out.size()) {
      return Status(TN_INTERNAL, cat("output ", i, " of a partition with ", step->out.size()))
          .release();
    }
    run->rc_.asked[i] = true;
    return run->give_slot(step->out[i], *proto, out).release();
  }

  // A kernel that succeeds without an output would leave what an earlier run wrote there.
  Status check_made(const Step& step) const {
    for (size_t i = 0; i < step.out.size(); ++i) {
      if (rc_.asked[i]) continue;
      const std::string& value = c_.slots[step.out[i]].name;
      return {TN_INTERNAL,
              cat(maker_of(c_.graph.get(), value), "output ", value, ": it was not made")};
    }
    return {};
  }

  // Memory for a value that a step is about to write.
  Status give_slot(int index, const DLTensor& proto, DLTensor* out) {
    const Slot& slot = c_.slots[index];
    if (!is_inferred(slot, proto))
      return not_inferred(slot, proto, maker_of(c_.graph.get(), slot.name));
    if (slot.output >= 0) {
      TN_CHECK(ask_user(index, proto));
    } else if (!slot.is_static) {
      TN_CHECK(give_dynamic(index, proto));
    }
    *out = rc_.tensors[index];
    return {};
  }

  Status ask_user(int index, const DLTensor& proto) {
    const Slot& slot = c_.slots[index];
    DLTensor asked = proto, given{};
    asked.device = device_of(slot.space);
    Status got(request_.outputs->get(request_.outputs->ctx, static_cast<uint64_t>(slot.output),
                                     &asked, &given));
    if (got.ok()) got = check_given(asked, given);
    if (!got.ok()) {
      int32_t code = got.code();
      return {code, cat(maker_of(c_.graph.get(), slot.name), "output ", slot.name), "host",
              std::move(got)};
    }
    keep_given(index, given);
    return {};
  }

  // The shape of what the caller gave may be proto's, which goes before the memory does.
  void keep_given(int index, const DLTensor& given) {
    const bool dense = is_dense(given);
    std::vector<int64_t>& own = rc_.dynamic_dims[index];
    if (!dense) {
      own.assign(given.shape, given.shape + given.ndim);
      own.insert(own.end(), given.strides, given.strides + given.ndim);
    } else if (!c_.slots[index].is_static) {
      own = dense_layout(dims_of(given));
    }
    int64_t* dims = dense && c_.slots[index].is_static ? c_.slots[index].dims.data() : own.data();
    DLTensor& tensor = rc_.tensors[index] = given;
    tensor.shape = dims;
    tensor.strides = dims + given.ndim;
  }

  Status give_dynamic(int index, const DLTensor& proto) {
    const Slot& slot = c_.slots[index];
    TN_TRY(bytes, dense_bytes(dtype_of(proto.dtype), dims_of(proto)));
    if (rc_.owned_bytes[index] < bytes || !rc_.owned[index]) {
      TN_CHECK(reserve(rc_, index, bytes));
    }
    rc_.dynamic_dims[index] = dense_layout(dims_of(proto));
    DLTensor& tensor = rc_.tensors[index];
    tensor = {rc_.owned[index],
              device_of(slot.space),
              proto.ndim,
              proto.dtype,
              rc_.dynamic_dims[index].data(),
              rc_.dynamic_dims[index].data() + proto.ndim,
              0};
    return {};
  }

  DLDevice device_of(int space) const {
    return space == kCpuSpace ? DLDevice{kDLCPU, 0} : plan_.backends[space]->dl;
  }

  Status run_partition(const Step& step) {
    BackendUse& use = *plan_.backends[step.backend];
    if (!use.own_memory) TN_CHECK(fetch_all(step));
    set_arguments(step);
    Asked asked{this, &step};
    rc_.asked.assign(step.out.size(), false);
    tn_outputs outputs{&asked, give};
    void* state = step.has_state ? plan_.kept->by_backend[step.backend] : nullptr;
    TN_CHECK(on_device(step.backend, DeviceQueues::kParts, step.in, step.out, [&](tn_exec& exec) {
      exec.workspace = rc_.workspace;
      exec.workspace_bytes = step.workspace;
      return use.called("run", use.table->run(use.self, step.exe.get(), state, rc_.arguments.data(),
                                              rc_.arguments.size(), &outputs, &exec));
    }));
    TN_CHECK(check_made(step));
    if (!request_.profile) return {};
    TN_CHECK(rc_.wait_all());
    TN_CHECK(add_profile(use, step.exe.get(), *request_.profile));
    return {};
  }

  // Calls a function of a device's backend, behind what it reads and with its event in front of who
  // reads what it writes.
  template <class Call>
  Status on_device(int backend,
                   DeviceQueues::Kind kind,
                   const std::vector<int>& reads,
                   const std::vector<int>& writes,
                   Call call) {
    void* done = nullptr;
    tn_exec exec = rc_.exec_on(backend, kind, reads, &done);
    exec.flags = request_.profile ? TN_EXEC_PROFILE : 0;
    exec.cancel = request_.cancel;
    Status status = call(exec);
    rc_.queued(backend, kind, writes, done);
    return status;
  }

  // A body of a control-flow node, under the cancel and the profile of the run around it.
  struct BodyRun {
    tn_plan* plan;
    const tn_cancel* cancel;
    nlohmann::json* layers;
  };

  static tn_status* run_body(void* self,
                             const DLTensor* const* in,
                             uint64_t n_in,
                             const tn_outputs* outputs) {
    auto& [plan, cancel, layers] = *static_cast<BodyRun*>(self);
    return run_plan(plan, {{in, n_in}, outputs, cancel, layers}).release();
  }

  Status run_control(const Step& step) {
    TN_CHECK(fetch_all(step));
    uint64_t start = request_.profile ? now_ns() : 0;
    set_arguments(step);
    std::vector<const DLTensor*> arguments = rc_.arguments;
    nlohmann::json layers = nlohmann::json::array();
    std::vector<BodyRun> runs;
    for (const auto& [name, plan] : step.bodies)
      runs.push_back({plan.get(), request_.cancel, request_.profile ? &layers : nullptr});
    std::vector<tn_body> bodies;
    for (size_t i = 0; i < runs.size(); ++i)
      bodies.push_back({str(step.bodies[i].first), &runs[i], run_body});
    Asked asked{this, &step};
    rc_.asked.assign(step.out.size(), false);
    tn_outputs outputs{&asked, give};
    tn_op_call call{
        sizeof call,      0,        plan_.ctx,     c_.graph.get(), step.node,      arguments.data(),
        arguments.size(), &outputs, bodies.data(), bodies.size(),  request_.cancel};
    TN_CHECK(Status(step.row->ref(step.row->self, &call)));
    TN_CHECK(check_made(step));
    if (request_.profile)
      add_control_profile(step.names[0], view(step.row->type), now_ns() - start, layers,
                          *request_.profile);
    return {};
  }

  Status run_late(const Step& step) {
    TN_CHECK(fetch_all(step));
    set_arguments(step);
    Asked asked{this, &step};
    rc_.asked.assign(step.out.size(), false);
    tn_outputs outputs{&asked, give};
    const std::vector<const DLTensor*> arguments = rc_.arguments;
    TN_CHECK(run_plan(step.bodies[0].second.get(),
                      {arguments, &outputs, request_.cancel, request_.profile}));
    return check_made(step);
  }

  Status run_copy(const Step& step) {
    BackendUse& use = *plan_.backends[step.backend];
    // Streams of two devices know nothing of each other, and the CPU's end may be memory that the
    // other one still reads or writes.
    for (int b = 0; b < static_cast<int>(plan_.backends.size()); ++b)
      if (b != step.backend && rc_.is_busy(b)) TN_CHECK(rc_.wait_all());
    const Slot& target = c_.slots[step.out[0]];
    const DLTensor& from = rc_.tensors[step.in[0]];
    if (c_.slots[step.in[0]].input >= 0 && plan_.backend_at(from.device) == target.space) {
      DLTensor& mine = rc_.tensors[step.out[0]];  // the caller's memory, for this run
      if (!target.is_static) mine = from;
      mine.data = from.data;
      mine.byte_offset = from.byte_offset;
      return {};
    }
    TN_CHECK(fetch(step.in[0]));
    DLTensor to{};
    DLTensor proto = from;
    proto.device = device_of(target.space);
    // The shape of a value made late on a device is there once the device has run.
    TN_CHECK(give_slot(step.out[0], proto, &to));
    return on_device(step.backend, DeviceQueues::kCopies, step.in, step.out,
                     [&](const tn_exec& exec) {
                       return use.called("copy", use.table->copy(use.self, &from, &to, &exec));
                     });
  }

  // Outputs that are inputs, constants, states, or a value that another output also is.
  Status hand_out_rest() {
    for (size_t i = 0; i < c_.outputs.size(); ++i) {
      const Slot& slot = c_.slots[c_.outputs[i]];
      if (slot.output == static_cast<int64_t>(i)) continue;
      TN_CHECK(fetch(c_.outputs[i]));
      const DLTensor& from = rc_.tensors[c_.outputs[i]];
      DLTensor to{};
      TN_CHECK(Status(request_.outputs->get(request_.outputs->ctx, i, &from, &to)));
      TN_CHECK(check_given(from, to));
      TN_CHECK(copy_dense(from, static_cast<char*>(to.data) + to.byte_offset));
    }
    return {};
  }

  // New values go to the second buffers first: all states change, or none.
  Status keep_states() {
    for (size_t i = 0; i < c_.state_results.size(); ++i) {
      if (c_.state_results[i] < 0) continue;
      bool is_there = c_.slots[c_.state_results[i]].next_state == static_cast<int64_t>(i);
      if (is_there) continue;
      TN_CHECK(copy_dense(rc_.tensors[c_.state_results[i]], plan_.states[i]->next->dl.data));
    }
    for (size_t i = 0; i < c_.state_results.size(); ++i) {
      if (c_.state_results[i] >= 0) std::swap(plan_.states[i]->now, plan_.states[i]->next);
    }
    return {};
  }

  RunContext& rc_;
  Compiled& c_;
  tn_plan& plan_;
  const RunRequest& request_;
};

}  // namespace

Status run_compiled(Compiled& compiled, const RunRequest& request, const Step** at) {
  std::unique_ptr<RunContext> context;
  {
    std::lock_guard lock(compiled.mutex);
    if (!compiled.idle.empty()) {
      context = std::move(compiled.idle.back());
      compiled.idle.pop_back();
    }
  }
  if (!context) {
    context = std::make_unique<RunContext>(&compiled);
    TN_CHECK(context->prepare());
  }
  Status status = context->begin();
  if (status.ok()) status = Run(*context, request).run();
  context->end();
  *at = context->at;
  std::lock_guard lock(compiled.mutex);
  compiled.idle.push_back(std::move(context));  // capacity stays: no allocation in steady state
  return status;
}

}  // namespace tenon::host
