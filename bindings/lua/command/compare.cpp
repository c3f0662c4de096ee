// SPDX-License-Identifier: Apache-2.0
// tenon compare A B --data FILE
#include "tenon/cxx/evaluate.hpp"

#include "../module/table_text.hpp"
#include "commands.hpp"
#include "data_flags.hpp"
#include "precision.hpp"

namespace tenon::command {
namespace {

// The layers, then a line for each output that has no figure.
std::string text_of(const Json& result) {
  std::vector<std::string> columns{"value", "op", "damage", "snr_db", "cosine", "max_error"};
  for (const Json& row : result["layers"])
    if (row.contains("trouble") && columns.back() != "trouble") columns.emplace_back("trouble");
  std::string text = lua::table_text(result["layers"], columns);
  for (const Json& one : result["outputs"])
    if (one.contains("trouble"))
      text += cat("output ", one["name"].get<std::string>(),
                  " was not compared: ", one["trouble"].get<std::string>(), "\n");
  return text;
}

}  // namespace

Action declare_compare(CLI::App& app, const Tool& tool) {
  struct Flags {
    std::string a, b;
    DataFlags data;
    cxx::CompareChoice choice;
    RunFlags run;
    JsonFlag json;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("a", flags->a, "the model that is right")->required()->type_name("A");
  app.add_option("b", flags->b, "the model that is compared with it")->required()->type_name("B");
  flags->data.add(&app, "data set; its kind by the file's name")->required();
  app.add_option("--limit", flags->choice.limit, "only the first N samples, 0: all")
      ->check(number_from(0))
      ->capture_default_str();
  app.add_option("--batch", flags->choice.batch, "batch size (default: the model's, or 32)")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--mask", flags->choice.mask,
                 "input of the models that is 0 at padding: positions there are not compared")
      ->type_name("INPUT");
  flags->run.add(&app);
  flags->json.add(&app);
  return [flags, &tool] {
    // A precision is for the second model: the first one is the measure.
    SessionPtr session = open_for(tool, flags->run.choice);
    flags->choice.run.backend = flags->run.choice.backend;
    flags->choice.other_run = flags->run.choice;
    cxx::Model a = cxx::Model::load(session, flags->a);
    cxx::Model b = cxx::Model::load(session, flags->b);
    cxx::Dataset data = flags->data.open(session);
    Json result;
    flags->data.with_advice([&] { result = cxx::compare(a, b, data, flags->choice); });
    if (flags->json.json) {
      print_json(result);
    } else {
      print(text_of(result));
    }
    if (result["compared"] == 0)
      throw Error(TN_INVALID_ARGUMENT,
                  cat("compare ", flags->b, ": no value could be compared with ", flags->a));
  };
}

}  // namespace tenon::command
