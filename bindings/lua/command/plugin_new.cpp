// SPDX-License-Identifier: Apache-2.0
// tenon plugin new NAME --role R: a folder with a plugin that builds, passes its checks, and is
// ready to be changed.
#include <filesystem>

#include "tenon/cxx/choice.hpp"
#include "tenon/cxx/file.hpp"

#include "commands.hpp"
#include "templates.hpp"

namespace tenon::command {
namespace {

namespace fs = std::filesystem;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

const Template& template_of(const std::string& role) {
  std::vector<std::string> known;
  for (const Template& one : templates()) {
    if (role == one.role || role == cat("tenon.", one.role, "/1")) return one;
    known.emplace_back(one.role);
  }
  throw UsageError(cat("plugin new: --role: ", cxx::expected_one_of(known, role)));
}

// They stand in file names, in C++ and in CMake.
void check_word(const std::string& what, const std::string& word) {
  bool fits = !word.empty() && word[0] >= 'a' && word[0] <= 'z' &&
              word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
  if (!fits)
    throw UsageError(cat("plugin new: ", what,
                         ": expected a word of small letters, digits and '_', got '", word, "'"));
}

void write_plugin(const Tool& tool,
                  const std::string& name,
                  const std::string& role,
                  const std::string& vendor) {
  const Template& chosen = template_of(role);
  check_word("NAME", name);
  check_word("--vendor", vendor);
  if (fs::exists(name))
    throw Error(TN_ALREADY_EXISTS, cat(name, ": expected a new folder, it is there"));
  std::string type;
  for (size_t i = 0; i < name.size(); ++i)
    if (name[i] != '_')
      type += i == 0 || name[i - 1] == '_' ? static_cast<char>(std::toupper(name[i])) : name[i];
  std::string domain = cat("com.", vendor), id = cat(domain, ".", name);
  std::string source = chosen.source;
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"@include@", "#include"},
                                 {"@name@", name},
                                 {"@Class@", type},
                                 {"@id@", id},
                                 {"@domain@", domain}})
    source = replaced(source, from, to);
  SessionPtr session = tool.open();
  fs::create_directories(name);
  auto put = [&](const std::string& file, const std::string& text) {
    cxx::write_file(session, (fs::path(name) / file).string(), text);
  };
  put(cat(name, ".cpp"), source);
  put("CMakeLists.txt",
      cat("cmake_minimum_required(VERSION 3.25)\nproject(", name,
          " VERSION 0.1.0 LANGUAGES CXX)\nfind_package(Tenon REQUIRED)\ntenon_add_plugin(NAME ",
          name, " ID ", id, " VENDOR ", vendor, " ", chosen.list, " ", name, ")\n"));
  put("README.md",
      cat("# ", id, "\n\n    cmake -B build -DCMAKE_PREFIX_PATH=<where Tenon is installed>\n",
          "    cmake --build build\n    tenon plugin check build/", name, ".so\n"));
  print(cat("wrote ", name, "/", name, ".cpp, CMakeLists.txt, README.md\n"));
}

}  // namespace

Action declare_plugin_new(CLI::App& app, const Tool& tool) {
  struct Flags {
    std::string name, role, vendor = "example";
  };
  auto flags = std::make_shared<Flags>();
  app.add_option("name", flags->name, "of the plugin and of its folder")
      ->required()
      ->type_name("NAME");
  std::string roles;
  for (const Template& one : templates())
    roles += cat(roles.empty() ? "" : ", ", one.role);
  app.add_option("--role", flags->role, cat("one of ", roles))->required()->type_name("R");
  app.add_option("--vendor", flags->vendor, "goes into ids, as com.VENDOR.NAME")->type_name("WORD");
  return [flags, &tool] { write_plugin(tool, flags->name, flags->role, flags->vendor); };
}

}  // namespace tenon::command
