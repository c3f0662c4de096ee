// SPDX-License-Identifier: Apache-2.0
#include "executable.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "tenon/sdk/backend/evaluate.hpp"
#include "tenon/sdk/backend/report.hpp"

namespace tenon::reference {
namespace {

std::string shape_text(std::span<const int64_t> dims) {
  std::string text;
  for (int64_t dim : dims)
    text += cat(text.empty() ? "" : ", ", dim < 0 ? "?" : std::to_string(dim));
  return "[" + text + "]";
}

}  // namespace

// A node whose ref has said TN_UNIMPLEMENTED, as a part of its own in smaller operators.
struct Executable::Pieces {
  std::unique_ptr<Executable> exe;
  std::vector<size_t> in;   // of the node, by the part's inputs
  std::vector<size_t> out;  // of the node, by the part's outputs
};

Executable::Executable(tn_ctx* ctx, OwnedGraph graph, int64_t max_value_bytes)
    : ctx_(ctx), graph_(std::move(graph)), max_value_bytes_(max_value_bytes) {}
Executable::~Executable() = default;

Result<std::unique_ptr<Executable>> Executable::compile(tn_ctx* ctx,
                                                        const tn_graph* part,
                                                        int64_t max_value_bytes) {
  TN_TRY(clone, OwnedGraph::copy_of(part));
  std::unique_ptr<Executable> exe(new Executable(ctx, std::move(clone), max_value_bytes));
  TN_CHECK(backend::expand_composites(exe->graph_.get(), [](Node) { return false; }));
  TN_CHECK(exe->add_steps());
  exe->find_last_uses();
  exe->note_types();
  return exe;
}

int Executable::value_index(tn_value_id id) {
  if (!id) return -1;
  auto [at, added] = index_.try_emplace(id, static_cast<int>(values_.size()));
  if (added) values_.push_back(id);
  return at->second;
}

Status Executable::add_steps() {
  Graph graph = graph_.view();
  for (Value input : graph.inputs())
    inputs_.push_back(value_index(input.id));
  for (Node node : graph.nodes()) {
    Step step;
    step.node = node.id;
    step.row = node.row();
    std::string why = backend::why_no_row(node);
    if (!why.empty()) return unsupported(cat("node ", node.name(), ": ", why));
    if (!step.row->ref) TN_CHECK(services.op->expr(graph.raw, node.id, &step.program));
    for (Value v : node.inputs())
      step.in.push_back(value_index(v.id));
    for (Value v : node.outputs())
      step.out.push_back(value_index(v.id));
    TN_CHECK(keep_open(node, step));
    steps_.push_back(std::move(step));
  }
  std::vector<Value> outputs = graph.outputs();
  for (Value v : outputs)
    value_index(v.id);
  output_of_.assign(values_.size(), -1);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int value = value_index(outputs[i].id);
    int& slot = output_of_[static_cast<size_t>(value)];
    if (slot >= 0 || !outputs[i].producer()) handed_on_.emplace_back(i, value);
    if (slot < 0) slot = static_cast<int>(i);
  }
  return {};
}

// What the host has inferred holds for the sizes that it knew. For others the row is asked again
// before its kernel reads.
Status Executable::keep_open(Node node, Step& step) {
  bool is_open = false;
  for (Value v : node.inputs()) {
    Type type = v.type();
    bool is_known = type.is_static() && type.dtype != TN_DTYPE_NONE;
    is_open |= v && type.kind == TN_KIND_TENSOR && !is_known;
  }
  if (!is_open) return {};
  tn_graph* raw = nullptr;
  TN_CHECK(services.graph->extract(graph_.get(), &node.id, 1, &raw));
  step.open = OwnedGraph::take(raw);
  for (int v : step.in) {  // in the order of extract: once each, without constants
    bool enters = v >= 0 && !Value{graph_.get(), values_[static_cast<size_t>(v)]}.is_constant();
    bool is_new = std::find(step.open_in.begin(), step.open_in.end(), v) == step.open_in.end();
    if (enters && is_new) step.open_in.push_back(v);
  }
  return {};
}

