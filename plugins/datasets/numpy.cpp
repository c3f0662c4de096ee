// SPDX-License-Identifier: Apache-2.0
// "numpy": the arrays of a NumPy .npz or .npy file as a graph without nodes: each is a
// constant and an output of its name, as the tensors of a safetensors file are.
#include <algorithm>

#include "tenon/sdk/role/reader.hpp"
#include "tenon/sdk/run.hpp"

#include "arrays.hpp"
#include "zip.hpp"

namespace tenon::datasets {
namespace {

class NumpyReader {
 public:
  explicit NumpyReader(tn_ctx* ctx) : ctx_(ctx) {}
  static Result<NumpyReader> create(tn_ctx* ctx, const Options&) { return NumpyReader(ctx); }

  int probe(std::span<const std::byte> head, std::string_view name) const {
    std::string_view bytes(reinterpret_cast<const char*>(head.data()), head.size());
    if (looks_like_npy(bytes)) return 90;
    const bool is_named = name.ends_with(".npz") || name.ends_with(".npy");
    return is_named ? (looks_like_zip(bytes) ? 80 : 10) : 0;
  }

  Status read(tn_blob* blob, tn_graph* into, const Cancel& cancel) {
    TN_TRY(opened, File::of(blob));
    TN_TRY(arrays, read_arrays(std::make_shared<const File>(std::move(opened)), {}));
    TN_TRY(edit, Edit::begin(into));
    const bool is_any = std::any_of(arrays.begin(), arrays.end(),
                                    [](const Array& one) { return one.trouble.empty(); });
    for (const Array& array : arrays) {
      TN_CHECK(cancel.check());
      if (!array.trouble.empty()) {
        if (!is_any) return unsupported(array.trouble);
        log_line(ctx_, TN_LOG_INFO, cat(array.trouble, "; it is left alone"));
        continue;
      }
      DenseView view(array.dtype, array.shape, array.data.data());
      TN_TRY(tensor, Tensor::copy_of(ctx_, *view));
      TN_TRY(value, edit.constant(tensor, array.name));
      TN_CHECK(edit.output(array.name, value));
    }
    return edit.commit();
  }

 private:
  tn_ctx* ctx_;
};

}  // namespace
}  // namespace tenon::datasets

TENON_READER(numpy,
             tenon::datasets::NumpyReader,
             "numpy",
             "reads the arrays of a NumPy .npz or .npy file as constants",
             R"({"properties": {}, "extensions": [".npz", ".npy"]})")
