// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

#include <unistd.h>

#include "tenon/cxx/file.hpp"
#include "tenon/cxx/terminal.hpp"

#include "terminal.hpp"

namespace tenon::command {
namespace {

// Throws where no file can be written to this path: asked before the work, not after it.
void check_file(const std::string& path, const char* flag) {
  namespace fs = std::filesystem;
  auto refuse = [&](int32_t code, std::string_view why) {
    throw Error(code, cat(flag, " ", path, ": ", why));
  };
  if (path.empty() || path.back() == '/')
    refuse(TN_INVALID_ARGUMENT, "expected the name of a file, got none");
  std::error_code ignored;
  fs::path folder = fs::absolute(path, ignored).parent_path();
  if (fs::is_directory(path, ignored)) refuse(TN_INVALID_ARGUMENT, "expected a file, got a folder");
  if (!fs::is_directory(folder, ignored))
    refuse(TN_NOT_FOUND, cat("expected a folder ", folder.string(), ", got none; make it first"));
  if (access(folder.c_str(), W_OK) != 0)
    refuse(TN_PERMISSION_DENIED, cat("the folder ", folder.string(), " cannot be written to"));
}

constexpr const char* kBackendOption = "--backend-option";

// What has a flag of its own is given by that, so that nothing is said twice.
void refuse_flags_as_options(const Json& options) {
  for (const char* name : {"backend", "precision", "threads", "kernels"})
    if (options.contains(name))
      throw UsageError(cat(kBackendOption, " ", name, ": expected the flag --",
                           name == std::string_view("kernels") ? "kernel" : name));
}

}  // namespace

SessionPtr Tool::open(int threads) const {
  Json config = {{"report_crashes", true}};
  if (!plugin_path.empty()) config["plugin_path"] = plugin_path;
  if (safe_mode) config["safe_mode"] = true;
  if (threads > 0) config["threads"] = threads;
  auto session = std::make_shared<cxx::Session>(config);
  watch_terminal(*session, verbose);
  if (!chrome_trace.empty() && !traced_) {
    traced_ = session;
    session->start_trace();
  }
  return session;
}

void Tool::run() const {
  if (!chrome_trace.empty()) check_file(chrome_trace, "--chrome-trace");
  auto write_trace = [this] {
    if (!traced_) return;
    cxx::write_file(traced_, chrome_trace, traced_->stop_trace());
    traced_.reset();
  };
  try {
    action();
  } catch (...) {
    write_trace();  // what happened before the failure is wanted most
    throw;
  }
  write_trace();
}

CLI::Validator number_from(double least, double most) {
  auto fault = [least, most](const std::string& text) -> std::string {
    double number = 0;
    const char* end = text.data() + text.size();
    auto [read, wrong] = std::from_chars(text.data(), end, number);
    if (wrong == std::errc() && read == end && number >= least && number <= most) return "";
    return cat("expected a number from ", least, " to ", most, ", got '", text, "'");
  };
  return {fault, most < 1e18 ? cat("in [", least, " - ", most, "]") : ""};
}

void RunFlags::add(CLI::App* app) {
  app->add_option("--backend", choice.backend,
                  "backend to run on (default: what this machine is best with)")
      ->type_name("ID");
  app->add_option("--precision", choice.precision,
                  "of floating point, as the backend has them (onednn: fp32, bf16, int8)")
      ->type_name("P");
  app->add_option("--threads", choice.threads, "threads to use (default: all cores)")
      ->check(CLI::Range(1, 4096))
      ->type_name("N");
  app->add_option("--kernel", choice.kernels,
                  "a fused kernel of a plugin, for the places that its pattern fits")
      ->type_name("ID")
      ->allow_extra_args(false);
  app->add_option_function<std::vector<std::string>>(
         kBackendOption,
         [this](const std::vector<std::string>& pairs) {
           choice.options = values_of(pairs, kBackendOption);
           refuse_flags_as_options(choice.options);
         },
         "an option of the backend's own (tenon plugin info BACKEND lists them)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

void JsonFlag::add(CLI::App* app) {
  app->add_flag("--json", json, "print JSON");
}

std::pair<std::string, std::string> split_pair(const std::string& text, const char* flag) {
  size_t at = text.find('=');
  if (at == std::string::npos || at == 0)
    throw UsageError(cat(flag, ": expected NAME=VALUE, got '", text, "'"));
  return {text.substr(0, at), text.substr(at + 1)};
}

Json value_of(const std::string& text) {
  static constexpr int kMostLevels = 64;  // what reads and prints values calls itself for each
  auto is_shallow = [](int level, Json::parse_event_t, const Json&) {
    if (level > kMostLevels)
      throw UsageError(cat("expected lists within lists of at most ", kMostLevels,
                           " levels as a value, got more"));
    return true;
  };
  Json value = Json::parse(text, is_shallow, false);
  if (value.is_discarded() && text.find('.') != std::string::npos) {  // .9 and 5. are no JSON
    double number = 0;
    const char* end = text.data() + text.size();
    auto [read, wrong] = std::from_chars(text.data(), end, number);
    if (wrong == std::errc() && read == end) return number;
  }
  return value.is_discarded() || value.is_null() ? Json(text) : value;
}

Json values_of(const std::vector<std::string>& pairs, const char* flag) {
  Json values = Json::object();
  for (const std::string& pair : pairs) {
    auto [name, value] = split_pair(pair, flag);
    if (values.contains(name)) throw UsageError(cat(flag, " ", name, ": given twice"));
    values[name] = value_of(value);
  }
  return values;
}

void add_shapes(CLI::App& app, std::vector<std::string>& texts) {
  app.add_option("--shape", texts,
                 "shape of an input, also in place of the one that the model declares")
      ->type_name("NAME=1x3x224x224")
      ->allow_extra_args(false);
}

Shapes shapes_of(const std::vector<std::string>& texts) {
  Shapes shapes;
  for (const std::string& text : texts) {
    const size_t last = text.rfind('=');  // sizes have none, names may
    auto [name, sizes] = last == std::string::npos || last == 0
                             ? split_pair(text, "--shape")
                             : std::pair(text.substr(0, last), text.substr(last + 1));
    auto [at_name, is_new] = shapes.try_emplace(name);
    if (!is_new) throw UsageError(cat("--shape: expected one shape for ", name, ", got two"));
    std::vector<int64_t>& shape = at_name->second;
    const char* at = sizes.data();
    const char* end = at + sizes.size();
    while (at < end) {
      int64_t dim = -1;
      auto [next, failed] = std::from_chars(at, end, dim);
      bool more = next < end && *next == 'x' && next + 1 < end;
      if (failed != std::errc() || dim < 0 || (next < end && !more))
        throw UsageError(cat("--shape: expected NAME=1x3x224x224, got '", text, "'"));
      shape.push_back(dim);
      at = more ? next + 1 : next;
    }
  }
  return shapes;
}

void check_output(const cxx::Session& session, const std::string& path) {
  check_file(path, "-o");
  cxx::component_for_file(session, "tenon.writer/1", path);  // or says which endings there are
}

void print(const std::string& text) {
  clear_progress();
  if (!cxx::print_text(text)) throw Error(TN_DATA_LOSS, "standard output: cannot be written to");
}

namespace {

// While it lives, standard output is where standard error is.
class ToStandardError {
 public:
  ToStandardError() {
    std::fflush(stdout);
    kept_ = dup(STDOUT_FILENO);
    if (kept_ >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0) return;
    if (kept_ >= 0) close(kept_);
    throw Error(TN_RESOURCE_EXHAUSTED, "standard output: cannot be set aside for --json");
  }
  ~ToStandardError() {
    std::fflush(stdout);
    std::clearerr(stdout);  // what standard error did not take
    dup2(kept_, STDOUT_FILENO);
    close(kept_);
  }
  ToStandardError(const ToStandardError&) = delete;

 private:
  int kept_;
};

}  // namespace

Json JsonFlag::returned_by(const std::function<Json()>& run) const {
  std::optional<ToStandardError> aside;
  if (json) aside.emplace();
  return run();
}

void print_json(const Json& value) {
  print(cxx::dump(value, 2) + "\n");
}

std::string quantity(double number, const char* unit) {
  static constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P"};
  size_t prefix = 0;
  // 999.96 would be shown as 1000.
  for (; number >= 999.95 && prefix + 1 < std::size(kPrefixes); ++prefix)
    number /= 1000;
  char text[64];
  std::snprintf(text, sizeof text, "%.4g %s%s", number, kPrefixes[prefix], unit);
  return text;
}

std::string cpu_flags() {
  static constexpr std::string_view kWanted[] = {
      "avx2",        "fma",         "avx512f",  "avx512_vnni", "avx_vnni",
      "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16",    "amx_int8"};
  std::ifstream info("/proc/cpuinfo");
  std::string found;
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("flags")) continue;
    line += ' ';
    for (std::string_view flag : kWanted) {
      if (line.find(cat(" ", flag, " ")) != std::string::npos)
        found += cat(found.empty() ? "" : " ", flag);
    }
    break;
  }
  return found.empty() ? "unknown" : found;
}

}  // namespace tenon::command