void Executable::find_last_uses() {
  is_read_.assign(values_.size(), false);
  for (size_t i = 0; i < values_.size(); ++i)
    is_read_[i] = output_of_[i] >= 0;
  for (const Step& step : steps_)
    for (int v : step.in)
      if (v >= 0) is_read_[static_cast<size_t>(v)] = true;
  std::vector<bool> needed(values_.size(), false);
  for (size_t i = 0; i < values_.size(); ++i)
    needed[i] = output_of_[i] >= 0;
  for (size_t s = steps_.size(); s-- > 0;) {
    for (const std::vector<int>* list : {&steps_[s].out, &steps_[s].in}) {
      for (int v : *list) {
        if (v < 0 || needed[static_cast<size_t>(v)]) continue;
        needed[static_cast<size_t>(v)] = true;
        steps_[s].last_used.push_back(v);
      }
    }
  }
}

void Executable::note_types() {
  for (tn_value_id id : values_) {
    Type type = Value{graph_.get(), id}.type();
    if (type.kind == TN_KIND_TENSOR)
      expected_.push_back({type.dtype, type.ranked, std::move(type.dims)});
    else  // a packed list, whose bytes say what it holds (abi/lists.md)
      expected_.push_back({TN_DTYPE_NONE, false, {}});
  }
}

Status Executable::check_inferred(int value, const DLTensor& proto) const {
  const Expected& inferred = expected_[static_cast<size_t>(value)];
  bool same = inferred.dtype == TN_DTYPE_NONE || inferred.dtype == dtype_of(proto);
  if (inferred.has_rank) {
    std::span<const int64_t> made = shape_of(proto);
    same &= std::equal(made.begin(), made.end(), inferred.dims.begin(), inferred.dims.end(),
                       [](int64_t is, int64_t was) { return was < 0 || was == is; });
  }
  if (same) return {};
  Value named{graph_.get(), values_[static_cast<size_t>(value)]};
  return {TN_INTERNAL,
          cat("output ", named.name(), ": inferred ", dtype_name(inferred.dtype),
              inferred.has_rank ? shape_text(inferred.dims) : "", ", the kernel asks for ",
              dtype_name(dtype_of(proto)), shape_text(shape_of(proto)))};
}

// Made once: whether a kernel takes a node follows from the node.
Result<Executable::Pieces*> Executable::pieces_of(const Step& step) const {
  std::lock_guard lock(pieces_lock_);
  std::unique_ptr<Pieces>& pieces = pieces_[step.node];
  if (pieces) return pieces.get();
  tn_graph* extracted = nullptr;
  TN_CHECK(services.graph->extract(graph_.get(), &step.node, 1, &extracted));
  OwnedGraph part = OwnedGraph::take(extracted);
  TN_TRY(edit, Edit::begin(part.get()));
  TN_CHECK(services.op->decompose(edit.raw, part.view().nodes().front().id));
  TN_CHECK(edit.commit());
  auto made = std::make_unique<Pieces>();
  TN_TRY(exe, compile(ctx_, part.get(), max_value_bytes_));
  made->exe = std::move(exe);
  Node node{graph_.get(), step.node};
  auto place = [](const std::vector<Value>& all, std::string_view name) {
    size_t i = 0;
    while (i < all.size() && !(all[i] && all[i].name() == name))
      ++i;
    return i;
  };
  Graph whole = part.view();
  for (uint64_t i = 0; i < whole.inputs().size(); ++i)
    made->in.push_back(place(node.inputs(), whole.inputs()[i].name()));
  for (uint64_t i = 0; i < whole.outputs().size(); ++i)
    made->out.push_back(
        place(node.outputs(), view(services.graph->io_name(part.get(), TN_LIST_OUTPUTS, i))));
  pieces = std::move(made);
  return pieces.get();
}

