// SPDX-License-Identifier: Apache-2.0
#pragma once
// A model run piece by piece on all batches at once, each node once in all: up to one value, then
// on from there to the next. What later pieces read is kept between them, in a file, as it grows
// with the number of samples. It may be changed, so that they run on what a repair made of it.

#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tenon/sdk/edit.hpp"
#include "tenon/sdk/feed.hpp"

#include "tensor_file.hpp"

namespace tenon::quantizer {

class Stages {
 public:
  // Keeps all inputs of the feed's batches. graph: outlives this and is not edited meanwhile.
  static Result<Stages> make(tn_ctx* ctx,
                             Graph graph,
                             Feed* feed,
                             const std::vector<std::string>& backends);
  // Runs what this value needs and has not been run yet.
  Status reach(Value value, const Cancel& cancel);
  uint64_t batches() const { return batches_; }
  // What a reached value is in batch b, and that it is something else from now on. A value is
  // there until the next reach() that does not need it.
  Result<Tensor> read(Value value, uint64_t b) const {
    return file_.read(ctx_, live_.at(value.id)[b]);
  }
  Status write(Value value, uint64_t b, const Tensor& numbers) {
    return file_.write(live_.at(value.id)[b], numbers.dl());
  }
  std::span<const int64_t> shape(Value value, uint64_t b) const {
    return live_.at(value.id)[b].dims;
  }
  // The inputs of the model in batch b.
  Result<std::vector<Tensor>> read_inputs(uint64_t b) const;

 private:
  struct Piece {
    std::vector<Node> nodes;     // in order
    std::vector<Value> read;     // live values that they read
    std::vector<Value> results;  // what they make and others read
  };
  Piece piece_for(Value value) const;
  Result<OwnedGraph> graph_of(const Piece& piece) const;
  Status run(const Piece& piece, const Cancel& cancel);
  Status run_batch(const Piece& piece, Plan& plan, uint64_t b, const Cancel& cancel);
  void forget(Value reached);

  tn_ctx* ctx_ = nullptr;
  Graph graph_;
  std::vector<std::string> backends_;
  uint64_t batches_ = 0;
  std::vector<Value> inputs_;  // of the model, as the feed gives them
  std::unordered_set<tn_node_id> done_;
  std::unordered_map<tn_value_id, std::vector<TensorFile::Place>> live_;  // one for each batch
  TensorFile file_;
};

}  // namespace tenon::quantizer
