// SPDX-License-Identifier: Apache-2.0
// "datasets.npz": arrays of a NumPy .npz or .npy file, one field each. Stored entries are read from
// the mapped file; deflated ones are unpacked once, when the data set is opened.
#include <algorithm>

#include "array_table.hpp"
#include "npy.hpp"
#include "zip.hpp"

namespace tenon::datasets {
namespace {

struct Loaded {
  std::shared_ptr<const File> file;  // shared by the fields, whose data it holds
  std::string entry;                 // empty for an npy file
  std::string_view bytes;
  std::shared_ptr<std::string> room;  // unpacked bytes, when not a window of the file
};

Status add_array(ArrayTable* table, const Loaded& loaded, const std::string& name) {
  const std::string who = loaded.entry.empty() ? loaded.file->path()
                                               : cat(loaded.file->path(), ": entry ", loaded.entry);
  TN_TRY(array, parse_npy(loaded.bytes, who));
  if (array.shape.empty())
    return invalid(cat(who, ": a single number; the first axis must count samples",
                       " (leave it out with option fields)"));
  std::shared_ptr<const void> keeper = loaded.file;
  if (loaded.room) keeper = loaded.room;
  if (array.fortran && array.shape.size() > 1) {
    auto dense = std::make_shared<std::string>(to_c_order(array));
    array.data = *dense;
    keeper = dense;
  }
  Field field{name, array.dtype, {array.shape.begin() + 1, array.shape.end()}, array.data};
  return table->add(std::move(field), static_cast<uint64_t>(array.shape[0]), keeper)
      .in(loaded.file->path());
}

Status add_entries(ArrayTable* table,
                   const std::shared_ptr<const File>& file,
                   const std::vector<std::string>& wanted) {
  TN_TRY(entries, zip_entries(*file));
  std::vector<std::string> known;
  for (const ZipEntry& entry : entries) {
    std::string name =
        entry.name.ends_with(".npy") ? entry.name.substr(0, entry.name.size() - 4) : entry.name;
    known.push_back(name);
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
    auto room = std::make_shared<std::string>();
    TN_TRY(bytes, zip_read(*file, entry, room.get()));
    TN_CHECK(add_array(table, {file, entry.name, bytes, entry.method == 8 ? room : nullptr}, name));
  }
  for (const std::string& name : wanted) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string have;
    for (const std::string& other : known)
      have += (have.empty() ? "" : ", ") + other;
    return invalid(cat(file->path(), ": no field '", name, "' (it has: ", have, ")"));
  }
  return {};
}

class Npz : public ArrayTable {
 public:
  static Result<Npz> create(tn_ctx* ctx, const Options& options) {
    TN_TRY(opened, File::open(ctx, options.text("path")));
    auto file = std::make_shared<const File>(std::move(opened));
    std::vector<std::string> wanted = options.texts("fields");
    Npz out;
    if (looks_like_zip(file->bytes())) {
      TN_CHECK(add_entries(&out, file, wanted));
    } else if (looks_like_npy(file->bytes())) {
      std::string name = wanted.empty() ? stem_of(file->path()) : wanted[0];
      TN_CHECK(add_array(&out, {file, "", file->bytes(), nullptr}, name));
    } else {
      return file->fault("neither a zip (npz) nor an npy file");
    }
    if (out.list().empty()) return file->fault("holds no arrays");
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
               "description": "arrays to read, all by default; for .npy the name of its one field"}},
  "required": ["path"]})")
