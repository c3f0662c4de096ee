// SPDX-License-Identifier: Apache-2.0
// tenon inspect MODEL
#include <algorithm>

#include "tenon/cxx/with_shapes.hpp"

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

bool leaves_open(const cxx::Port& port) {
  if (!port.ranked) return true;
  for (size_t i = 1; i < port.dims.size(); ++i)
    if (port.dims[i] < 0) return true;
  return false;
}

// What the model is made of. Work needs sizes: shapes', else the model's with a batch of one; where
// the model leaves more open, the nodes' work stays unknown.
Json inspected(const cxx::Model& model, const Shapes& shapes) {
  Json all = model.inspect();
  const std::vector<cxx::Port> ports = model.inputs();
  if (shapes.empty() && std::any_of(ports.begin(), ports.end(), leaves_open)) return all;
  cxx::SampleChoice choice;
  choice.shapes = shapes;
  cxx::Model sized = cxx::with_shapes(model, shapes);
  sized = sized.bind(cxx::sample_inputs(sized, choice));
  const Json work = sized.inspect();
  for (const char* key : {"flops", "nodes_of_unknown_cost", "nodes"})
    all[key] = work[key];
  all["shapes"] = Json::object();
  for (const cxx::Port& port : sized.inputs())
    all["shapes"][port.name] = port.dims;
  return all;
}

std::string work_text(const Json& all) {
  std::string text;
  if (all["flops"] > 0) text = quantity(all["flops"], "");
  if (uint64_t unknown = all["nodes_of_unknown_cost"])
    text += cat(text.empty() ? "" : " and ", unknown, " nodes of unknown cost");
  if (!all.contains("shapes")) return text + "; sizes are open: give --shape";
  for (const auto& [name, dims] : all["shapes"].items())
    text += cat("  ", name, dims.dump());
  return text;
}

std::string summary(const cxx::Model& model, const Json& all, bool layers) {
  std::string text = ports_text("input ", model.inputs()) + ports_text("output", model.outputs());
  text += cat("parameters  ", quantity(all["parameters"], ""), "\nbytes       ",
              quantity(all["bytes"], "B"), "\nflops       ", work_text(all), "\n\n");
  Json operators = Json::array();
  for (const auto& [op, count] : all["operators"].items())
    operators.push_back({{"operator", op}, {"nodes", count}});
  text += lua::table_text(operators);
  if (layers) text += "\n" + lua::table_text(all["nodes"], {"name", "op", "flops", "bytes"});
  return text;
}

}  // namespace

Action declare_inspect(CLI::App& app, const Tool& tool) {
  struct Flags {
    std::string model;
    std::vector<std::string> shapes;
    bool layers = false, text = false;
    JsonFlag json;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("model", flags->model, "the model")->required()->type_name("MODEL");
  add_shapes(app, flags->shapes);
  app.add_flag("--layers", flags->layers, "also each node, with its work and bytes");
  app.add_flag("--text", flags->text, "the graph in Tenon's text form instead");
  flags->json.add(&app);
  return [flags, &tool] {
    cxx::Model model = cxx::Model::load(tool.open(), flags->model);
    if (flags->text) return print(model.text());
    Json all = inspected(model, shapes_of(flags->shapes));
    if (flags->json.json) return print_json(all);
    print(summary(model, all, flags->layers));
  };
}

}  // namespace tenon::command
