// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes an assignment into the graph: QuantizeLinear and DequantizeLinear behind every value that
// is stored in 8 bits, weights as int8 constants behind a DequantizeLinear with the channels' axis.

#include <map>
#include <vector>

#include "tenon/sdk/edit.hpp"

#include "assignment.hpp"
#include "scale.hpp"
#include "trained_weight.hpp"

namespace tenon::quantizer {

struct InsertionPlan {
  bool is_signed = false;              // activations: symmetric int8, else uint8
  bool per_channel = true;             // weights
  int32_t largest = 127;               // of weights
  bool integer_bias = true;            // biases as int32 with the products' scale
  bool trained = false;                // weights stay float constants, behind nodes that round them
  bool learned = false;                // of trained ones: scales are parameters too
  ZerosKept zeros = ZerosKept::kNone;  // of trained ones: what was pruned stays so
  bool learns_values = false;          // and those of activations
  int64_t block = 0;  // products: weights in 4 bits, a scale for so many numbers of a sum
  bool clips = true;  // of blocks: scales that cut the largest numbers are tried

  static InsertionPlan from(const Options& options);  // of TENON_STORAGE_OPTIONS and a pass's own
};

struct WeightNote {  // of one weight, for the report
  std::string node;
  double snr_db = 0;
  bool has_bias = false, integer_bias = false;
  bool in_blocks = false;  // int4, a scale for each group
  ZeroCounts zeros = {};   // of trained ones
};

// A weight as int8 behind a DequantizeLinear: what stands for it.
Result<Value> add_weight(EditView edit,
                         std::string_view name,
                         const Weight& weight,
                         bool per_channel);

class Insertion {
 public:
  Insertion(tn_ctx* ctx, const Assignment& assignment, const InsertionPlan& plan)
      : ctx_(ctx), assignment_(assignment), plan_(plan) {}
  // groups: one per group of the assignment; empty for weights alone.
  Status run(EditView edit, const std::vector<Params>& groups);
  const std::vector<WeightNote>& weights() const { return weights_; }

 private:
  struct Use {
    Node node;
    uint64_t input;
  };
  struct Stored {  // a weight in the graph
    Value value;
    std::vector<float> scale;
    WeightNote note = {};  // what every node that reads it says of it
  };
  std::vector<Use> uses_of(Value v) const;
  Status store_value(EditView edit, Value v, const Params& params);
  Result<Value> learned_scale(EditView edit, Value v, float first) const;
  Status store_weights(EditView edit, Node node, const Product& product, const Params* act);
  // In blocks of 4 bits where the plan and the node allow it; falsy: by channels.
  Result<Value> stored_blocks(EditView edit, Node node, const Product& product, WeightNote* note);
  Result<Stored> stored_weight(EditView edit, Node node, const Product& product, const Params* act);
  Result<Stored> stored_anew(EditView edit, Node node, const Product& product, const Params* act);

  tn_ctx* ctx_;
  const Assignment& assignment_;
  InsertionPlan plan_;
  struct Zeros {
    Value scale, zero_point;
  };
  std::map<size_t, Zeros> params_;                               // of groups
  std::map<std::pair<tn_value_id, int64_t>, Stored> by_weight_;  // shared weights are stored once
  std::vector<WeightNote> weights_;
};

}  // namespace tenon::quantizer
