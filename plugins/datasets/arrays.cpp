// SPDX-License-Identifier: Apache-2.0
#include "arrays.hpp"

#include <algorithm>

#include "zip.hpp"

namespace tenon::datasets {
namespace {

Result<Array> read_one(std::string name,
                       std::string_view bytes,
                       const std::string& who,
                       std::shared_ptr<const void> keeper) {
  Array out{std::move(name), TN_DTYPE_NONE, {}, {}, std::move(keeper)};
  Result<NpyArray> parsed = parse_npy(bytes, who);
  if (!parsed.ok()) {
    Status why = std::move(parsed).status();
    if (why.code() != TN_UNIMPLEMENTED) return why;
    out.trouble = why.message();
    return out;
  }
  out.dtype = parsed->dtype;
  out.shape = parsed->shape;
  out.data = parsed->data;
  if (parsed->is_plain()) return out;
  auto dense = std::make_shared<std::string>(to_plain(*parsed));
  out.data = *dense;
  out.keeper = dense;
  return out;
}

Result<std::vector<Array>> read_entries(const std::shared_ptr<const File>& file,
                                        const std::vector<std::string>& wanted) {
  TN_TRY(entries, zip_entries(*file));
  std::vector<Array> out;
  std::vector<std::string> known;
  for (const ZipEntry& entry : entries) {
    std::string name =
        entry.name.ends_with(".npy") ? entry.name.substr(0, entry.name.size() - 4) : entry.name;
    known.push_back(name);
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
    auto room = std::make_shared<std::string>();
    TN_TRY(bytes, zip_read(*file, entry, room.get()));
    std::shared_ptr<const void> keeper = file;
    if (entry.method == 8) keeper = room;
    TN_TRY(array, read_one(name, bytes, cat(file->path(), ": entry ", entry.name), keeper));
    out.push_back(std::move(array));
  }
  for (const std::string& name : wanted) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string have;
    for (const std::string& other : known)
      have += (have.empty() ? "" : ", ") + other;
    return invalid(cat(file->path(), ": no field '", name, "' (it has: ", have, ")"));
  }
  return Result<std::vector<Array>>(std::move(out));
}

}  // namespace

Result<std::vector<Array>> read_arrays(const std::shared_ptr<const File>& file,
                                       const std::vector<std::string>& wanted) {
  if (looks_like_zip(file->bytes())) return read_entries(file, wanted);
  if (file->bytes().starts_with('\x80'))
    return file->fault("expected an npz or npy file, got a pickle, which is never loaded");
  if (!looks_like_npy(file->bytes())) return file->fault("neither a zip (npz) nor an npy file");
  std::string name = wanted.empty() ? stem_of(file->path()) : wanted[0];
  TN_TRY(array, read_one(name, file->bytes(), file->path(), file));
  std::vector<Array> out;
  out.push_back(std::move(array));
  return Result<std::vector<Array>>(std::move(out));
}

}  // namespace tenon::datasets
