// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the commands of `tenon` share. A command is one file with a function that declares its
// flags and gives what it does, and one row in commands.cpp.

#include <functional>
#include <span>

#include <CLI/CLI.hpp>

#include "tenon/cxx/dataset.hpp"
#include "tenon/cxx/plan.hpp"
#include "tenon/cxx/sample_inputs.hpp"

namespace tenon::command {

using cxx::cat;
using cxx::Error;
using cxx::invalid;
using cxx::Json;
using cxx::SessionPtr;

// A wrong use of the command, found after parsing: exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using Action = std::function<void()>;

// The program while it runs one command.
struct Tool {
  std::vector<std::string> plugin_path;
  bool safe_mode = false;
  bool verbose = false;
  std::string chrome_trace;  // a file, or empty
  Action action;             // of the command that was named

  SessionPtr open(int threads = 0) const;
  void run() const;  // the action, with a trace where one is wanted

 private:
  mutable SessionPtr traced_;  // the first that was opened
};

// Of an option: a number from least to most, which NaN is not.
CLI::Validator number_from(double least, double most = 1e18);

struct RunFlags {
  cxx::RunChoice choice;
  void add(CLI::App* app);
};
struct JsonFlag {
  bool json = false;
  void add(CLI::App* app);
  // What a script returns. With --json the lines that it prints itself go to standard error, so
  // that standard output is JSON alone.
  Json returned_by(const std::function<Json()>& run) const;
};

// name=value; the value may hold further "=".
std::pair<std::string, std::string> split_pair(const std::string& text, const char* flag);
// As JSON where it is a number, true, false, a list or an object, else as text.
Json value_of(const std::string& text);
Json values_of(const std::vector<std::string>& pairs, const char* flag);
// --shape x=1x3x224x224, any number of times.
using Shapes = std::map<std::string, std::vector<int64_t>>;
void add_shapes(CLI::App& app, std::vector<std::string>& texts);
Shapes shapes_of(const std::vector<std::string>& texts);

// Throws where no model can be written to this path: asked before the work, not after it.
void check_output(const cxx::Session& session, const std::string& path);

void print(const std::string& text);  // to standard output
void print_json(const Json& value);
std::string quantity(double number, const char* unit);  // 25.6 M

struct Row {
  const char* name;
  const char* summary;
  Action (*declare)(CLI::App& app, const Tool& tool);
};
// One of them has to be named.
void declare_rows(CLI::App& app, std::span<const Row> rows, Tool& tool);
void declare_commands(CLI::App& app, Tool& tool);

// The CPU's vector instructions, as the kernel lists them.
std::string cpu_flags();

}  // namespace tenon::command
