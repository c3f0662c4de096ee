// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a backend computes what `reference` computes. How far rounding may take a result is
// measured, not guessed (noise.hpp): the graph runs again with noise at floating-point values, and
// what that changes much is left out.

#include <map>
#include <string>
#include <vector>

#include "tenon/tenon.h"

#include "growth.hpp"

namespace tenon::fuzz {

// How numbers are computed by the backend under test, and how well.
struct Mode {
  const char* name;
  const char* precision;  // of the plan
  bool quantize;          // the graph has QuantizeLinear and DequantizeLinear
  bool differentiate;     // the graph is that of a gradient
  double tolerance;       // relative to 1 + the largest number of an output
  double noise;           // relative, of each element
};
inline constexpr Mode kModes[] = {
    {"fp32", "fp32", false, false, 2e-5, 1e-6},
    {"bf16", "bf16", false, false, 2e-2, 0x1p-8},
    {"int8", "fp32", true, false, 2e-5, 1e-6},
    {"gradient", "fp32", false, true, 2e-5, 1e-6},
    {"bf16_gradient", "bf16", false, true, 2e-2, 0x1p-8},
};

struct Verdict {
  bool ran = false;  // on reference
  size_t n_outputs = 0, n_decided = 0;
  std::string finding = {};
};

// What an output has to be, and by how much each element may be off; no slack: not decided.
struct Expected {
  Tensor tensor;
  std::vector<double> slack = {};
};

// How hard noise tries to explain a difference: what differs is asked again with more of it,
// louder, and at places where numbers are exact in one backend and rounded in another.
struct Doubt {
  int n_noisy;
  double loudness;
  bool is_deep;
  bool is_open;  // also within rows that give floating-point values
};
inline constexpr Doubt kDoubts[] = {
    {3, 1, false, false}, {16, 16, true, false}, {32, 128, true, false}, {32, 128, true, true}};

class Judge {
 public:
  Judge(tenon_session* session, tn_ctx* ctx, const Mode& mode, std::string backend)
      : session_(session), ctx_(ctx), mode_(mode), backend_(std::move(backend)) {}

  Verdict judge(const tn_graph* graph, const std::vector<Tensor>& inputs, uint64_t seed) const;
  Result<std::vector<Expected>> expect(const tn_graph* graph,
                                       const std::vector<Tensor>& inputs,
                                       uint64_t seed,
                                       const Doubt& doubt) const;
  // The fewest nodes that still show a finding; the values that enter are those of `reference`.
  struct Small {
    OwnedGraph graph;
    std::vector<Tensor> inputs;
    std::string finding;
  };
  Result<Small> minimise(const tn_graph* graph,
                         const std::vector<Tensor>& inputs,
                         uint64_t seed) const;

 private:
  using Values = std::map<std::string, Tensor>;  // by name
  Result<Values> values_of(const tn_graph* graph, const std::vector<Tensor>& inputs) const;
  Result<std::vector<Tensor>> run(const tn_graph* graph,
                                  const std::vector<Tensor>& inputs,
                                  std::string_view options,
                                  int times = 1) const;

  tenon_session* session_;
  tn_ctx* ctx_;
  const Mode& mode_;
  std::string backend_;
};

}  // namespace tenon::fuzz
