// SPDX-License-Identifier: Apache-2.0
#pragma once
// Timing int8 of a float model: quantized with a few random samples, whose answers mean nothing.

#include <filesystem>

#include "tenon/cxx/dataset.hpp"
#include "tenon/cxx/npz.hpp"
#include "tenon/cxx/sample_inputs.hpp"

namespace tenon::cxx {

// A folder of our own that goes away with all that is in it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tenon-XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw Error(TN_UNAVAILABLE, cat(name, ": a scratch folder cannot be made"));
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::string file(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline bool is_quantized(const Model& model) {
  return model.has_op("QuantizeLinear") || model.has_op("DequantizeLinear") ||
         model.has_op("DynamicQuantizeLinear");
}

// What the recipe `int8` does, as a normalization that is not folded would be quantized for itself.
inline Model quantize_for_timing(const Model& model, const std::vector<Tensor>& inputs) {
  const SessionPtr& session = model.session();
  ScratchFolder folder;
  std::vector<npz::Array> arrays;
  std::vector<Port> ports = model.inputs();
  for (size_t i = 0; i < ports.size(); ++i)
    arrays.push_back({ports[i].name, inputs[i]});
  npz::write(session, arrays, folder.file("random.npz"));
  Dataset data = Dataset::open(session, folder.file("random.npz"));
  Options options(session);
  options.set("data", data.component());
  const Options none(session);
  return model.apply("precision.widen", none)
      .apply("fusion.default", none)
      .apply("quantizer.static", options);
}

}  // namespace tenon::cxx
