// SPDX-License-Identifier: Apache-2.0
// "datasets.npz": arrays of a NumPy .npz or .npy file, one field each. Arrays that are not read
// and that are no samples, as names of classes or a mean, are left alone.
#include <algorithm>
#include <map>

#include "tenon/sdk/run.hpp"

#include "array_table.hpp"
#include "arrays.hpp"

namespace tenon::datasets {
namespace {

// The length of the first axis that most arrays have; of equals, that of the earliest.
int64_t usual_rows(const std::vector<Array>& arrays) {
  std::map<int64_t, size_t> seen;
  for (const Array& array : arrays)
    if (array.trouble.empty() && !array.shape.empty()) ++seen[array.shape[0]];
  int64_t best = -1;
  for (const Array& array : arrays) {
    if (!array.trouble.empty() || array.shape.empty()) continue;
    if (best < 0 || seen[array.shape[0]] > seen[best]) best = array.shape[0];
  }
  return best;
}

class Npz : public ArrayTable {
 public:
  static Result<Npz> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(opened, File::open(ctx, options.text("path")));
    auto file = std::make_shared<const File>(std::move(opened));
    std::vector<std::string> wanted = options.texts("fields");
    TN_TRY(arrays, read_arrays(file, wanted));
    const int64_t rows = usual_rows(arrays);
    Npz out;
    std::string left, no_numbers;
    for (Array& array : arrays) {
      std::string why = array.trouble;
      if (why.empty() && array.shape.empty())
        why = cat(file->path(), ": ", array.name, ": a single number; the first axis must count ",
                  "samples (leave it out with option fields)");
      const bool is_alone = arrays.size() == 1 || !wanted.empty() || rows < 0;
      if (!why.empty() && is_alone) return invalid(why);
      if (!is_alone && (!why.empty() || array.shape[0] != rows)) {
        std::string& list = array.trouble.empty() ? left : no_numbers;
        list += cat(list.empty() ? "" : ", ", array.name);
        continue;
      }
      Field field{
          array.name, array.dtype, {array.shape.begin() + 1, array.shape.end()}, array.data};
      TN_CHECK(out.add(std::move(field), static_cast<uint64_t>(array.shape[0]), array.keeper)
                   .in(file->path()));
    }
    if (out.list().empty()) return file->fault("holds no arrays");
    if (!no_numbers.empty())
      log_line(ctx, TN_LOG_INFO,
               cat(file->path(), ": left alone, as they hold no numbers: ", no_numbers));
    if (!left.empty())
      log_line(ctx, TN_LOG_INFO,
               cat(file->path(), ": left alone, as they do not hold ", rows, " samples: ", left));
    return out;
  }
};

}  // namespace
}  // namespace tenon::datasets

TENON_DATASET(npz, tenon::datasets::Npz, "datasets.npz", "arrays of a NumPy .npz or .npy file", R"({
  "extensions": [".npz", ".npy"],
  "properties": {
    "path": {"type": "path", "description": "the file"},
    "fields": {"type": "array", "items": {"type": "string"},
               "description": "arrays to read; default: those with the usual number of samples; for .npy the name of its one field"}},
  "required": ["path"]})")
