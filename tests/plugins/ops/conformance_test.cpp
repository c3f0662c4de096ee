// SPDX-License-Identifier: Apache-2.0
// Every operator row, from its own sample: it runs on the backend "reference"; the types that were
// inferred are those produced; axes agree with the shape column; decompose computes what ref does.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "tenon/role/op.h"

#include "plugins/all_rows.hpp"
#include "plugins/plugin_session.hpp"

namespace tenon::test {
namespace {

constexpr uint64_t kSeeds = 12;

class Conformance : public PluginTest {
 protected:
  void SetUp() override {
    PluginTest::SetUp();
    ASSERT_EQ(text_of(load_all_rows(session_)), "");
    for (uint64_t i = 0; i < services.op->count(ctx_); ++i)
      rows_.push_back(services.op->at(ctx_, i));
    ASSERT_GT(rows_.size(), 100u);
  }

  struct Sampled {
    OwnedGraph graph;
    tn_node_id node = 0;
  };
  // A graph of one sample, with the node's outputs as its own.
  Result<Sampled> sample(const tn_op* row, uint64_t seed) {
    tn_graph* raw = nullptr;
    TN_CHECK(services.graph->create(ctx_, &raw));
    Sampled out{OwnedGraph::take(raw)};
    TN_TRY(edit, Edit::begin(raw));
    TN_CHECK(row->sample(row->self, edit.raw, seed, &out.node));
    std::vector<Value> outputs = edit.node(out.node).outputs();
    for (size_t i = 0; i < outputs.size(); ++i)
      TN_CHECK(edit.output("y" + std::to_string(i), outputs[i]));
    TN_CHECK(edit.commit());
    return Result<Sampled>(std::move(out));
  }

  // Random numbers of the type in [-2, 2].
  Result<Tensor> random_tensor(const Type& type, std::mt19937& random) {
    TN_TRY(tensor, Tensor::zeros(ctx_, type.dtype, type.dims));
    std::uniform_real_distribution<double> number(-2, 2);
    for (int64_t i = 0; i < type.elements(); ++i) {
      double x = number(random);
      switch (type.dtype) {
        case TN_F32:
          tensor.data<float>()[i] = static_cast<float>(x);
          break;
        case TN_BOOL:
          tensor.data<uint8_t>()[i] = x > 0;
          break;
        case TN_I8:
        case TN_U8:
          tensor.data<int8_t>()[i] = static_cast<int8_t>(std::lround(std::fabs(x)));
          break;
        case TN_I32:
        case TN_U32:
          tensor.data<int32_t>()[i] = static_cast<int32_t>(std::lround(std::fabs(x)));
          break;
        case TN_I64:
          tensor.data<int64_t>()[i] = std::lround(x);
          break;
        default:
          return unsupported(cat("sample's input of ", dtype_name(type.dtype)));
      }
    }
    return Result<Tensor>(std::move(tensor));
  }

  Status run(const tn_graph* graph, uint32_t seed, Collected& results) {
    tn_plan* plan = nullptr;
    TN_CHECK(tenon_compile(session_, graph, str(R"({"backend": "reference"})"), &plan));
    std::mt19937 random(seed);
    std::vector<Tensor> inputs;
    std::vector<DLTensor> views;
    for (Value input : Graph{graph}.inputs()) {
      TN_TRY(tensor, random_tensor(input.type(), random));
      inputs.push_back(tensor);
    }
    for (const Tensor& tensor : inputs)
      views.push_back(tensor.dl());
    std::vector<const DLTensor*> pointers;
    for (const DLTensor& view : views)
      pointers.push_back(&view);
    Status status(tenon_run(plan, pointers.data(), pointers.size(), &results.raw, nullptr));
    services.eval->release(plan);
    return status;
  }

  static std::vector<int64_t> shape_in(const Tensor& tensor) {
    DLTensor raw = tensor.dl();
    return {raw.shape, raw.shape + raw.ndim};
  }

