// SPDX-License-Identifier: Apache-2.0
#include "whitening.hpp"

#include <Eigen/Cholesky>
#include <algorithm>

#include "tenon/sdk/feed.hpp"
#include "tenon/sdk/number.hpp"

namespace tenon::decomposer {
namespace {

constexpr double kRidge = 1e-4;
constexpr int64_t kPlaces = 4096;  // of one batch

struct Seen {  // an activation along its channels
  Value value;
  size_t axis = 0;
  Matrix sum;  // of x xT
  double rows = 0;
};

// Adds the outer products of what stands along the axis, at places spread over the tensor.
void add(const DLTensor& tensor, Seen* seen) {
  const auto [outer, channels, inner] =
      AxisSplit(shape_of(tensor), static_cast<int64_t>(seen->axis));
  int64_t places = outer * inner;
  int64_t taken = std::min(places, kPlaces);
  if (seen->sum.size() == 0) seen->sum = Matrix::Zero(channels, channels);
  Matrix x(taken, channels);
  with_numbers(tensor, [&, channels = channels, inner = inner](const auto* data) {
    for (int64_t r = 0; r < taken; ++r) {
      int64_t place = r * places / taken;
      const auto* first = data + place / inner * channels * inner + place % inner;
      for (int64_t c = 0; c < channels; ++c)
        x(r, c) = static_cast<double>(first[c * inner]);
    }
  });
  seen->sum.noalias() += x.transpose() * x;
  seen->rows += static_cast<double>(taken);
}

}  // namespace

Whitening Whitening::of(Matrix moment) {
  double mean = moment.trace() / static_cast<double>(moment.rows());
  moment.diagonal().array() += kRidge * (mean > 0 ? mean : 1);
  Whitening out;
  out.root_ = Eigen::LLT<Matrix>(moment).matrixL();
  return out;
}

void Whitening::whiten(Kernel* weight) const {
  for (int64_t o = 0; o < weight->n_out; ++o) {
    Eigen::Map<Matrix> one(weight->numbers.data() + o * weight->n_in * weight->window, weight->n_in,
                           weight->window);
    one = (root_.transpose() * one).eval();
  }
}

void Whitening::undo(Step* step) const {
  const int64_t n_in = step->dims[1];
  const int64_t window =
      static_cast<int64_t>(step->numbers.size()) / std::max<int64_t>(step->dims[0] * n_in, 1);
  for (int64_t r = 0; r < step->dims[0]; ++r) {
    Eigen::Map<Matrix> one(step->numbers.data() + r * n_in * window, n_in, window);
    Matrix solved = one;
    root_.transpose().triangularView<Eigen::Upper>().solveInPlace(solved);
    one = solved;
  }
}

Result<std::map<tn_node_id, Whitening>> whitenings_of(tn_ctx* ctx,
                                                      Graph graph,
                                                      const std::vector<Node>& nodes,
                                                      const FeedOptions& inputs,
                                                      const std::vector<std::string>& backends,
                                                      const Cancel& cancel) {
  std::vector<Seen> seen;
  std::map<tn_node_id, size_t> of_node;
  for (Node node : nodes) {
    const tn_quant_product& product = node.columns()->products[0];
    auto act = static_cast<uint64_t>(product.act);
    std::optional<LayerForm> form = layer_form(node, act, static_cast<uint64_t>(product.weight));
    Value value = node.input(act);
    if (!form || form->is_stack || !is_float(value.dtype()) || form->groups > 1) continue;
    auto axis = static_cast<size_t>(form->act_in);
    auto at = std::find_if(seen.begin(), seen.end(),
                           [&](const Seen& one) { return one.value == value && one.axis == axis; });
    of_node[node.id] = static_cast<size_t>(at - seen.begin());
    if (at == seen.end()) seen.push_back({value, axis, {}, 0});
  }
  TN_TRY(feed, Feed::make(ctx, inputs.data, graph, inputs.plan("decomposing")));
  std::vector<Value> taps;
  for (const Seen& one : seen)
    taps.push_back(one.value);
  TN_TRY(plan, Plan::on_first(ctx, graph, taps, backends));
  auto each = [&](const Feed::Batch&) -> Status {
    for (size_t i = 0; i < seen.size(); ++i)
      add(plan.tap(i).dl(), &seen[i]);
    return {};
  };
  TN_CHECK(run_batches(plan, feed, cancel, nullptr, each));
  std::map<tn_node_id, Whitening> out;
  for (const auto& [node, number] : of_node) {
    const Seen& one = seen[number];
    if (!one.sum.allFinite())
      return invalid(cat("option data: the layers that read ", one.value.name(),
                         " get numbers that are not finite"));
    if (one.rows > 0) out.emplace(node, Whitening::of(one.sum / one.rows));
  }
  return out;
}

}  // namespace tenon::decomposer
