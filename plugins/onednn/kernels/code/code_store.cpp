// SPDX-License-Identifier: Apache-2.0
#include "code_store.h"

#include <type_traits>

namespace tenon::onednn::kernels::code {
namespace {

template <class Number>
void append(std::string& key, Number number) {
  static_assert(std::is_arithmetic_v<Number> || std::is_enum_v<Number>);
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void append(std::string& key, std::span<const CodeEdge> edges) {
  append(key, edges.size());
  for (const CodeEdge& edge : edges) {
    append(key, edge.type);
    append(key, edge.quant.scale);
    append(key, edge.quant.zero_point);
    append(key, edge.is_repeated);
  }
}

std::string key_of(const Program& program,
                   std::span<const CodeEdge> sources,
                   std::span<const CodeEdge> targets,
                   Isa isa) {
  std::string key;
  append(key, isa);
  append(key, sources);
  append(key, targets);
  append(key, program.nodes.size());
  for (const tn_expr_node& node : program.nodes) {
    for (uint32_t number : {node.op, node.a, node.b, node.c})
      append(key, number);
    append(key, node.imm);
  }
  for (uint32_t result : program.results)
    append(key, result);
  return key;
}

}  // namespace

std::shared_ptr<const PointwiseCode> CodeStore::pointwise(const Program& program,
                                                          std::span<const CodeEdge> sources,
                                                          std::span<const CodeEdge> targets,
                                                          Isa isa,
                                                          std::string* why) {
  std::string key = key_of(program, sources, targets, isa);
  {
    std::lock_guard lock(mutex_);
    auto found = made_.find(key);
    if (found != made_.end())
      if (std::shared_ptr<const PointwiseCode> kept = found->second.lock()) {
        why->clear();
        return kept;
      }
  }
  std::shared_ptr<const PointwiseCode> made =
      PointwiseCode::make(program, sources, targets, isa, why);
  if (!made) return nullptr;
  std::lock_guard lock(mutex_);
  std::erase_if(made_, [](const auto& one) { return one.second.expired(); });
  made_.insert_or_assign(std::move(key), made);
  return made;
}

}  // namespace tenon::onednn::kernels::code