  std::vector<const tn_op*> rows_;
};

TEST_F(Conformance, EveryRowHasASample) {
  for (const tn_op* row : rows_)
    EXPECT_NE(row->sample, nullptr) << view(row->type);
}

TEST_F(Conformance, SamplesRunAndGiveTheTypesThatWereInferred) {
  for (const tn_op* row : rows_) {
    if (!row->sample) continue;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      SCOPED_TRACE(cat(view(row->type), " seed ", seed));
      auto sampled = sample(row, seed);
      ASSERT_TRUE(sampled.ok()) << text_of(sampled.status());
      const tn_graph* graph = sampled->graph.get();
      Collected results(ctx_);
      ASSERT_EQ(text_of(run(graph, 7, results)), "");
      std::vector<Value> outputs = Node{graph, sampled->node}.outputs();
      ASSERT_EQ(results.tensors.size(), outputs.size());
      for (size_t i = 0; i < outputs.size(); ++i) {
        Type type = outputs[i].type();
        std::vector<int64_t> made = shape_in(results.tensors[i]);
        if (type.kind != TN_KIND_TENSOR) {  // a packed list
          EXPECT_EQ(dtype_of(results.tensors[i].dl()), uint32_t{TN_U8});
          EXPECT_EQ(made.size(), 1u);
          continue;
        }
        ASSERT_TRUE(type.ranked);
        ASSERT_EQ(type.dims.size(), made.size());
        EXPECT_EQ(type.dtype, dtype_of(results.tensors[i].dl()));
        // A shape that depends on data may stay open; what is known must be so.
        for (size_t d = 0; d < made.size(); ++d) {
          bool stated = type.dims[d] >= 0 || !(row->traits & TN_OP_DATA_SHAPE);
          if (stated) {
            EXPECT_EQ(type.dims[d], made[d]) << "axis " << d;
          }
        }
      }
    }
  }
}

// The sizes of a row's labels, read off the types of one node: by label, as many sizes as its run
// is long. Says where a label has other sizes at another place.
class Labels {
 public:
  Labels(const tn_axes& axes, Node node) : axes_(axes), node_(node), lengths_(axes.n_labels, -1) {
    for (uint32_t i = 0; i < axes.n_labels; ++i) {
      const tn_axes_label& label = axes.labels[i];
      if (label.kind == TN_AXES_SINGLE) lengths_[i] = 1;
      if (label.kind != TN_AXES_RUN || label.bind_len == 0) continue;
      int64_t bound = node.attr_int({axes.text + label.bind_offset, label.bind_len});
      lengths_[i] = bound < 0 ? bound + static_cast<int64_t>(node.input(0).type().rank()) : bound;
    }
    for (uint32_t round = 0; round < axes.n_labels; ++round)
      each_operand([&](const tn_axes_operand& operand, const Type& type) { solve(operand, type); });
  }
  std::string disagreement() {
    std::map<uint32_t, std::vector<int64_t>> sizes;
    std::string wrong;
    each_operand([&](const tn_axes_operand& operand, const Type& type) {
      size_t dim = 0;
      for (uint32_t t = 0; t < operand.n_terms; ++t) {
        const tn_axes_term& term = axes_.terms[operand.first_term + t];
        if (term.flags & TN_AXES_TERM_BATCH) return;  // broadcasting has rules of its own
        bool same_axis = t > 0 && axes_.terms[operand.first_term + t - 1].dim == term.dim;
        if (same_axis) continue;
        auto n =
            term.label == TN_AXES_NO_LABEL ? size_t{1} : static_cast<size_t>(lengths_[term.label]);
        if (dim + n > type.rank()) {
          wrong = cat("column ", term.column, ": rank ", type.rank(), " is too small");
          return;
        }
        auto from = type.dims.begin() + static_cast<std::ptrdiff_t>(dim);
        std::vector<int64_t> here(from, from + static_cast<std::ptrdiff_t>(n));
        dim += n;
        if (term.label == TN_AXES_NO_LABEL ||
            term.flags & (TN_AXES_TERM_PRIMED | TN_AXES_TERM_GROUPED))
          continue;
        auto [known, added] = sizes.try_emplace(term.label, here);
        if (!added && known->second != here) wrong = cat("column ", term.column, ": other sizes");
      }
      if (dim != type.rank()) wrong = cat("an operand has rank ", type.rank(), ", its axes ", dim);
    });
    return wrong;
  }

