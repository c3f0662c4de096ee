// SPDX-License-Identifier: Apache-2.0
// tenon evaluate MODEL --data FILE --metric NAME
#include "tenon/cxx/evaluate.hpp"

#include "../module/table_text.hpp"
#include "commands.hpp"
#include "data_flags.hpp"
#include "precision.hpp"

namespace tenon::command {

namespace {

// A failure that a flag would mend names it.
void with_flags(const Action& work) {
  try {
    work();
  } catch (const Error& failed) {
    const std::string_view text = failed.what();
    auto says = [&](std::string_view words) { return text.find(words) != std::string_view::npos; };
    const char* flag = says("expected a reference model") ? " (--against MODEL)"
                       : says("option label of ")         ? " (--option label=FIELD)"
                                                          : "";
    if (!*flag) throw;
    throw Error(failed.code(), cat(text, flag));
  }
}

}  // namespace

Action declare_evaluate(CLI::App& app, const Tool& tool) {
  struct Flags {
    std::string model, against;
    DataFlags data;
    std::vector<std::string> options;
    cxx::EvaluateChoice choice;
    RunFlags run;
    JsonFlag json;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("model", flags->model, "the model")->required()->type_name("MODEL");
  flags->data.add(&app, "data set; its kind by the file's name")->required();
  app.add_option("--metric", flags->choice.metric, "accuracy, cosine, ... (tenon plugin list)")
      ->required()
      ->type_name("NAME");
  app.add_option("--option", flags->options, "an option of the metric (tenon plugin info)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--against", flags->against, "reference model, for metrics that compare outputs")
      ->type_name("MODEL");
  app.add_option("--batch", flags->choice.batch, "batch size (default: the model's, or 32)")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--limit", flags->choice.limit, "only the first N samples")
      ->type_name("N")
      ->check(number_from(0));
  flags->run.add(&app);
  flags->json.add(&app);
  return [flags, &tool] {
    flags->choice.metric_options = values_of(flags->options, "--option");
    SessionPtr session = open_for(tool, flags->run.choice);
    flags->choice.run = flags->run.choice;
    cxx::Model model = cxx::Model::load(session, flags->model);
    refuse_idle_int8(model, flags->choice.run);
    if (!flags->against.empty())
      flags->choice.against.emplace(cxx::Model::load(session, flags->against));
    cxx::Dataset data = flags->data.open(session);
    Json result{{"model", flags->model}, {"data", flags->data.path}};
    flags->data.with_advice(
        [&] { with_flags([&] { result.update(cxx::evaluate(model, data, flags->choice)); }); });
    if (flags->json.json) return print_json(result);
    print(lua::table_text(Json::array({result}), {"model", "metric", "value", "samples"}));
  };
}

}  // namespace tenon::command
