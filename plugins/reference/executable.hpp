// SPDX-License-Identifier: Apache-2.0
#pragma once
// A part as the reference backend runs it: its nodes in order, each by its row's ref or expression;
// shapes come from the data, memory is freed after the last use.

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tenon/sdk/backend/rows.hpp"

namespace tenon::reference {

class Executable {
 public:
  ~Executable();
  // Nodes without ref and expression are expanded by their rows' decompose, in a clone.
  // max_value_bytes: a node that would make a larger value fails; 0: no limit.
  static Result<std::unique_ptr<Executable>> compile(tn_ctx* ctx,
                                                     const tn_graph* part,
                                                     int64_t max_value_bytes);

  Status run(const DLTensor* const* in,
             uint64_t n_in,
             const tn_outputs* outputs,
             const tn_exec* exec);
  std::string describe() const;  // JSON
  std::string profile() const;   // JSON: the layers of the last profiled run

 private:
  struct Pieces;
  struct Step {
    tn_node_id node;
    const tn_op* row;
    const tn_expr_program* program = nullptr;  // NULL: the row's ref
    std::vector<int> in, out;                  // values; -1: absent
    std::vector<int> last_used;                // values that are not needed after this step
    // Where sizes of inputs come from data: the node alone, to infer it again with what came.
    OwnedGraph open = {};
    std::vector<int> open_in = {};  // by input of `open`: the value
  };
  // What inference says of a value; a kernel that makes something else is an error that names it.
  struct Expected {
    uint32_t dtype;
    bool has_rank;
    std::vector<int64_t> dims;  // negative: known late
  };
  struct Run;

  Executable(tn_ctx* ctx, OwnedGraph graph, int64_t max_value_bytes);
  Status add_steps();
  Status keep_open(Node node, Step& step);
  int value_index(tn_value_id id);
  void find_last_uses();
  void note_types();
  Status check_size(const DLTensor& proto) const;
  Status check_inferred(int value, const DLTensor& proto) const;
  Result<Pieces*> pieces_of(const Step& step) const;

  tn_ctx* ctx_;
  OwnedGraph graph_;
  int64_t max_value_bytes_;
  std::vector<Step> steps_;
  std::unordered_map<tn_value_id, int> index_;
  std::vector<tn_value_id> values_;
  std::vector<Expected> expected_;  // by value
  std::vector<bool> is_read_;       // by value: by a step, or it is an output
  mutable std::mutex pieces_lock_;
  mutable std::unordered_map<tn_node_id, std::unique_ptr<Pieces>> pieces_;
  std::vector<int> inputs_;
  std::vector<int> output_of_;  // by value: the part's output, or -1
  // Outputs, with their values, that no step makes by itself: a composite node may hand an input or
  // a constant on, or one value as two results.
  std::vector<std::pair<uint64_t, int>> handed_on_;
  mutable std::mutex profile_lock_;
  std::string profile_ = "[]";
};

}  // namespace tenon::reference
