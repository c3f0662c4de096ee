// SPDX-License-Identifier: Apache-2.0
// A reader answers whatever bytes it is given; a writer leaves a whole file or none.
#include "tenon/role/reader.h"

#include <filesystem>
#include <fstream>

#include "check.hpp"
#include "guarded.hpp"

namespace tenon::command::check {
namespace {

namespace fs = std::filesystem;

// A folder that ends with the scope.
struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "tenon_check_XXXXXX").string();
    require(mkdtemp(name.data()) != nullptr, "no temporary folder");
    path = name;
  }
  Folder(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

void write_bytes(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}
std::string read_bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Reads with this very reader; a graph that comes out keeps the rules.
void answered(const Subject& subject, const fs::path& path) {
  Json options = subject.options;
  options["format"] = subject.id;
  try {
    cxx::Model model = cxx::Model::load(subject.session, path.string(), options);
    cxx::check(model.services().verify(model.get()));
  } catch (const cxx::Error& failed) {
    require(*failed.what() != '\0', "expected a message, got a status without one");
    require_provided(failed.what());
  }
}

void noise(const Subject& subject, std::mt19937_64& random) {
  Folder folder;
  fs::path path = folder.path / "noise.bin";
  for (size_t size : {0, 1, 7, 8, 64, 4096, 70000}) {
    for (int round = 0; round < 8; ++round) {
      std::string bytes(size, '\0');
      for (char& c : bytes)
        c = static_cast<char>(random());
      write_bytes(path, bytes);
      answered(subject, path);
    }
  }
}

void probes(const Subject& subject, std::mt19937_64& random) {
  cxx::Component made = subject.make();
  void* self = nullptr;
  const auto* table = made.table<tn_reader>(subject.role, &self);
  std::string bytes(4096, '\0');
  for (char& c : bytes)
    c = static_cast<char>(random());
  for (size_t size : {size_t{0}, size_t{3}, bytes.size()}) {
    GuardedArray<char> head({bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size)});
    int32_t sure = table->probe(self, {head.data(), size}, cxx::str("file.no_such_format"));
    require(sure == 0, cat("random bytes: expected the probe to say 0, got ", sure));
  }
}

void mutated(const Subject& subject, std::mt19937_64& random) {
  Folder folder;
  std::string whole = read_bytes(subject.sample);
  require(!whole.empty(), cat(subject.sample, ": cannot be read, or is empty"));
  fs::path path = folder.path / fs::path(subject.sample).filename();
  for (int round = 0; round < 200; ++round) {
    std::string bytes = whole;
    if (round % 4 == 0) bytes.resize(random() % bytes.size());
    for (size_t i = 0; i < 1 + random() % 8 && !bytes.empty(); ++i)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    write_bytes(path, bytes);
    answered(subject, path);
  }
}

}  // namespace

void check_reader(Subject& subject, Report& report) {
  std::mt19937_64 random(7);
  report.check("probe", [&] { probes(subject, random); });
  report.check("random bytes", [&] { noise(subject, random); });
  if (subject.sample.empty())
    report.skip("mutated file", "give a file of its format with --sample");
  else
    report.check("mutated file", [&] { mutated(subject, random); });
}

void check_writer(Subject& subject, Report& report) {
  const std::string extension =
      subject.schema.contains("extensions") ? subject.schema["extensions"][0] : ".bin";
  Json options = subject.options;
  options["format"] = subject.id;
  cxx::Model model = parse_model(subject.session, zoo()[3].second);
  report.check("same bytes", [&] {
    Folder folder;
    for (const char* name : {"one", "two"})
      model.save((folder.path / (name + extension)).string(), options);
    std::string one = read_bytes(folder.path / ("one" + extension));
    require(!one.empty() && one == read_bytes(folder.path / ("two" + extension)),
            "the same graph written twice: expected the same bytes");
  });
  report.check("whole or not at all", [&] {
    Folder folder;
    fs::path path = folder.path / "missing" / ("file" + extension);
    bool failed = false;
    try {
      model.save(path.string(), options);
    } catch (const cxx::Error&) {
      failed = true;
    }
    require(failed, "a folder that is not there: expected a failure");
    require(fs::is_empty(folder.path), "after a failure: expected no file to be left");
  });
}

}  // namespace tenon::command::check
