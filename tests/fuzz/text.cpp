// SPDX-License-Identifier: Apache-2.0
// Bytes as the text form of a graph: what parses prints, and that parses to the same text.
#include "fuzz_session.hpp"

namespace {

using tenon::fuzz::str;

const tn_host_graph* graphs() {
  static const auto* service = tenon::fuzz::service<tn_host_graph>("tenon.host.graph/1");
  return service;
}

std::string printed(const tn_graph* graph) {
  std::string text;
  tn_sink sink{&text, [](void* self, const void* bytes, uint64_t size) -> tn_status* {
                 static_cast<std::string*>(self)->append(static_cast<const char*>(bytes), size);
                 return nullptr;
               }};
  if (graphs()->print(graph, TN_PRINT_DATA, &sink)) std::abort();
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const tn_host* host = tenon_host(tenon::fuzz::session());
  tn_graph* graph = nullptr;
  tn_str text{reinterpret_cast<const char*>(data), size};
  tn_status* failed = graphs()->parse(host->ctx, text, &graph);
  if (!failed) {
    std::string once = printed(graph);
    tn_graph* again = nullptr;
    if (graphs()->parse(host->ctx, str(once), &again) || printed(again) != once) std::abort();
    graphs()->release(again);
  }
  tenon::fuzz::judge(failed, graph);
  return 0;
}
