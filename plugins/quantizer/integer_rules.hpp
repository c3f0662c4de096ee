// SPDX-License-Identifier: Apache-2.0
#pragma once
// What each node becomes in integers. Products and sums are in integer_sums.cpp, functions of one
// value in integer_tables.cpp, the rest and the order of all in integer_rewriting.cpp.

#include <optional>
#include <string_view>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "tenon/sdk/edit.hpp"

#include "integer_values.hpp"
#include "known_numbers.hpp"

namespace tenon::quantizer {

class Rewriting {
 public:
  Rewriting(tn_ctx* ctx, EditView edit) : ctx_(ctx), edit_(edit), n_(edit) {}

  Status run();
  const nlohmann::ordered_json& refused() const { return refused_; }

 private:
  using Handler = Status (Rewriting::*)(Node);

  const Integers* known(Value v) const;
  Status refuse(Node node, std::string_view why);
  Status take(Node node);

  // The borders of integers.
  Status dequantize(Node node);
  Status quantize(Node node);

  Status product(Node node);
  Status finish_product(Node node, const Integers& x, const Known& w, int64_t axis, Value sums);
  Status add(Node node);
  Status bound(Node node);   // Max, Min
  Status factor(Node node);  // Mul, Div
  Status clip(Node node);
  Status mean(Node node);
  Status softmax(Node node);
  Status move(Node node);  // the same numbers elsewhere, or some of them

  Status table(Node node);
  Result<Tensor> values(Node node, const std::vector<float>& numbers);
  Result<double> flat_beyond(Node node, const Stored8& to, double most);
  Result<bool> table_of_sum(Node node, const Integers& x, const Stored8& to, Integers* out);

  // What is left over.
  Status hand_over();

  tn_ctx* ctx_;
  EditView edit_;
  IntegerNodes n_;
  std::unordered_map<tn_value_id, Integers> known_;
  nlohmann::ordered_json refused_ = nlohmann::ordered_json::array();
};

}  // namespace tenon::quantizer
