// SPDX-License-Identifier: Apache-2.0
#include "scalarized_group.hpp"

#include <algorithm>
#include <string_view>

#include "tenon/sdk/backend/program.hpp"

#include "cpu.hpp"
#include "element_places.hpp"
#include "epilogue.hpp"
#include "graph/reductions.hpp"
#include "kernels/pointwise.h"
#include "pointwise_group.hpp"

namespace tenon::onednn {
namespace {

constexpr int64_t kMostElements = 9;   // of a value: a matrix of 3 x 3
constexpr int kReach = 512;            // nodes looked at behind the first
constexpr size_t kMostScalars = 1024;  // of the program before another node is added
constexpr size_t kMostInputs = 48, kMostResults = 32;

constexpr std::string_view kViews[] = {"Slice", "Transpose", "Squeeze", "Unsqueeze"};

class ScalarizedGroup {
 public:
  ScalarizedGroup(Lowering& lowering, int first) : lowering_(lowering), graph_(lowering.graph()) {
    if (!add(first)) return;
    const int end = std::min(static_cast<int>(graph_.nodes.size()), first + kReach);
    for (int i = first + 1; i < end && program_.size() < kMostScalars; ++i)
      if (!is_inside(i) && !lowering_.is_done(i) && reads_group(i)) add(i);
    collect_results();
  }

  // False where the nodes are as fast by themselves, or there is no machine code for the whole.
  bool plan();
  void lower();

 private:
  using Elements = std::vector<uint32_t>;  // of a value in row-major order: nodes of the program

  bool is_inside(int node) const {
    return std::find(nodes_.begin(), nodes_.end(), node) != nodes_.end();
  }
  bool reads_group(int index) const {
    const std::vector<int>& read = graph_.nodes[index].inputs;
    return std::any_of(read.begin(), read.end(), [&](int input) {
      return input != kNone && graph_.values[input].producer != kNone &&
             is_inside(graph_.values[input].producer);
    });
  }
  bool is_small(int value) const {
    const Value& v = graph_.values[value];
    const bool is_exact = v.type == ElementType::kF32 || v.type == ElementType::kBool;
    return is_exact && v.count() > 0 && v.count() <= kMostElements;
  }
  const Dims& dims_of(int value) const { return graph_.values[value].dims; }

  bool add(int index);
  bool is_addable(const Node& node) const;
  bool make(const Node& node, Elements* made);
  bool compute(const Node& node, Elements* made);
  bool move(const Node& node, size_t output, Elements* made);
  bool concat(const Node& node, Elements* made);
  bool reduce(const Node& node, Elements* made);
  bool multiply(const Node& node, Elements* made);
  const Elements* elements_of(int value);
  void read_elements(int value);
  void collect_results();
  double filler_of(const Node& node) const;
  uint32_t joined(kernels::Reduction kind, uint32_t sum, uint32_t term);

