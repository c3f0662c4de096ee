// SPDX-License-Identifier: Apache-2.0
// tenon infer MODEL --input NAME=FILE.npy ... --output-dir DIR
#include <algorithm>
#include <filesystem>
#include <set>

#include <unistd.h>

#include "tenon/cxx/arrays.hpp"

#include "../module/table_text.hpp"
#include "commands.hpp"
#include "input_arrays.hpp"
#include "precision.hpp"

namespace tenon::command {
namespace {

namespace fs = std::filesystem;

struct Flags {
  std::string model, folder;
  std::vector<std::string> inputs;
  RunFlags run;
  JsonFlag json;
};

// Output names may hold what a file's name cannot, and differ in nothing else: a/b and a_b. File
// systems take 255 bytes, of which some are for the ending and for the name while it is written.
std::vector<std::string> file_names(std::vector<std::string> names) {
  constexpr size_t kMost = 200;
  std::set<std::string> taken;
  for (std::string& name : names) {
    for (char& c : name)
      if (c == '/' || c == '\0') c = '_';
    size_t end = std::min(name.size(), kMost);
    while (end < name.size() && end > 0 && (name[end] & 0xc0) == 0x80)
      --end;  // not within a character
    name.resize(end);
    if (name.empty() || name[0] == '.') name.insert(0, 1, '_');
    const std::string plain = name;
    for (int next = 2; !taken.insert(name).second; ++next)
      name = cat(plain, "_", next);
    name += ".npy";
  }
  return names;
}

// Before the work: what cannot be written need not be computed.
void make_folder(const std::string& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw Error(TN_UNAVAILABLE, cat("--output-dir ", folder, ": ", failed.message()));
  if (access(folder.c_str(), W_OK) != 0)
    throw Error(TN_PERMISSION_DENIED, cat("--output-dir ", folder, ": cannot be written to"));
}

// All files or none.
Json write_outputs(const cxx::Plan& plan,
                   const std::vector<cxx::Tensor>& outputs,
                   const std::string& folder) {
  Json written = Json::array();
  if (outputs.empty()) return written;
  const std::vector<std::string> names = file_names(plan.output_names());
  auto path_of = [&](size_t i) { return (fs::path(folder) / names[i]).string(); };
  cxx::TargetFile target(plan.session(), path_of(0));
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::string bytes = cxx::npy_bytes(outputs[i]);
    target.write(i ? names[i] : "", bytes.data(), bytes.size());
    written.push_back(
        {{"output", plan.output_names()[i]}, {"type", outputs[i].text()}, {"file", path_of(i)}});
  }
  target.commit();
  return written;
}

}  // namespace

Action declare_infer(CLI::App& app, const Tool& tool) {
  auto flags = std::make_shared<Flags>();
  app.add_option("model", flags->model, "the model")->required()->type_name("MODEL");
  app.add_option("--input", flags->inputs, "an input's array; or FILE.npz with all of them")
      ->type_name("NAME=FILE.npy")
      ->allow_extra_args(false);
  app.add_option("--output-dir", flags->folder, "folder for one .npy for each output")
      ->required()
      ->type_name("DIR");
  flags->run.add(&app);
  flags->json.add(&app);
  return [flags, &tool] {
    SessionPtr session = open_for(tool, flags->run.choice);
    cxx::Model model = cxx::Model::load(session, flags->model);
    refuse_idle_int8(model, flags->run.choice);
    std::vector<cxx::Tensor> inputs = read_inputs(model, flags->inputs).all();
    make_folder(flags->folder);
    cxx::Plan plan(model, cxx::compile_options(*session, flags->run.choice));
    Json written = write_outputs(plan, plan.run(inputs), flags->folder);
    if (flags->json.json) {
      return print_json({{"outputs", written},
                         {"fallback_nodes", plan.describe().value("fallback_nodes", Json())}});
    }
    print(lua::table_text(written, {"output", "type", "file"}));
  };
}

}  // namespace tenon::command
