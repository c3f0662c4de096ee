// SPDX-License-Identifier: Apache-2.0
// tenon.CtcLoss and tenon.CtcLossGrad (scores, targets, lengths), by one kernel.

#include "kernels/ctc.h"

#include <array>
#include <cstdio>

#include "dense.hpp"

namespace tenon::onednn {
namespace {

thread_local std::array<char, 96> wrong_;

// Why the data do not fit, or nullptr.
const char* why_wrong(const kernels::Ctc& args) {
  const auto say = [](const char* format, int64_t a, int64_t b, int64_t c) {
    std::snprintf(wrong_.data(), wrong_.size(), format, static_cast<long long>(a),
                  static_cast<long long>(b), static_cast<long long>(c));
    return wrong_.data();
  };
  for (int64_t i = 0; args.lengths && i < args.samples; ++i)
    if (args.lengths[i] < 0 || args.lengths[i] > args.frames)
      return say("lengths: expected 0..%lld, got %lld", args.frames, args.lengths[i], 0);
  for (int64_t i = 0; i < args.samples * args.longest; ++i)
    if (args.targets[i] >= args.classes || args.targets[i] == args.blank)
      return say("targets: expected 0..%lld without %lld, the blank, got %lld", args.classes - 1,
                 args.blank, args.targets[i]);
  return nullptr;
}

}  // namespace

std::string refuse_ctc(const Graph& graph, const Node& node) {
  const Value& scores = graph.values[node.inputs[0]];
  if (scores.type != ElementType::kF32) return "only f32";
  for (size_t i = 1; i < node.inputs.size(); ++i)
    if (node.inputs[i] != kNone && graph.values[node.inputs[i]].type != ElementType::kI64)
      return "only targets and lengths of i64";
  const int64_t blank = node.integer("blank", 0);
  return blank >= 0 && blank < scores.dims[2] ? "" : "a blank that is no class";
}

void lower_ctc(Lowering& lowering, int index) {
  const Graph& graph = lowering.graph();
  const Node& node = graph.nodes[index];
  const Dims& scores = graph.values[node.inputs[0]].dims;
  kernels::Ctc args{.samples = scores[0], .frames = scores[1], .classes = scores[2]};
  args.longest = graph.values[node.inputs[1]].dims[1];
  args.blank = node.integer("blank", 0);
  args.zero_infinity = node.integer("zero_infinity", 0) != 0;
  const bool is_gradient = node.op == "tenon.CtcLossGrad";
  lower_dense(lowering, index, "tenon:ctc",
              [args, is_gradient, n_inputs = node.inputs.size()](
                  const kernels::Context& context, void* const* pointers) -> const char* {
                kernels::Ctc call = args;
                call.scores = static_cast<const float*>(pointers[0]);
                call.targets = static_cast<const int64_t*>(pointers[1]);
                if (n_inputs > 2) call.lengths = static_cast<const int64_t*>(pointers[2]);
                auto* out = static_cast<float*>(pointers[n_inputs]);
                (is_gradient ? call.gradients : call.losses) = out;
                if (const char* why = why_wrong(call)) return why;
                kernels::ctc(context, call);
                return nullptr;
              });
}

}  // namespace tenon::onednn
