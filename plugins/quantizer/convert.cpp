// SPDX-License-Identifier: Apache-2.0
// "quantizer.convert": after training with quantizer.qat, weights become int8 constants and biases
// int32 ones: the file that quantizer.static writes, with trained numbers. What nodes that compute
// in float read as weights was trained in float, and is stored in 8 bits here.
#include <nlohmann/json.hpp>

#include "tenon/sdk/original.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "bias.hpp"
#include "selection_note.hpp"
#include "signs.hpp"
#include "storage.hpp"
#include "trained_weight.hpp"

namespace tenon::quantizer {
namespace {

// The DequantizeLinear that makes this input of a node, with a constant scale.
Node stored_input(Node node, int64_t input) {
  Value v = node.input(static_cast<uint64_t>(input));
  Node dq = v ? v.producer() : Node{};
  bool fits =
      dq && dq.is("DequantizeLinear") && dq.input(1).is_constant() && dq.input(1).dtype() == TN_F32;
  return fits ? dq : Node{};
}

std::vector<float> scales(Node dq) {
  DLTensor tensor = dq.input(1).constant().dl();
  const float* data = data_of<float>(tensor);
  return {data, data + element_count(tensor)};
}

class Convert {
 public:
  static Result<Convert> create(tn_ctx* ctx, const Options& options) {
    Convert out;
    out.ctx_ = ctx;
    out.integer_bias_ = options.text("bias") == "int32";
    return out;
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& sink) {
    std::vector<TrainedWeight> weights = find_trained_weights({raw});
    if (weights.empty())
      return {TN_FAILED_PRECONDITION,
              "nothing to convert: expected float weights behind QuantizeLinear, as quantizer.qat "
              "leaves them"};
    TN_CHECK(round_weights(ctx_, {raw}, &weights, cancel));
    TN_TRY(edit, Edit::begin(raw));
    nlohmann::ordered_json names = nlohmann::ordered_json::array();
    for (const TrainedWeight& one : weights) {
      TN_CHECK(fold_weight(edit, one).in(one.name));
      names.push_back(one.name);
    }
    TN_TRY(signs, fold_signs(edit));
    TN_TRY(steps, fold_steps(edit));
    uint64_t biases = 0;
    for (Node node : edit.graph().nodes()) {
      Role role = role_of(node);
      for (const Product& product : role.products) {
        TN_TRY(stored, integer_bias_ ? store(edit, node, product) : Result<bool>(false));
        biases += stored;
      }
    }
    TN_CHECK(edit.set_note(0, kOriginalNote, {}));  // a finished model learns no more
    TN_CHECK(edit.commit());
    TN_TRY(stored, store_others(raw));
    return sink.write(nlohmann::ordered_json{
        {"weights", names},
        {"signs", signs},
        {"steps", steps},
        {"biases", biases},
        {"stored",
         stored}}.dump());
  }

 private:
  // Tables, weights of recurrent cells, bodies of control flow.
  static Result<nlohmann::ordered_json> store_others(tn_graph* raw) {
    const Selected selected = kept_selected({raw});
    TN_TRY(assignment,
           Assignment::make({raw},
                            {.selected = selected, .weights_only = true, .among_quantized = true}));
    Storage storage({selected, true});
    TN_TRY(edit, Edit::begin(raw));
    TN_CHECK(storage.run(edit, assignment));
    TN_CHECK(forget_selected(edit));
    TN_CHECK(edit.commit());
    TN_CHECK(storage.run_in_bodies(raw));
    return storage.notes();
  }

  static Result<bool> store(EditView edit, Node node, const Product& product) {
    Node act = stored_input(node, product.act), weight = stored_input(node, product.weight);
    if (!act || !weight || scales(act).size() != 1 || !weight.input(0).is_constant()) return false;
    return store_bias(edit, node, product, scales(weight), scales(act)[0]);
  }

  tn_ctx* ctx_ = nullptr;
  bool integer_bias_ = true;
};

}  // namespace
}  // namespace tenon::quantizer

TENON_PASS(convert,
           tenon::quantizer::Convert,
           "quantizer.convert",
           "weights that quantizer.qat trained become int8 constants",
           R"({
  "properties": {
    "bias": {"type": "string", "enum": ["int32", "float32"], "default": "int32", "description": "how biases are stored"}}})")