  Lowering& lowering_;
  const Graph& graph_;
  std::vector<int> nodes_;
  std::map<int, Elements> elements_;
  std::vector<Place> inputs_;
  std::vector<kernels::PointwiseEdge> sources_;
  std::vector<int> results_;
  std::vector<kernels::PointwiseEdge> targets_;
  std::shared_ptr<kernels::PointwisePlan> plan_ = std::make_shared<kernels::PointwisePlan>();
  backend::ProgramBuilder program_{true};
  int n_pointwise_ = 0;
  int n_saved_ = 0;  // steps between them that nothing is left of
};

// Of a value that is at hand, or that a node makes which can be part of the group.
const ScalarizedGroup::Elements* ScalarizedGroup::elements_of(int value) {
  if (value == kNone || !is_small(value)) return nullptr;
  auto found = elements_.find(value);
  if (found != elements_.end()) return &found->second;
  const int producer = graph_.values[value].producer;
  if (ensure_available(lowering_, value, kViews)) {
    if (lowering_.view(value).is_quantized()) return nullptr;
    read_elements(value);
  } else if (producer == kNone || lowering_.is_done(producer) || !add(producer)) {
    return nullptr;
  }
  return &elements_.at(value);
}

void ScalarizedGroup::read_elements(int value) {
  const Value& v = graph_.values[value];
  Elements& made = elements_[value];
  if (v.data != nullptr && v.type == ElementType::kF32) {
    for (int64_t i = 0; i < v.count(); ++i)
      made.push_back(program_.number(double{static_cast<const float*>(v.data)[i]}));
    return;
  }
  View view = lowering_.view(value);
  for (size_t place : strided_places(view.dims, view.strides, view.offset)) {
    view.offset = static_cast<int64_t>(place);
    made.push_back(program_.input(static_cast<uint32_t>(inputs_.size())));
    inputs_.push_back(place_of(view));
    sources_.push_back({view.type, {}, {0}});
  }
}

bool ScalarizedGroup::is_addable(const Node& node) const {
  return !node.outputs.empty() &&
         std::all_of(node.outputs.begin(), node.outputs.end(), [&](int output) {
           return output != kNone && is_small(output) && !lowering_.is_state_result(output);
         });
}

bool ScalarizedGroup::add(int index) {
  const Node& node = graph_.nodes[index];
  if (!is_addable(node)) return false;
  std::vector<Elements> made(node.outputs.size());
  if (node.op == "Split") {
    for (size_t i = 0; i < made.size(); ++i)
      if (!move(node, i, &made[i])) return false;
  } else if (!make(node, &made[0])) {
    return false;
  }
  for (size_t i = 0; i < made.size(); ++i)
    elements_[node.outputs[i]] = std::move(made[i]);
  nodes_.push_back(index);
  return true;
}

bool ScalarizedGroup::make(const Node& node, Elements* made) {
  if (is_pointwise(graph_, node)) return compute(node, made);
  if (node.op == "Concat") return concat(node, made);
  if (node.op == "MatMul") return multiply(node, made);
  if (kernel_reduction(node)) return reduce(node, made);
  return move(node, 0, made);
}

bool ScalarizedGroup::compute(const Node& node, Elements* made) {
  const Dims& dims = dims_of(node.outputs[0]);
  std::vector<Elements> operands;
  for (int input : node.inputs) {
    const Elements* found = elements_of(input);
    if (found == nullptr) return false;
    Elements& operand = operands.emplace_back();
    for (size_t place : broadcast_places(dims_of(input), dims))
      operand.push_back((*found)[place]);
  }
  for (size_t i = 0; i < static_cast<size_t>(element_count(dims)); ++i) {
    auto operand = [&](uint32_t at) { return operands[at][i]; };
    made->push_back(append_pointwise(program_, graph_, node, operand));
  }
  ++n_pointwise_;
  return true;
}

bool ScalarizedGroup::move(const Node& node, size_t output, Elements* made) {
  const std::optional<Places> places = moved_places(lowering_, node, output);
  const Elements* from = places ? elements_of(node.inputs[0]) : nullptr;
  if (from == nullptr) return false;
  const bool is_pad = node.op == "Pad";
  for (size_t place : *places) {
    if (is_pad && place == kFiller)
      made->push_back(program_.number(filler_of(node)));
    else if (place < from->size())
      made->push_back((*from)[place]);
    else
      return false;
  }
  n_saved_ += is_pad || node.op == "Expand" ? 1 : 0;
  return true;
}

double ScalarizedGroup::filler_of(const Node& node) const {
  return node.input(2) == kNone ? 0 : double{lowering_.constant_floats(node.inputs[2])[0]};
}

bool ScalarizedGroup::concat(const Node& node, Elements* made) {
  const Dims& dims = dims_of(node.outputs[0]);
  const int64_t axis = positive_axis(node.integer("axis", 0), dims.size());
  int64_t rows = 1;
  for (size_t i = 0; i < static_cast<size_t>(axis); ++i)
    rows *= dims[i];
  for (int input : node.inputs)
    if (elements_of(input) == nullptr) return false;
  for (int64_t row = 0; row < rows; ++row) {
    for (int input : node.inputs) {
      const Elements& from = elements_.at(input);
      const int64_t piece = static_cast<int64_t>(from.size()) / rows;
      made->insert(made->end(), from.begin() + row * piece, from.begin() + (row + 1) * piece);
    }
  }
  ++n_saved_;
  return true;
}

uint32_t ScalarizedGroup::joined(kernels::Reduction kind, uint32_t sum, uint32_t term) {
  switch (kind) {
    case kernels::Reduction::kMax:
      return program_.emit(TN_EXPR_MAX, sum, term);
    case kernels::Reduction::kMin:
      return program_.emit(TN_EXPR_MIN, sum, term);
    case kernels::Reduction::kProduct:
      return program_.emit(TN_EXPR_MUL, sum, term);
    default:
      return program_.emit(TN_EXPR_ADD, sum, term);
  }
}

bool ScalarizedGroup::reduce(const Node& node, Elements* made) {
  constexpr uint32_t kNothing = ~uint32_t{0};
  const kernels::Reduction kind = *kernel_reduction(node);
  const bool is_l1 = kind == kernels::Reduction::kL1, is_l2 = kind == kernels::Reduction::kL2;
  if (node.input(1) != kNone && !lowering_.is_constant(node.inputs[1])) return false;
  const Elements* from = elements_of(node.inputs[0]);
  if (from == nullptr || is_l1) return false;
  Dims kept = dims_of(node.inputs[0]);
  for (int64_t axis : reduced_axes(graph_, node))
    kept[static_cast<size_t>(axis)] = 1;
  made->assign(static_cast<size_t>(element_count(kept)), kNothing);
  const Places places = broadcast_places(kept, dims_of(node.inputs[0]));
  for (size_t i = 0; i < from->size(); ++i) {
    const uint32_t x = (*from)[i];
    uint32_t& sum = (*made)[places[i]];
    const bool is_squared = is_l2 || kind == kernels::Reduction::kSumSquare;
    const uint32_t term = is_squared ? program_.emit(TN_EXPR_MUL, x, x) : x;
    sum = sum == kNothing ? term : joined(kind, sum, term);
  }
  const double share = static_cast<double>(made->size()) / static_cast<double>(from->size());
  for (uint32_t& sum : *made) {
    if (is_l2) sum = program_.emit(TN_EXPR_SQRT, sum);
    if (kind == kernels::Reduction::kMean)
      sum = program_.emit(TN_EXPR_MUL, sum, program_.number(share));
  }
  ++n_saved_;
  return true;
}

// Of two matrices.
bool ScalarizedGroup::multiply(const Node& node, Elements* made) {
  const Dims &a_dims = dims_of(node.inputs[0]), &b_dims = dims_of(node.inputs[1]);
  if (a_dims.size() != 2 || b_dims.size() != 2) return false;
  const Elements* a = elements_of(node.inputs[0]);
  const Elements* b = elements_of(node.inputs[1]);
  if (a == nullptr || b == nullptr) return false;
  const auto m = static_cast<size_t>(a_dims[0]), k = static_cast<size_t>(a_dims[1]),
             n = static_cast<size_t>(b_dims[1]);
  for (size_t i = 0; i < m * n; ++i) {
    auto product = [&](size_t at) {
      return program_.emit(TN_EXPR_MUL, (*a)[i / n * k + at], (*b)[at * n + i % n]);
    };
    uint32_t sum = product(0);
    for (size_t at = 1; at < k; ++at)
      sum = program_.emit(TN_EXPR_ADD, sum, product(at));
    made->push_back(sum);
  }
  ++n_saved_;
  return true;
}

void ScalarizedGroup::collect_results() {
  for (int index : nodes_) {
    for (int value : graph_.nodes[index].outputs) {
      const Value& v = graph_.values[value];
      const bool leaves =
          v.n_outputs > 0 || v.users.empty() ||
          std::any_of(v.users.begin(), v.users.end(), [&](int user) { return !is_inside(user); });
      if (leaves) results_.push_back(value);
    }
  }
}

bool ScalarizedGroup::plan() {
  if (n_saved_ == 0 || n_pointwise_ < 2 || inputs_.size() > kMostInputs) return false;
  std::vector<uint32_t> scalars;
  for (int value : results_) {
    for (uint32_t scalar : elements_.at(value)) {
      scalars.push_back(scalar);
      targets_.push_back({graph_.values[value].type, {}, {1}});
    }
  }
  if (scalars.size() > kMostResults) return false;
  const int64_t dims[] = {1};
  const std::string why = plan_->make({.nodes = program_.nodes(),
                                       .results = scalars,
                                       .dims = dims,
                                       .inputs = sources_,
                                       .outputs = targets_,
                                       .level = best_level(),
                                       .code_store = lowering_.options().code_store});
  return why.empty() && plan_->interpreted_because().empty();
}

void ScalarizedGroup::lower() {
  for (int node : nodes_)
    lowering_.mark_done(node);
  Step step{.name = graph_.nodes[nodes_.front()].name + " and " +
                    std::to_string(nodes_.size() - 1) + " more",
            .kernel = "tenon:scalars (" + plan_->how() + ")",
            .flops = static_cast<double>(program_.size()),
            .places = inputs_,
            .always_succeeds = true};
  for (int value : results_) {
    const Value& v = graph_.values[value];
    View view{.type = v.type, .dims = v.dims, .strides = row_major_strides(v.dims)};
    view.buffer = lowering_.scratch(view.bytes());
    lowering_.set_view(value, view);
    for (int64_t left = view.count(); left > 0; --left, ++view.offset)
      step.places.push_back(place_of(view));
  }
  step.bytes = static_cast<double>(step.places.size() * sizeof(float));
  step.kernel_function = pointwise_function(plan_, sources_.size(), targets_.size());
  lowering_.add_step(std::move(step));
}

}  // namespace

std::function<void()> find_scalarized_group(Lowering& lowering, int first) {
  auto group = std::make_shared<ScalarizedGroup>(lowering, first);
  if (!group->plan()) return {};
  return [group] { group->lower(); };
}

}  // namespace tenon::onednn
