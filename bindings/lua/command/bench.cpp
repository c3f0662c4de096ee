// SPDX-License-Identifier: Apache-2.0
// tenon bench MODEL
#include "tenon/cxx/bench.hpp"

#include "tenon/cxx/arrays.hpp"
#include "tenon/cxx/layers.hpp"

#include "../module/table_text.hpp"
#include "commands.hpp"
#include "input_arrays.hpp"
#include "precision.hpp"

namespace tenon::command {
namespace {

std::string peaks_text(const Json& peaks) {
  std::string text = "peaks     ";
  for (const auto& [precision, rate] : peaks["flops_per_s"].items())
    text += cat(precision, " ", quantity(rate, "flop/s"), ", ");
  for (const Json& one : peaks["bytes_per_s"])
    text += cat(quantity(one["rate"], "B/s"), " of ", quantity(one["working_set"], "B"), ", ");
  return text.substr(0, text.size() - 2) + "\n";
}

std::string throughput_text(const Json& result) {
  if (result["streams"] == 1) return {};
  return cat("at once   ", cxx::dump(result["streams"]), " streams, ",
             lua::cell_text(result["runs_per_s"]), " runs a second, p99 ",
             lua::cell_text(result["latency_ms"]["p99"]), " ms\n");
}

std::string threads_text(const Json& threads) {
  if (threads.is_null()) return {};
  return cat("  ", cxx::dump(threads), threads == 1 ? " thread" : " threads");
}

std::string summary(const Json& result) {
  const Json& ms = result["latency_ms"];
  std::string text = cat(
      result["model"].get<std::string>(), "  ", result["backend"].get<std::string>(), "  ",
      result["precision"].get<std::string>(), threads_text(result["threads"]),
      "\nlatency   median ", lua::cell_text(ms["median"]), " ms, min ", lua::cell_text(ms["min"]),
      " ms, p90 ", lua::cell_text(ms["p90"]), " ms (", cxx::dump(result["rounds"]),
      result["rounds"] == 1 ? " round)\n" : " rounds)\n", throughput_text(result), "compile   ",
      lua::cell_text(result["compile_ms"]), " ms\npeak rss  ",
      lua::cell_text(result["peak_rss_mb"]), " MB\nwork      ", quantity(result["flops"], " flops"),
      "\ncpu       ", result["cpu_flags"].get<std::string>(), "\n");
  if (result.contains("note")) text += cat("note      ", result["note"].get<std::string>(), "\n");
  if (!result["fallback_nodes"].empty())
    text += cat("\nnodes that fell back to reference:\n",
                lua::table_text(result["fallback_nodes"], {"node", "op", "why"}));
  if (result.contains("layers"))
    text += cat(peaks_text(result["peaks"]), "\n") +
            lua::table_text(result["layers"], {"name", "op", "backend", "kernel", "implementation",
                                               "ns", "share", "roofline"}) +
            choices_text(result["layers"]);
  return text;
}

}  // namespace

Action declare_bench(CLI::App& app, const Tool& tool) {
  struct Flags {
    std::string model;
    std::vector<std::string> shapes, inputs;
    cxx::BenchChoice choice;
    RunFlags run;
    JsonFlag json;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("model", flags->model, "the model")->required()->type_name("MODEL");
  add_shapes(app, flags->shapes);
  app.add_option("--input", flags->inputs, "an input's array (default: random, integers zeros)")
      ->type_name("NAME=FILE.npy")
      ->allow_extra_args(false);
  app.add_option("--rounds", flags->choice.rounds, "runs of each stream (default: about a second)")
      ->check(CLI::Range(1, 1000000));
  app.add_option("--streams", flags->choice.streams,
                 "requests at once on one plan, each with its share of the threads (default: 1)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--layers", flags->choice.layers,
               "time, kernel, share of the measured peaks (roofline) per layer, its "
               "implementation and what refused");
  flags->run.add(&app);
  flags->json.add(&app);
  return [flags, &tool] {
    SessionPtr session = open_for(tool, flags->run.choice, "int8");
    flags->choice.run = flags->run.choice;
    flags->choice.sample.shapes = shapes_of(flags->shapes);
    cxx::Model model = cxx::Model::load(session, flags->model);
    for (const std::string& text : flags->inputs) {
      auto [name, file] = split_input(model, text);
      if (flags->choice.sample.given.contains(name))
        throw UsageError(cat("--input ", name, ": given twice"));
      flags->choice.sample.given[name] = read_input(model, name, file);
    }
    Json result{{"model", flags->model}};
    result.update(cxx::bench(model, flags->choice));
    result["cpu_flags"] = cpu_flags();
    if (flags->json.json) return print_json(result);
    print(summary(result));
  };
}

}  // namespace tenon::command
