// SPDX-License-Identifier: Apache-2.0
// "layers.load": the constants of one model, by name, into another: a state dict that PyTorch saved
// as safetensors into a network of layers.
#include <map>
#include <set>

#include "tenon/sdk/number.hpp"
#include "tenon/sdk/pattern.hpp"
#include "tenon/sdk/role/pass.hpp"

#include "layer.hpp"

namespace tenon::layers {
namespace {

class Load {
 public:
  static Result<Load> create(tn_ctx* ctx, const Options& options) {
    Load made;
    made.ctx_ = ctx;
    tn_any given = options.get("weights");
    if (given.tag != TN_ANY_GRAPH)
      return invalid("option weights: expected a model with the weights, got none");
    auto* graph = static_cast<const tn_graph*>(given.v.p);
    for (Value constant : Graph{graph}.constants())
      made.weights_.insert_or_assign(std::string(constant.name()), Weight{constant.constant()});
    for (size_t i = 0; i < services.graph->count(graph, TN_LIST_OUTPUTS); ++i) {
      Value value{graph, services.graph->value_at(graph, TN_LIST_OUTPUTS, i, 0)};
      std::string name(view(services.graph->io_name(graph, TN_LIST_OUTPUTS, i)));
      if (value.is_constant()) made.weights_.insert_or_assign(name, Weight{value.constant(), true});
    }
    made.prefix_ = options.text("prefix");
    made.partial_ = options.flag("partial");
    made.keeps_ = made.partial_ || options.flag("update");
    return made;
  }

  Status run(tn_graph* graph, const Cancel& cancel, Sink& report) {
    TN_TRY(edit, Edit::begin(graph));
    std::set<std::string> wanted, unused;
    for (Value constant : edit.graph().constants())
      if (is_parameter(constant)) wanted.emplace(constant.name());
    int64_t loaded = 0;
    for (const auto& [full, weight] : weights_) {
      TN_CHECK(cancel.check());
      if (!full.starts_with(prefix_)) continue;
      std::string name = full.substr(prefix_.size());
      if (name.ends_with("num_batches_tracked")) continue;  // a count that nothing here needs
      const Value known = edit.graph().find(name);
      const bool is_stated = weight.is_stated && !is_unnamed(name);
      const bool is_meant = is_stated && known && known.is_constant();
      if (wanted.erase(name) == 0 && !is_meant) {
        if (!known || is_stated) unused.insert(name);
        continue;
      }
      TN_CHECK(put(edit, name, weight.tensor));
      ++loaded;
    }
    if (!keeps_ && !wanted.empty())
      return invalid(cat("option weights: expected ", *wanted.begin(), " among ", weights_.size(),
                         " tensors, got none of this name (", wanted.size(),
                         " are missing); update = true keeps the model's own"));
    if (!partial_ && !unused.empty())
      return invalid(cat("option weights: ", *unused.begin(),
                         ": the model has no constant of this ",
                         "name; partial = true leaves it out"));
    TN_CHECK(edit.commit());
    return report.write(cat("{\"loaded\": ", loaded, ", \"missing\": ", wanted.size(),
                            ", \"unused\": ", unused.size(), "}"));
  }

 private:
  // A state dict states each tensor as an output, whatever its type. What a model has else may be
  // the ratio of a dropout or a list of axes, which is called by chance as one of the other model.
  struct Weight {
    Tensor tensor;
    bool is_stated = false;
  };
  // "constant", "constant_2": so a graph calls what nobody has named, a ratio here and an axis
  // there.
  static bool is_unnamed(std::string_view name) {
    constexpr std::string_view kBase = "constant", kDigits = "0123456789";
    if (!name.starts_with(kBase)) return false;
    name.remove_prefix(kBase.size());
    return name.empty() ||
           (name.size() > 1 && name[0] == '_' && name.find_first_not_of(kDigits, 1) == name.npos);
  }
  // What the model has to be given: weights and running figures, and numbers that are trained.
  static bool is_parameter(Value constant) {
    Type type = constant.type();
    if (!is_float(type.dtype)) return false;
    return type.rank() > 0 || int_of(constant.note("train"), 0) != 0;
  }
  Result<Tensor> widened(const Tensor& tensor, uint32_t dtype) const {
    const DLTensor from = tensor.dl();
    if (dtype == TN_F64) {
      TN_TRY(numbers, numbers_as<double>(from));
      return Tensor::of<double>(ctx_, dtype, shape_of(from), numbers);
    }
    TN_TRY(numbers, numbers_as<float>(from));
    return Tensor::of<float>(ctx_, dtype, shape_of(from), numbers);
  }
  Status put(EditView edit, const std::string& name, const Tensor& tensor) const {
    Value old = edit.graph().find(name);
    Type have = old.type();
    std::vector<int64_t> shape(shape_of(tensor.dl()).begin(), shape_of(tensor.dl()).end());
    // A state dict that was saved in fewer bits: each of its numbers is one of the wider type too.
    uint32_t dtype = dtype_of(tensor.dl());
    const bool is_narrower = is_float(dtype) && TN_DTYPE_BITS(dtype) < TN_DTYPE_BITS(have.dtype);
    if (is_narrower && shape == have.dims) {
      TN_TRY(wide, widened(tensor, have.dtype));
      return put(edit, name, wide);
    }
    if (dtype != have.dtype || shape != have.dims)
      return invalid(cat("option weights: ", name, ": expected ", type_text(have), ", got ",
                         type_text(Type(dtype, shape))));
    tn_any train = old.note("train");
    TN_CHECK(Status(services.edit->set_value_name(edit.raw, old.id, str(name + "/before"))));
    TN_TRY(fresh, edit.constant(tensor, name));
    if (train.tag != TN_ANY_NONE) TN_CHECK(edit.set_note(fresh.id, "train", train));
    return edit.replace(old, fresh);
  }

  tn_ctx* ctx_ = nullptr;
  std::map<std::string, Weight> weights_;
  std::string prefix_;
  bool partial_ = false;
  bool keeps_ = false;  // what the model has where weights are missing
};

}  // namespace
}  // namespace tenon::layers

TENON_PASS(load,
           tenon::layers::Load,
           "layers.load",
           "puts weights of another file into a model, by name",
           R"({"required": ["weights"],
  "properties": {
    "weights": {"type": "graph", "description": "a model with the weights as constants, such as tn.load makes of a safetensors file"},
    "prefix": {"type": "string", "default": "", "description": "prefix of their names, which the model's do not have"},
    "update": {"type": "boolean", "default": false, "description": "constants that are not among the weights keep their numbers"},
    "partial": {"type": "boolean", "default": false, "description": "ignores weights that only one of both has"}}})")