// Sizes that come from data are known only here.
Status Executable::check_size(const DLTensor& proto) const {
  int64_t bits = proto.dtype.bits * proto.dtype.lanes;
  for (int32_t i = 0; i < proto.ndim; ++i)
    if (__builtin_mul_overflow(bits, proto.shape[i], &bits))
      return {TN_RESOURCE_EXHAUSTED, "a value whose bits are more than 2^63"};
  const int64_t bytes = bits / 8 + (bits % 8 != 0);
  if (max_value_bytes_ == 0 || bytes <= max_value_bytes_) return {};
  return {TN_RESOURCE_EXHAUSTED, cat("a value of ", bytes, " bytes, expected at most ",
                                     max_value_bytes_, " (option max_value_bytes)")};
}

// The values of one run.
struct Executable::Run {
  const Executable& exe;
  const tn_outputs* outputs;
  std::vector<DLTensor> tensors;
  std::vector<Tensor> owned;
  const Step* step = nullptr;
  std::vector<bool> asked = {};  // by output of the step

  Run(const Executable& of, const tn_outputs* to)
      : exe(of), outputs(to), tensors(of.values_.size()), owned(of.values_.size()) {}

  static tn_status* give(void* self, uint64_t i, const DLTensor* proto, DLTensor* out) {
    Run& run = *static_cast<Run*>(self);
    return guard([&]() -> Status {
      if (i >= run.step->out.size())
        return invalid(cat("it has more outputs than the node: expected ", i + 1, " or more, got ",
                           run.step->out.size()));
      auto value = static_cast<size_t>(run.step->out[i]);
      DLTensor& tensor = run.tensors[value];
      run.asked[i] = true;
      TN_CHECK(run.exe.check_inferred(run.step->out[i], *proto));
      TN_CHECK(run.exe.check_size(*proto));
      if (int output = run.exe.output_of_[value]; output >= 0) {
        TN_CHECK(run.outputs->get(run.outputs->ctx, static_cast<uint64_t>(output), proto, &tensor));
      } else {
        TN_TRY(made, Tensor::zeros(run.exe.ctx_, dtype_of(*proto), shape_of(*proto)));
        tensor = made.dl();
        run.owned[value] = std::move(made);
      }
      *out = tensor;
      return {};
    });
  }

  Status check_sizes(const Step& next) const {
    std::vector<Value> formal = next.open.view().inputs();
    std::vector<tn_type> types(formal.size());
    std::vector<const tn_type*> pointers(formal.size(), nullptr);
    for (size_t i = 0; i < formal.size(); ++i) {
      const DLTensor& t = tensors[static_cast<size_t>(next.open_in[i])];
      if (formal[i].type().kind != TN_KIND_TENSOR) continue;
      types[i] = {sizeof(tn_type), TN_KIND_TENSOR, dtype_of(t), static_cast<uint32_t>(t.ndim),
                  t.shape,         nullptr};
      pointers[i] = &types[i];
    }
    tn_graph* bound = nullptr;
    TN_CHECK(services.graph->bind(next.open.get(), pointers.data(), pointers.size(), &bound));
    services.graph->release(bound);
    return {};
  }

  Status run_step(const Step& next, const tn_cancel* cancel) {
    step = &next;
    if (next.open.get()) TN_CHECK(check_sizes(next));
    asked.assign(next.out.size(), false);
    std::vector<const DLTensor*> in;
    for (int v : next.in)
      in.push_back(v < 0 ? nullptr : &tensors[static_cast<size_t>(v)]);
    tn_outputs here{this, give};
    if (next.program) {
      TN_TRY(shape, backend::broadcast_shape(in));
      uint32_t dtype =
          Value{exe.graph_.get(), exe.values_[static_cast<size_t>(next.out[0])]}.dtype();
      TN_TRY(out, Outputs(&here).get(0, dtype, shape));
      return backend::run_program(exe.ctx_, *next.program, in, out);
    }
    Node node{exe.graph_.get(), next.node};
    Status answer = backend::call_row(exe.ctx_, node, next.row, in, &here, cancel);
    bool untouched = std::find(asked.begin(), asked.end(), true) == asked.end();
    if (answer.code() == TN_UNIMPLEMENTED && next.row->decompose && untouched)
      return run_pieces(next, in, here, cancel);
    TN_CHECK(std::move(answer));
    return check_made(next);
  }

