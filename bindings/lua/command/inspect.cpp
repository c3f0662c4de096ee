// SPDX-License-Identifier: Apache-2.0
// tenon inspect MODEL
#include <algorithm>

#include "tenon/cxx/evaluate.hpp"
#include "tenon/cxx/layers.hpp"
#include "tenon/cxx/terminal.hpp"
#include "tenon/cxx/with_shapes.hpp"

#include "../module/table_text.hpp"
#include "commands.hpp"
#include "data_flags.hpp"

namespace tenon::command {
namespace {

std::string in_one_line(std::string_view name) {
  return cxx::visible(name, cxx::Lines::kOne);
}

std::string ports_text(const char* title, const std::vector<cxx::Port>& ports) {
  std::string text;
  for (const cxx::Port& port : ports)
    text += cat(title, "  ", in_one_line(port.name), "  ", port.text(), "\n");
  return text;
}

bool leaves_open(const cxx::Port& port) {
  if (!port.ranked) return true;
  for (size_t i = 1; i < port.dims.size(); ++i)
    if (port.dims[i] < 0) return true;
  return false;
}

// The model for these sizes only. No input is made for it: sizes may be of any size here.
cxx::Model bound(const cxx::Model& model, std::vector<cxx::Port> ports, Shapes shapes) {
  std::vector<tn_type> types;
  std::vector<const tn_type*> given;
  std::string known;
  types.reserve(ports.size());
  const bool is_asked = !shapes.empty();
  for (cxx::Port& port : ports) {
    known += cat(known.empty() ? "" : ", ", port.name);
    auto shape = shapes.extract(port.name);
    port.dims = shape.empty() ? cxx::sample_shape(port) : shape.mapped();
    types.push_back({sizeof(tn_type), TN_KIND_TENSOR, port.dtype,
                     static_cast<uint32_t>(port.dims.size()), port.dims.data(), nullptr});
    given.push_back(&types.back());
  }
  if (!shapes.empty())
    cxx::invalid(cat("shape: expected one of ", known, ", got '", shapes.begin()->first, "'"));
  tn_graph* raw = nullptr;
  try {
    cxx::check(model.services().bind(model.get(), given.data(), given.size(), &raw));
  } catch (const Error& error) {
    if (is_asked) throw;
    throw Error(error.code(), cat(error.what(), "; in place of the sizes that the model declares, ",
                                  "with 1 for open ones, others may be given with --shape"));
  }
  return {model.session(), raw};
}

// What the model is made of. Work needs sizes: shapes', else the model's with a batch of one; where
// the model leaves more open, the nodes' work stays unknown.
// Shapes go before those that the model declares: `asked` has them.
Json inspected(const cxx::Model& model, const cxx::Model& asked, const Shapes& shapes) {
  Json all = model.inspect();
  const std::vector<cxx::Port> ports = model.inputs();
  if (shapes.empty() && std::any_of(ports.begin(), ports.end(), leaves_open)) return all;
  cxx::Model sized = bound(asked, asked.inputs(), shapes);
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
    text += cat("  ", in_one_line(name), dims.dump());
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
  if (all.contains("layers"))
    text += "\n" +
            lua::table_text(all["layers"], {"name", "op", "backend", "kernel", "implementation"}) +
            choices_text(all["layers"]);
  if (all.contains("fallback_nodes") && !all["fallback_nodes"].empty())
    text += cat("\nnodes that fall back to reference:\n",
                lua::table_text(all["fallback_nodes"], {"node", "op", "why"}));
  return text;
}

// What a backend makes of the model, without running it.
void add_plan(const cxx::Model& model, const Shapes& shapes, const cxx::RunChoice& run, Json* all) {
  cxx::SampleChoice choice;
  choice.shapes = shapes;
  const std::vector<cxx::Tensor> inputs = cxx::sample_inputs(model, choice);
  cxx::Plan plan(model.bind(inputs), cxx::compile_options(*model.session(), run));
  plan.prepare(inputs);
  const Json described = plan.describe();
  (*all)["layers"] = cxx::planned_layers(described);
  (*all)["fallback_nodes"] = described.value("fallback_nodes", Json::array());
}

// How alike the values inside are on these samples; of blocks, those first that change least.
Json similarity(const cxx::Model& model, const DataFlags& data, const Json& chosen) {
  cxx::Options options(model.session(), chosen);
  cxx::Dataset samples = data.open(model.session());
  options.set("data", samples.component());
  Json report;
  model.apply("pruner.similarity", options, &report);
  std::stable_sort(report["blocks"].begin(), report["blocks"].end(),
                   [](const Json& a, const Json& b) { return a["influence"] < b["influence"]; });
  return report;
}

std::string similarity_text(const Json& found) {
  std::string text;
  if (!found["blocks"].empty())
    text = lua::table_text(found["blocks"], {"join", "influence", "cka", "parameters"}) + "\n";
  Json rows = Json::array();
  const Json& names = found["values"];
  for (size_t i = 0; i + 1 < names.size(); ++i) {
    size_t nearest = i + 1;  // among those behind it
    for (size_t j = i + 1; j < names.size(); ++j)
      if (found["cka"][i][j] > found["cka"][i][nearest]) nearest = j;
    rows.push_back({{"value", names[i]},
                    {"next", names[i + 1]},
                    {"cka", found["cka"][i][i + 1]},
                    {"most alike", names[nearest]},
                    {"its cka", found["cka"][i][nearest]}});
  }
  return text + lua::table_text(rows, {"value", "next", "cka", "most alike", "its cka"});
}

}  // namespace

std::string choices_text(const Json& layers) {
  std::string text;
  if (const Json rows = cxx::measured_of(layers); !rows.empty())
    text += cat("\nlayers whose implementation was chosen by measured times:\n",
                lua::table_text(rows, {"implementation", "layers", "first", "measured"}));
  if (const Json rows = cxx::refusals_of(layers); !rows.empty())
    text += cat("\nimplementations that refused layers:\n",
                lua::table_text(rows, {"implementation", "layers", "first", "why"}));
  return text;
}

Action declare_inspect(CLI::App& app, const Tool& tool) {
  struct Flags {
    std::string model;
    std::vector<std::string> shapes, only, skip;
    bool layers = false, text = false, similarity = false;
    DataFlags data;
    RunFlags run;
    JsonFlag json;
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("model", flags->model, "the model")->required()->type_name("MODEL");
  add_shapes(app, flags->shapes);
  app.add_flag("--layers", flags->layers, "also each node, with its work and bytes");
  app.add_flag("--text", flags->text, "the graph in Tenon's text form instead");
  app.add_flag("--similarity", flags->similarity,
               "how alike values inside are on --data (CKA), and how much residual blocks change");
  flags->data.add(&app, "samples for --similarity; no labels are needed");
  app.get_option("--similarity")->needs("--data");
  app.get_option("--data")->needs("--similarity");
  app.add_option("--only", flags->only,
                 "of --similarity: nodes by patterns of names, operators, scopes")
      ->allow_extra_args(false)
      ->needs("--similarity");
  app.add_option("--skip", flags->skip, "of --similarity: nodes that are left out")
      ->allow_extra_args(false)
      ->needs("--similarity");
  flags->run.add(&app);
  app.get_option("--backend")
      ->description(
          "also which implementation of this backend computes each layer, and who refused");
  for (const char* name : {"--precision", "--threads", "--kernel", "--backend-option"})
    app.get_option(name)->needs(app.get_option("--backend"));
  flags->json.add(&app);
  for (const char* name : {"--shape", "--layers", "--backend"}) {
    app.get_option("--text")->excludes(name);
    app.get_option("--similarity")->excludes(name);
  }
  for (const char* name : {"--similarity", "--json"})
    app.get_option("--text")->excludes(name);
  return [flags, &tool] {
    cxx::Model model = cxx::Model::load(tool.open(flags->run.choice.threads), flags->model);
    if (flags->text) return print(model.text());
    if (flags->similarity) {
      Json found;
      Json chosen = Json::object();
      if (!flags->only.empty()) chosen["only"] = flags->only;
      if (!flags->skip.empty()) chosen["skip"] = flags->skip;
      flags->data.with_advice([&] { found = similarity(model, flags->data, chosen); });
      return flags->json.json ? print_json(found) : print(similarity_text(found));
    }
    const Shapes shapes = shapes_of(flags->shapes);
    const cxx::Model asked = cxx::with_shapes(model, shapes);
    Json all = inspected(model, asked, shapes);
    if (!flags->run.choice.backend.empty()) add_plan(asked, shapes, flags->run.choice, &all);
    if (flags->json.json) return print_json(all);
    print(summary(model, all, flags->layers));
  };
}

}  // namespace tenon::command