 private:
  template <class Visit>
  void each_operand(const Visit& visit) {
    for (uint32_t i = 0; i < axes_.n_inputs + axes_.n_outputs; ++i) {
      Value value = i < axes_.n_inputs ? node_.input(i) : node_.output(i - axes_.n_inputs);
      if (value) visit(axes_.operands[i], value.type());
    }
  }
  // One run of an operand whose length is not known yet takes what the others leave.
  void solve(const tn_axes_operand& operand, const Type& type) {
    int64_t left = static_cast<int64_t>(type.rank()), open = -1;
    for (uint32_t t = 0; t < operand.n_terms; ++t) {
      const tn_axes_term& term = axes_.terms[operand.first_term + t];
      bool same_axis = t > 0 && axes_.terms[operand.first_term + t - 1].dim == term.dim;
      if (same_axis) continue;
      if (term.label == TN_AXES_NO_LABEL) {
        --left;
      } else if (lengths_[term.label] >= 0) {
        left -= lengths_[term.label];
      } else if (open >= 0) {
        return;
      } else {
        open = term.label;
      }
    }
    if (open >= 0 && left >= 0) lengths_[static_cast<size_t>(open)] = left;
  }

  const tn_axes& axes_;
  Node node_;
  std::vector<int64_t> lengths_;
};

TEST_F(Conformance, AxesAgreeWithTheShapeColumn) {
  int compared = 0;
  for (const tn_op* row : rows_) {
    if (!row->sample || !row->shape || row->axes.len == 0) continue;
    const tn_axes* axes = nullptr;
    ASSERT_EQ(text_of(Status(services.op->axes(row, &axes))), "") << view(row->type);
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      auto sampled = sample(row, seed);
      ASSERT_TRUE(sampled.ok()) << view(row->type) << text_of(sampled.status());
      Labels labels(*axes, {sampled->graph.get(), sampled->node});
      EXPECT_EQ(labels.disagreement(), "") << view(row->type) << " seed " << seed;
      ++compared;
    }
  }
  EXPECT_GT(compared, 10 * static_cast<int>(kSeeds));
}

double largest_difference(const Tensor& a, const Tensor& b) {
  double worst = 0;
  if (dtype_of(a.dl()) != TN_F32) {  // masks, places: equal or not
    auto bytes = static_cast<size_t>(element_count(a.dl()) * TN_DTYPE_BITS(dtype_of(a.dl())) / 8);
    return std::memcmp(a.data<char>(), b.data<char>(), bytes) == 0 ? 0 : HUGE_VAL;
  }
  for (int64_t i = 0, n = element_count(a.dl()); i < n; ++i) {
    double x = double{a.data<float>()[i]}, y = double{b.data<float>()[i]};
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    worst = std::max(worst, std::fabs(x - y) / std::max(1.0, std::fabs(y)));
  }
  return worst;
}

TEST_F(Conformance, DecomposeComputesWhatRefDoes) {
  int compared = 0;
  for (const tn_op* row : rows_) {
    if (!row->sample || !row->decompose || !row->ref) continue;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      SCOPED_TRACE(cat(view(row->type), " seed ", seed));
      auto sampled = sample(row, seed);
      ASSERT_TRUE(sampled.ok()) << text_of(sampled.status());
      Collected whole(ctx_), parts(ctx_);
      ASSERT_EQ(text_of(run(sampled->graph.get(), 7, whole)), "");
      auto edit = Edit::begin(sampled->graph.get());
      ASSERT_TRUE(edit.ok());
      ASSERT_EQ(text_of(Status(services.op->decompose(edit->raw, sampled->node))), "");
      ASSERT_EQ(text_of(edit->commit()), "");
      ASSERT_EQ(text_of(run(sampled->graph.get(), 7, parts)), "");
      for (size_t i = 0; i < whole.tensors.size(); ++i) {
        ASSERT_EQ(shape_in(parts.tensors[i]), shape_in(whole.tensors[i]));
        EXPECT_LT(largest_difference(parts.tensors[i], whole.tensors[i]), 1e-4);
      }
      ++compared;
    }
  }
  EXPECT_GE(compared, 4 * static_cast<int>(kSeeds));
}

}  // namespace
}  // namespace tenon::test