  // Success without an output would leave garbage for whoever reads it.
  Status check_made(const Step& done) const {
    for (size_t i = 0; i < done.out.size(); ++i) {
      if (asked[i] || !exe.is_read_[static_cast<size_t>(done.out[i])]) continue;
      Value value{exe.graph_.get(), exe.values_[static_cast<size_t>(done.out[i])]};
      return {TN_INTERNAL, cat("output ", value.name(), ": the kernel did not make it")};
    }
    return {};
  }

  Status hand_on() const {
    for (auto [output, value] : exe.handed_on_) {
      const DLTensor& from = tensors[static_cast<size_t>(value)];
      DLTensor to{};
      TN_CHECK(outputs->get(outputs->ctx, output, &from, &to));
      const uint64_t bytes = bytes_of(dtype_of(from), element_count(from));
      if (bytes > 0) std::memcpy(data_of<char>(to), data_of<char>(from), bytes);
    }
    return {};
  }

  struct Renamed {
    const tn_outputs* to;
    const std::vector<size_t>* out;
    static tn_status* get(void* self, uint64_t i, const DLTensor* proto, DLTensor* out) {
      auto& renamed = *static_cast<Renamed*>(self);
      return renamed.to->get(renamed.to->ctx, (*renamed.out)[i], proto, out);
    }
  };

  Status run_pieces(const Step& next,
                    const std::vector<const DLTensor*>& in,
                    const tn_outputs& here,
                    const tn_cancel* cancel) {
    TN_TRY(pieces, exe.pieces_of(next));
    std::vector<const DLTensor*> given;
    for (size_t i : pieces->in)
      given.push_back(in[i]);
    Renamed renamed{&here, &pieces->out};
    tn_outputs to{&renamed, Renamed::get};
    tn_exec exec{};
    exec.struct_size = sizeof exec;
    exec.cancel = cancel;
    return pieces->exe->run(given.data(), given.size(), &to, &exec);
  }
};

Status Executable::run(const DLTensor* const* in,
                       uint64_t n_in,
                       const tn_outputs* outputs,
                       const tn_exec* exec) {
  if (n_in != inputs_.size()) {
    return invalid(cat("expected ", inputs_.size(), " inputs, got ", n_in));
  }
  Run run(*this, outputs);
  for (size_t i = 0; i < n_in; ++i)
    run.tensors[static_cast<size_t>(inputs_[i])] = *in[i];
  for (size_t v = 0; v < values_.size(); ++v) {
    Value value{graph_.get(), values_[v]};
    if (value.is_constant()) run.tensors[v] = value.constant().dl();
  }
  bool profiling = (exec->flags & TN_EXEC_PROFILE) != 0;
  std::string layers;
  Cancel cancel(exec->cancel);
  for (const Step& step : steps_) {
    TN_CHECK(cancel.check());
    Node node{graph_.get(), step.node};
    uint64_t start = profiling ? backend::now_ns() : 0;
    services.trace->begin(ctx_, str("node"), str(node.name()));
    // A row may be anybody's: what it throws is its node's failure.
    Status done(guard([&] { return run.run_step(step, exec->cancel); }));
    services.trace->end(ctx_);
    TN_CHECK(std::move(done).in(cat("node ", node.name(), " (", node.domain(),
                                    node.domain().empty() ? "" : ".", node.type(), ")")));
    if (profiling) {
      uint64_t ns = backend::now_ns() - start;
      backend::Layer layer{node.name(), node.type(), step.program ? "expr" : "ref"};
      TN_CHECK(backend::cost_of(node, &layer.flops, &layer.bytes));
      layers += cat(layers.empty() ? "" : ", ", backend::layer_text(layer, ns));
    }
    for (int v : step.last_used)
      run.owned[static_cast<size_t>(v)] = Tensor();
  }
  TN_CHECK(run.hand_on());
  if (profiling) {
    std::lock_guard lock(profile_lock_);
    profile_ = "[" + layers + "]";
  }
  return {};
}

std::string Executable::profile() const {
  std::lock_guard lock(profile_lock_);
  return profile_;
}

std::string Executable::describe() const {
  return cat("{\"steps\":", steps_.size(), "}");
}

}  // namespace tenon::reference
