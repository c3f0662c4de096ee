// SPDX-License-Identifier: Apache-2.0
#pragma once
// Machine code by all that it depends on: layers that repeat, and plans of one graph for other
// shapes, have theirs in common. Any thread; code lives as long as a plan holds it.

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "pointwise_code.h"

namespace tenon::onednn::kernels::code {

class CodeStore {
 public:
  // As PointwiseCode::make, once for all who ask for the same.
  std::shared_ptr<const PointwiseCode> pointwise(const Program& program,
                                                 std::span<const CodeEdge> sources,
                                                 std::span<const CodeEdge> targets,
                                                 Isa isa,
                                                 std::string* why);

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<const PointwiseCode>, std::less<>> made_;
};

}  // namespace tenon::onednn::kernels::code
