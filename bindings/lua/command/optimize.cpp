// SPDX-License-Identifier: Apache-2.0
// tenon optimize MODEL -o OUT --recipe NAME [--dry-run]: runs the recipe, a Lua script, with
// tn.args.model, .output, .data and what --set gives.
#include <filesystem>
#include <optional>
#include <tuple>

#include "tenon/cxx/choice.hpp"

#include "commands.hpp"
#include "data_flags.hpp"
#include "script_flags.hpp"

namespace tenon::command {
namespace {

namespace fs = std::filesystem;

// share/tenon/recipes of the installation or build tree that this program lies in.
fs::path recipes_folder() {
  std::error_code failed;
  fs::path program = fs::read_symlink("/proc/self/exe", failed);
  return program.parent_path().parent_path() / "share" / "tenon" / "recipes";
}

std::string recipe_file(const std::string& name) {
  std::error_code ignored;
  if (name.ends_with(".lua")) return name;
  fs::path file = recipes_folder() / (name + ".lua");
  if (name.find('/') == std::string::npos && fs::is_regular_file(file, ignored))
    return file.string();
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(recipes_folder(), ignored)) {
    if (entry.path().extension() == ".lua") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  throw Error(TN_NOT_FOUND, cat("recipe: ", cxx::expected_one_of(names, name, "(none found)",
                                                                 ", or a file NAME.lua")));
}

// Each recipe with the options that it says it takes.
std::string recipes_text(const Tool& tool) {
  std::error_code ignored;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(recipes_folder(), ignored))
    if (entry.path().extension() == ".lua") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::string text = "Recipes, with what --set takes:\n";
  SessionPtr session = tool.open();
  for (const fs::path& file : files) {
    text += cat("  ", file.stem().string(), "\n");
    Json options = lua::run_script(session, file.string(), {{"describe", true}}, {});
    for (const Json& one : options) {
      const auto name = one["option"].get<std::string>();
      text += cat("    ", name, std::string(name.size() < 18 ? 18 - name.size() : 1, ' '),
                  one["about"].get<std::string>(), "\n");
    }
  }
  return text;
}

// What the command itself says to the recipe would go over what --set says, without a word.
void refuse_given_twice(const Json& set, bool has_min_snr, bool has_max_drop) {
  for (const char* key : {"model", "output", "data", "data_options", "json", "describe", "dry_run"})
    if (set.contains(key))
      throw UsageError(cat("--set ", key,
                           ": expected an option of the recipe; the command's own "
                           "flags say this"));
  for (auto [key, flag, is_given] :
       {std::tuple{"min_snr", "--min-snr", has_min_snr}, {"max_drop", "--max-drop", has_max_drop}})
    if (is_given && set.contains(key))
      throw UsageError(cat("--set ", key, ": expected one of it and ", flag, ", got both"));
}

struct Flags {
  std::string model, output, recipe;
  DataFlags data;
  std::optional<double> min_snr, max_drop;
  bool is_dry = false, requantizes = false;
  ScriptFlags given;
  JsonFlag json;
};

}  // namespace

Action declare_optimize(CLI::App& app, const Tool& tool) {
  auto flags = std::make_shared<Flags>();
  app.add_option("model", flags->model, "the model")->required()->type_name("MODEL");
  app.add_option("-o,--output", flags->output, "file of the new model; needed but for --dry-run")
      ->type_name("OUT");
  app.add_flag(
      "--dry-run", flags->is_dry,
      "do all but write the model: what would go and what it would save, of recipes that write by "
      "recipe.save");
  app.add_option("--recipe", flags->recipe, "name of a recipe, or its file NAME.lua")
      ->required()
      ->type_name("NAME");
  flags->data.add(&app, "data set to calibrate with");
  app.add_option("--min-snr", flags->min_snr,
                 "least signal-to-noise ratio at the outputs; below it nothing is written")
      ->type_name("DB");
  app.add_option("--max-drop", flags->max_drop,
                 "write nothing when the metric (--set metric=NAME, accuracy) falls by more")
      ->type_name("X");
  app.add_flag("--requantize", flags->requantizes,
               "a model that is quantized already becomes one of floats first");
  flags->given.add(&app);
  flags->json.add(&app);
  app.footer([&tool] { return recipes_text(tool); });
  return [flags, &tool] {
    std::string recipe = recipe_file(flags->recipe);
    Json args = flags->given.args();
    refuse_given_twice(args, flags->min_snr.has_value(), flags->max_drop.has_value());
    args["model"] = flags->model;
    if (flags->output.empty() && !flags->is_dry)
      throw Error(TN_INVALID_ARGUMENT, "-o: expected the file of the new model, or --dry-run");
    args["output"] = flags->is_dry ? "dry run" : flags->output;
    if (flags->is_dry) args["dry_run"] = true;
    if (flags->requantizes) args["requantize"] = true;
    if (flags->min_snr) args["min_snr"] = *flags->min_snr;
    if (flags->max_drop) args["max_drop"] = *flags->max_drop;
    args["json"] = flags->json.json;
    SessionPtr session = tool.open();
    if (!flags->data.path.empty()) {
      args["data"] = flags->data.path;
      args["data_options"] = flags->data.values(*session);
    }
    if (!flags->is_dry) check_output(*session, flags->output);
    Json result;
    flags->data.with_advice([&] {
      result = flags->json.returned_by(
          [&] { return lua::run_script(session, recipe, args, flags->given.limits()); });
    });
    if (flags->is_dry && (result.is_object() || result.is_null())) result["dry_run"] = true;
    if (flags->json.json) print_json(result);
  };
}

}  // namespace tenon::command
