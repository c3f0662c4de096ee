// SPDX-License-Identifier: Apache-2.0
#pragma once
// From an imported graph to a plan: groups of pointwise nodes become one generated kernel each,
// products take what follows them into their epilogue, every other node goes to its handler.

#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "tenon/sdk/backend/groups.hpp"

#include "graph.hpp"
#include "plan.hpp"

namespace tenon::cuda {

struct Target {
  tn_ctx* ctx = nullptr;  // for constants that the plan needs; NULL: none are made
  int architecture = 90;  // 90 for compute capability 9.0
  // Why a product or convolution of this form cannot run; empty: it can. In the form, a buffer only
  // says that there is one. None: every form is taken for one that runs.
  std::function<std::string(const Product&)> why_no_product = {};
  std::function<std::string(const Convolution&)> why_no_convolution = {};
};

// Empty: the backend takes the node. Else why not, for the report.
std::string why_not(const Imported& graph, int node, const Target& target = {});
Result<Plan> lower(const Imported& graph, const Target& target = {});

// Steps of one generated kernel that need nothing of each other become one.
void join_launches(Plan& plan);

// Of dims as n, c and spatial axes, with c innermost in memory.
Dims channels_last_strides(const Dims& dims);

class Lowering {
 public:
  Lowering(const Imported& graph, const Target& target);
  Result<Plan> run();

  const Imported& graph() const { return graph_; }
  const ValueInfo& value(int i) const { return graph_.value(i); }
  // The buffer that holds a value, row-major; made on the first call. A value that lies otherwise
  // is copied.
  int buffer(int value);
  // The same with channels last: n, spatial axes, c. Only of values of three axes and more.
  int channels_last(int value);
  // For the step that makes the value with channels last.
  int new_channels_last(int value);
  bool lies_channels_last(int value) const;
  // As it lies, with the strides of its axes.
  struct Placed {
    int buffer;
    Dims strides;
  };
  Placed placed(int value);
  // The value lies where another does, from its first byte on.
  void alias(int value, int of);
  // What makes the value may be written over: nobody else reads it, and it is no other's view.
  bool is_spare(int value) const;
  int scratch(std::string name, uint64_t bytes);
  // A number from 1 on that a kernel writes when it meets bad input.
  uint32_t fault(std::string meaning);

  // `arguments` is the kernel's struct; the members that patches point to are filled at run time.
  template <class Arguments>
  Launch launch(std::string symbol, const Arguments& arguments) const {
    Launch out;
    out.symbol = std::move(symbol);
    out.arguments.resize(sizeof arguments);
    std::memcpy(out.arguments.data(), &arguments, sizeof arguments);
    return out;
  }
  void add_move(const std::string& name, const std::string& op, int from, int to, uint64_t bytes);
  void add(Step step) { plan_.steps.push_back(std::move(step)); }
  // Reads and writes from the patches; all but `n_reads` first ones are written.
  void add_launch(const NodeInfo& node, Launch launch, size_t n_reads, double flops);

  // Copies elements between strided places; dims, strides and offsets in elements.
  struct Strided {
    int buffer;
    Dims strides;
    int64_t offset = 0;
  };
  void add_strided_copy(const NodeInfo& node, uint32_t dtype, Dims dims, Strided from, Strided to);

  // What follows a product or convolution and runs in it: nodes that were taken in, and the value
  // that holds the result after them.
  struct Epilogue {
    int bias = kNone;
    int residual = kNone;  // of the result's shape, added as well
    Activation activation = Activation::kIdentity;
    int out = kNone;
  };
  Epilogue epilogue_of(const NodeInfo& node) const;
  static Epilogue no_epilogue(const NodeInfo& node) {
    return {kNone, kNone, Activation::kIdentity, node.outputs[0]};
  }

 private:
  // last: with channels last; a value may lie in both ways.
  struct Layouts {
    int plain = kNone, last = kNone;
    bool is_plain_made = false;  // although there is one with channels last
  };
  static bool has_two_layouts(const Dims& dims);
  int plain_buffer(int value);
  int constant(const ValueInfo& info, bool channels_last);
  void add_layout_copy(int value, int from, int to, bool to_channels_last);
  bool is_better_channels_last(int result, const std::vector<int>& inputs) const;
  void place_boundary();
  void find_epilogues();
  bool has_plan_with(const NodeInfo& node, const Epilogue& epilogue) const;
  void find_groups();
  void lower_group(int root);
  void finish_outputs();
  void keep_states();
  static Step move_step(
      const std::string& name, const std::string& op, int from, int to, uint64_t bytes);
  bool updates_in_place(int from, int to) const;
  void rename_buffer(int from, int to);

  const Imported& graph_;
  const Target& target_;
  Plan plan_;
  std::vector<Layouts> layouts_;  // by value
  backend::Groups groups_;
  std::vector<bool> is_absorbed_;      // by node: in a product's epilogue
  std::map<int, Epilogue> epilogues_;  // by node
};

}  // namespace tenon::cuda
