// SPDX-License-Identifier: Apache-2.0
// tenon inspect MODEL
#include "../module/table_text.hpp"
#include "commands.hpp"

namespace tenon::command {
namespace {

std::string ports_text(const char* title, const std::vector<cxx::Port>& ports) {
  std::string text;
  for (const cxx::Port& port : ports)
    text += cat(title, "  ", port.name, "  ", port.text(), "\n");
  return text;
}

std::string summary(const cxx::Model& model, const Json& all, bool layers) {
  std::string text = ports_text("input ", model.inputs()) + ports_text("output", model.outputs());
  text += cat("parameters  ", quantity(all["parameters"], ""), "\nbytes       ",
              quantity(all["bytes"], "B"), "\nflops       ", quantity(all["flops"], ""));
  if (uint64_t unknown = all["nodes_of_unknown_cost"])
    text += cat(" and ", unknown, " nodes of unknown cost");
  text += "\n\n";
  Json operators = Json::array();
  for (const auto& [op, count] : all["operators"].items())
    operators.push_back({{"operator", op}, {"nodes", count}});
  text += lua::table_text(operators);
  if (layers) text += "\n" + lua::table_text(all["nodes"], {"name", "op", "flops", "bytes"});
  return text;
}

}  // namespace

void declare_inspect(CLI::App& app, Tool& tool) {
  struct Flags {
    std::string model;
    bool layers = false, text = false;
    JsonFlag json;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("model", flags->model, "the model")->required()->type_name("MODEL");
  app.add_flag("--layers", flags->layers, "also each node, with its work and bytes");
  app.add_flag("--text", flags->text, "the graph in Tenon's text form instead");
  flags->json.add(&app);
  app.callback([flags, &tool] {
    tool.action = [flags, &tool] {
      cxx::Model model = cxx::Model::load(tool.open(), flags->model);
      if (flags->text) return print(model.text());
      Json all = model.inspect();
      if (flags->json.json) return print_json(all);
      print(summary(model, all, flags->layers));
    };
  });
}

}  // namespace tenon::command
