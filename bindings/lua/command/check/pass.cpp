// SPDX-License-Identifier: Apache-2.0
// A pass changes the graph that it is given, keeps the rules of graphs, and stops when asked.
#include <optional>

#include "check.hpp"

namespace tenon::command::check {
namespace {

// What apply leaves: the model, or the failure's text.
struct Applied {
  std::optional<cxx::Model> model;
  std::string report, failure;
};

Applied apply(const Subject& subject, const cxx::Model& model, const tn_cancel* cancel = nullptr) {
  cxx::Options options(subject.session, subject.options);
  cxx::TextSink report;
  tn_graph* out = nullptr;
  Applied applied;
  try {
    cxx::check(tenon_apply(subject.session->raw(), model.get(), cxx::str(subject.id), options.get(),
                           cancel, report.get(), &out));
    applied.model.emplace(subject.session, out);
    applied.report = report.text();
  } catch (const cxx::Error& failed) {
    applied.failure = cat("status ", failed.code(), ": ", failed.what());
    require(out == nullptr, "expected no graph beside a failure, got one");
  }
  return applied;
}

std::string full_text(const cxx::Model& model) {
  cxx::TextSink text;
  cxx::check(model.services().print(model.get(), TN_PRINT_DATA, text.get()));
  return text.text();
}

void one_graph(const Subject& subject, const std::string& name, const std::string& text) {
  cxx::Model model = parse_model(subject.session, text);
  std::string before = full_text(model);
  Applied first = apply(subject, model);
  require(full_text(model) == before, cat(name, ": expected the input graph as it was"));
  require(first.failure.find("left an edit") == std::string::npos, cat(name, ": ", first.failure));
  require_provided(first.failure);
  if (!first.model) return;  // it may refuse, with a reason that the status has
  cxx::check(model.services().verify(first.model->get()));
  require(first.report.empty() || Json::accept(first.report),
          cat(name, ": expected a report in JSON, got ", first.report));
  auto names = [](const std::vector<cxx::Port>& ports) {
    std::vector<std::string> out;
    for (const cxx::Port& port : ports)
      out.push_back(port.name);
    return out;
  };
  require(names(model.inputs()) == names(first.model->inputs()) &&
              names(model.outputs()) == names(first.model->outputs()),
          cat(name, ": expected the names of inputs and outputs as they were"));
  Applied second = apply(subject, model);
  require(second.model && full_text(*second.model) == full_text(*first.model),
          cat(name, ": applied twice to the same graph: expected the same result"));
}

void cancelled(const Subject& subject) {
  tn_cancel* cancel = nullptr;
  cxx::check(tenon_cancel_new(subject.session->raw(), &cancel));
  tenon_cancel_request(cancel);
  std::string large = "graph {\n  input %v0: f32[2]\n";
  for (int i = 0; i < 2000; ++i)
    large += cat("  %v", i + 1, ": f32[2] = Identity(%v", i, ") @n", i, "\n");
  cxx::Model model = parse_model(subject.session, large + "  output y = %v2000\n}\n");
  Applied applied = apply(subject, model, cancel);
  tenon_cancel_free(cancel);
  require(!applied.model || applied.model->text() == model.text(),
          "2,000 nodes, a stop already requested: expected CANCELLED, it went on and changed the "
          "graph");
}

}  // namespace

void check_pass(Subject& subject, Report& report) {
  report.check("graphs", [&] {
    for (const auto& [name, text] : zoo())
      one_graph(subject, name, text);
  });
  report.check("cancel", [&] { cancelled(subject); });
}

}  // namespace tenon::command::check
