// SPDX-License-Identifier: Apache-2.0
// tenon plugin check FILE.so: what each component's role promises, tried out. Each component is
// checked in a process of its own: one that crashes or hangs is an answer, and the rest goes on.
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tenon/host/op.h"
#include "tenon/role/op.h"

#include "check/check.hpp"
#include "check/surroundings.hpp"
#include "commands.hpp"

namespace tenon::command {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kReportFd = 3;

struct Flags {
  std::string file, sample, junit, only_role, only_id;
  std::vector<std::string> options;
  int seconds = 60;
  uint64_t seed = 0;
  JsonFlag json;
};

struct Counts {
  int passed = 0, failed = 0, skipped = 0;
  void add(const Json& result) {
    (result == "passed" ? passed : result == "failed" ? failed : skipped) += 1;
  }
  int all() const { return passed + failed + skipped; }
};

SessionPtr open(const Tool& tool, const fs::path& file) {
  Tool here = tool;  // this file comes before others of the same id
  here.plugin_path.insert(here.plugin_path.begin(), fs::absolute(file).parent_path().string());
  return here.open();
}

Json description_of(const SessionPtr& session, const fs::path& file) {
  cxx::TextSink text;
  cxx::check(tenon_plugin_list(session->raw(), text.get()));
  for (const Json& plugin : Json::parse(text.text()))
    if (fs::equivalent(plugin["file"].get<std::string>(), file)) return plugin;
  throw Error(TN_INVALID_ARGUMENT, cat(file.string(),
                                       ": expected a plugin (a library with the section "
                                       ".tenon.plugin), got another file"));
}

std::vector<std::pair<std::string, std::string>> loaded_operators(const SessionPtr& session) {
  const tn_host* host = tenon_host(session->raw());
  const auto* table =
      static_cast<const tn_host_op*>(host->get_interface(host, cxx::str("tenon.host.op/1")));
  std::vector<std::pair<std::string, std::string>> out;
  for (uint64_t i = 0; i < table->count(session->ctx()); ++i) {
    const tn_op* row = table->at(session->ctx(), i);
    out.emplace_back(cxx::view(row->domain), cxx::view(row->type));
  }
  out.erase(std::unique(out.begin(), out.end()), out.end());  // versions stand side by side
  return out;
}

// Another file of the same folder with the plugin's id: which of the two is loaded is chance.
std::string twin_of(const SessionPtr& session, const Json& plugin) {
  cxx::TextSink text;
  cxx::check(tenon_plugin_list(session->raw(), text.get()));
  const fs::path file = plugin["file"].get<std::string>();
  for (const Json& other : Json::parse(text.text())) {
    const fs::path theirs = other["file"].get<std::string>();
    bool is_beside = other["id"] == plugin["id"] && theirs.parent_path() == file.parent_path();
    if (is_beside && theirs != file)
      return cat("expected a file for each plugin, got two with one id, ",
                 plugin["id"].get<std::string>(), ": also ", theirs.filename().string());
  }
  return {};
}

// The child: one component, its report to the given file descriptor.
void check_one(const Tool& tool, const Flags& flags) {
  check::Report report(kReportFd);
  check::Subject subject;
  subject.session = open(tool, flags.file);
  subject.role = flags.only_role;
  subject.id = flags.only_id;
  subject.sample = flags.sample;
  subject.seed = flags.seed;
  check::Surroundings before = check::Surroundings::now();
  bool loaded = false;
  report.check("load", [&] {
    cxx::check(
        tenon_plugin_load(subject.session->raw(), cxx::str(fs::absolute(flags.file).string())));
    subject.operators = loaded_operators(subject.session);
    loaded = true;
  });
  if (!loaded) return report.done();
  report.check("surroundings", [&] {
    std::string change = before.change(check::Surroundings::now(), flags.file);
    if (!change.empty()) check::broken(change);
  });
  for (const Json& one : cxx::list_components(*subject.session, subject.role))
    if (one["id"] == subject.id) subject.schema = one["schema"];
  if (!subject.schema.is_object()) subject.schema = Json::object();
  std::string missing;
  Json given = values_of(flags.options, "--option");
  subject.options = check::sample_options(subject.schema, &missing);
  for (const auto& [key, value] : given.items()) {
    if (!subject.schema.value("properties", Json::object()).contains(key)) continue;
    subject.options[key] = value;
    missing.clear();
  }
  if (!missing.empty()) {
    report.skip("all", missing);
    return report.done();
  }
  check::check_component(subject, report);
  if (check::Suite suite = check::suite_of(subject.role)) suite(subject, report);
  report.done();
}

// Starts this program again for one component; its report comes through a pipe, and what it prints
// into a file.
pid_t start(
    const Tool& tool, const Flags& flags, const Json& component, int write_end, int printed) {
  std::vector<std::string> words{"tenon"};
  for (const std::string& folder : tool.plugin_path)
    words.insert(words.end(), {"--plugin-path", folder});
  words.insert(words.end(), {"plugin", "check", flags.file, "--only-role", component["role"],
                             "--only-id", component["id"]});
  words.insert(words.end(), {"--seed", std::to_string(flags.seed)});
  if (!flags.sample.empty()) words.insert(words.end(), {"--sample", flags.sample});
  for (const std::string& option : flags.options)
    words.insert(words.end(), {"--option", option});
  std::vector<char*> arguments;
  for (std::string& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = fork();
  if (child != 0) return child;
  dup2(write_end, kReportFd);
  int nowhere = ::open("/dev/null", O_WRONLY);
  dup2(nowhere, STDERR_FILENO);
  dup2(printed, STDOUT_FILENO);
  execv("/proc/self/exe", arguments.data());
  _exit(127);
}

// All that the child writes until it ends, or until its time is over; then it is stopped.
std::string listen(int read_end, pid_t child, int seconds, std::string* end) {
  std::string text;
  auto deadline = Clock::now() + std::chrono::seconds(seconds);
  bool late = false;
  for (char buffer[4096];;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd wanted{read_end, POLLIN, 0};
    late = left.count() <= 0 || poll(&wanted, 1, static_cast<int>(left.count())) == 0;
    ssize_t got = late ? 0 : read(read_end, buffer, sizeof buffer);
    if (got <= 0) break;
    text.append(buffer, static_cast<size_t>(got));
  }
  if (late) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if (late) {
    *end = cat("it was not done after ", seconds, " s");
  } else if (WIFSIGNALED(status)) {
    *end = cat("it crashed: ", strsignal(WTERMSIG(status)));
  } else if (WEXITSTATUS(status) != 0) {
    *end = cat("it ended the process with code ", WEXITSTATUS(status));
  }
  return text;
}

Json check_apart(const Tool& tool, const Flags& flags, const Json& component) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw Error(TN_RESOURCE_EXHAUSTED, "no pipe can be opened");
  int printed = memfd_create("printed", MFD_CLOEXEC);
  pid_t child = start(tool, flags, component, ends[1], printed);
  close(ends[1]);
  std::string died;
  std::string text = listen(ends[0], child, flags.seconds, &died);
  close(ends[0]);
  Json results = Json::array();
  std::string begun = "load";
  bool is_done = false;
  for (size_t at = 0; at < text.size();) {
    size_t stop = std::min(text.find('\n', at), text.size());
    Json line = Json::parse(text.substr(at, stop - at), nullptr, false);
    at = stop + 1;
    if (line.contains("begin")) begun = line["begin"];
    is_done = is_done || line.contains("done");
    if (line.contains("check")) results.push_back(std::move(line));
  }
  if (died.empty() && !is_done) died = "it ended the process with code 0";
  off_t n_printed = lseek(printed, 0, SEEK_END);
  close(printed);
  if (n_printed > 0)
    results.push_back({{"check", "quiet"},
                       {"result", "failed"},
                       {"why", cat("expected nothing to be printed, got ", n_printed, " bytes")}});
  if (!died.empty()) results.push_back({{"check", begun}, {"result", "failed"}, {"why", died}});
  return results;
}

void show(const std::string& id, const std::string& role, const Json& results) {
  std::string text = cat(id, "  (", role, ")\n");
  for (const Json& one : results) {
    std::string result = one["result"], why = one["why"];
    text += cat("  ", result, "  ", one["check"].get<std::string>(), why.empty() ? "" : ": ", why,
                "\n");
  }
  print(text);
}

void check_file(const Tool& tool, const Flags& flags) {
  if (!fs::is_regular_file(flags.file))
    throw Error(TN_NOT_FOUND, cat(flags.file, ": expected a plugin, there is no such file"));
  SessionPtr session = open(tool, flags.file);
  Json plugin = description_of(session, flags.file);
  Json all = Json::array();
  Json of_file = Json::array();
  std::vector<std::string> faults = check::library_faults(flags.file);
  // What is not described is neither loaded nor tried below.
  if (!plugin["usable"].get<bool>()) {
    faults.push_back(plugin["why"]);
  } else if (plugin["components"].empty()) {
    faults.emplace_back("expected its description to name a component, got none");
  }
  if (std::string twin = twin_of(session, plugin); !twin.empty()) faults.push_back(twin);
  for (const std::string& fault : faults)
    of_file.push_back({{"check", "library"}, {"result", "failed"}, {"why", fault}});
  if (of_file.empty()) of_file.push_back({{"check", "library"}, {"result", "passed"}, {"why", ""}});
  all.push_back({{"component", plugin["id"]}, {"role", "plugin"}, {"checks", of_file}});
  for (const Json& component : plugin["components"]) {
    Json no_role =
        Json::array({{{"check", "role"}, {"result", "failed"}, {"why", component["why"]}}});
    all.push_back(
        {{"component", component["id"]},
         {"role", component["role"]},
         {"checks", component["why"] == "" ? check_apart(tool, flags, component) : no_role}});
  }
  Counts counts;
  for (const Json& one : all) {
    for (const Json& result : one["checks"])
      counts.add(result["result"]);
    if (!flags.json.json) show(one["component"], one["role"], one["checks"]);
  }
  if (!flags.junit.empty()) check::write_junit(flags.junit, all);
  if (flags.json.json)
    print_json(all);
  else
    print(
        cat(counts.passed, " passed, ", counts.failed, " failed, ", counts.skipped, " skipped\n"));
  if (counts.failed > 0)
    throw Error(TN_FAILED_PRECONDITION,
                cat(flags.file, ": ", counts.failed, " of ", counts.all(), " checks failed"));
}

}  // namespace

Action declare_plugin_check(CLI::App& app, const Tool& tool) {
  auto flags = std::make_shared<Flags>();
  app.add_option("file", flags->file, "the library")->required()->type_name("FILE");
  app.add_option("--option", flags->options, "an option that components are made with")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option("--sample", flags->sample, "a file that its reader can read")->type_name("FILE");
  app.add_option("--seconds", flags->seconds, "for each component")->check(CLI::Range(1, 3600));
  app.add_option("--seed", flags->seed, "where random choices begin")
      ->type_name("N")
      ->check(number_from(0));
  app.add_option("--junit", flags->junit, "also write the results there, as XML for build servers")
      ->type_name("FILE");
  app.add_option("--only-role", flags->only_role)->group("");  // of the processes that it starts
  app.add_option("--only-id", flags->only_id)->group("");
  flags->json.add(&app);
  return [flags, &tool] {
    flags->only_id.empty() ? check_file(tool, *flags) : check_one(tool, *flags);
  };
}

}  // namespace tenon::command
