// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the targets share: one session for the process, and a file that holds the input.

#include <cstdint>
#include <cstdlib>
#include <string>

#include <unistd.h>

#include "tenon/host/graph.h"
#include "tenon/tenon.h"

#include "behind.hpp"
#include "folders.hpp"

namespace tenon::fuzz {

inline tn_str str(const std::string& text) {
  return {text.data(), text.size()};
}

inline tenon_session* session() {
  static tenon_session* const opened = [] {
    tenon_session* out = nullptr;
    std::string config = std::string(R"({"plugin_path": [")") + tenon::test::kPluginFolder + "\"]}";
    if (tenon_open(str(config), &out)) std::abort();
    return out;
  }();
  return opened;
}

template <class Service>
const Service* service(const std::string& id) {
  const tn_host* host = tenon_host(session());
  return static_cast<const Service*>(host->get_interface(host, str(id)));
}

// What came of bad bytes must be a status with a text, or a graph that verifies; that is run.
inline void judge(tn_status* failed, tn_graph* graph) {
  static const auto* graphs = service<tn_host_graph>("tenon.host.graph/1");
  if (failed) {
    if (graph || tenon_status_message(failed).len == 0) std::abort();
    tenon_status_release(failed);
    return;
  }
  tn_status* broken = graphs->verify(graph);
  if (broken) std::abort();
  compile_and_run(session(), graph);
  graphs->release(graph);
}

// A file of these bytes, which the next one replaces.
inline std::string written(const uint8_t* data, size_t size, const std::string& suffix) {
  std::string path = "/tmp/tenon_fuzz_" + std::to_string(getpid()) + "." + suffix;
  FILE* file = std::fopen(path.c_str(), "wb");
  if (!file || std::fwrite(data, 1, size, file) != size || std::fclose(file) != 0) std::abort();
  return path;
}

inline void load(const uint8_t* data, size_t size, const std::string& format) {
  std::string path = written(data, size, format);
  tn_graph* graph = nullptr;
  tn_status* failed =
      tenon_load(session(), str(path), str(R"({"format": ")" + format + "\"}"), nullptr, &graph);
  judge(failed, graph);
  std::remove(path.c_str());
}

}  // namespace tenon::fuzz
