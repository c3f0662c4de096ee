// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stored weights rounded once more, by what layers give: what GPTQ and AdaRound have in common.
// They differ in how a weight is rounded. Scales and zero points stay, so the file stays as long as
// it was: int8 by channel as `quantizer.static` writes it and int4 in blocks as `quantizer.weights`
// does are both taken, and so are the weights of recurrent cells. Inputs of layers are those of the
// rounded model.

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tenon/sdk/role/pass.hpp"

#include "algorithms/weight_grid.hpp"
#include "calibration_options.hpp"
#include "gram.hpp"
#include "repair_pass.hpp"
#include "stored_weights.hpp"

namespace tenon::quantizer {

class WeightRounding : private RepairPass {
 public:
  // Quantized values [rows, columns] of a weight, or nothing. hessian: [columns, columns].
  using Round = std::function<Result<std::vector<float>>(
      const WeightGrid&, std::span<const double> hessian, const Rows&)>;
  // Options: TENON_REPAIR_OPTIONS, TENON_ROUNDED_WEIGHTS_OPTION.
  static Result<WeightRounding> create(tn_ctx* ctx, const Options& options, Round round);
  // A layer that comes out no better than it is, or than by nearest rounding, takes the better of
  // these.
  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink);

 private:
  std::vector<StoredWeight> find(Graph graph);
  Status round(EditView edit, const StoredWeight& one, const Gram& gram);
  void leave(Node node, std::string_view why);

  Round round_;
  bool stored_only_ = false;
  nlohmann::ordered_json rounded_ = nlohmann::ordered_json::array(), left_ = rounded_;
};

}  // namespace tenon::quantizer
