// SPDX-License-Identifier: Apache-2.0
#pragma once
// Inputs of products divided, and their weights multiplied, by factors for each channel: the float
// model stays the same, and fewer bits do better. What SmoothQuant and AWQ have in common; they
// differ in how factors are chosen. Products that read the same value share the factors. They go
// into a LayerNormalization where these products alone read it, else into a Mul in front of them.

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tenon/sdk/padding.hpp"
#include "tenon/sdk/pattern.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "algorithms/input_factors.hpp"
#include "gram.hpp"

namespace tenon::quantizer {

class InputScaling {
 public:
  using Choose = std::function<InputFactors(const ScaledLayer&)>;
  // choose: for one layer, on any thread. Options: TENON_INPUT_SCALING_OPTIONS and `gain`,
  // the decibels that a product has to win.
  static Result<InputScaling> create(tn_ctx* ctx, const Options& options, Choose choose);
  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink);

 private:
  struct Reader {
    Node node;
    Product product;
    WeightForm form;
  };
  struct Source {  // a value, and the products that read it
    Value value;
    std::vector<Reader> readers;
    ScaledLayer layer = {};
    int64_t seen = 0;  // rows
  };
  std::vector<Source> find(Graph graph) const;
  nlohmann::ordered_json others(Graph graph) const;
  Status collect(Graph graph, std::vector<Source>* sources, const Cancel& cancel);
  static void collect_weights(Source* source);
  static void collect_inputs(const DLTensor& tensor,
                             const std::vector<int64_t>& rows,
                             int64_t wanted,
                             Source* source);
  Result<std::string> apply(EditView edit, const Source& source, const std::vector<float>& factor);
  static Result<bool> fold(EditView edit, const Source& source, const std::vector<float>& factor);
  static Status insert(EditView edit, const Source& source, const std::vector<float>& factor);
  static Status scale_weight(EditView edit, const Reader& reader, const std::vector<float>& factor);

  tn_ctx* ctx_ = nullptr;
  FeedOptions data_;
  std::vector<std::string> backends_;
  std::string mask_;  // the input that is 0 at padding; empty: there is none
  Selected selected_;
  double gain_ = 0;
  bool inserts_ = true;
  Choose choose_;
};

}  // namespace tenon::quantizer

#define TENON_INPUT_SCALING_OPTIONS                                                                 \
  TENON_FEED_OPTIONS("calibration data", "64", "8")                                                 \
  R"(, "insert": {"type": "boolean", "default": true, "description": "a Mul in front of products )" \
  R"(where no LayerNormalization takes the factors"},)" TENON_SELECTED_OPTIONS(                     \
      "products to scale") "," TENON_MASK_OPTION "," TENON_BACKEND_OPTION("runs the model")
