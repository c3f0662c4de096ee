// SPDX-License-Identifier: Apache-2.0
#pragma once
// How many singular values of an unfolded weight are kept.

#include "tenon/sdk/any.hpp"

#include "algorithms/kernel.hpp"

namespace tenon::decomposer {

enum class RankKind { kFixed, kEnergy, kError, kEvbmf };

struct RankRule {
  RankKind kind = RankKind::kEvbmf;
  int64_t fixed = 0;
  double energy = 0.9;   // kEnergy: share of the squared norm that is kept
  double error = 0.1;    // kError: of the layer, relative
  double weaken = 0;     // kEvbmf: from 0, its rank, to 1, all
  double min_error = 0;  // a lower error than this is not paid for with rank
  int64_t multiple = 1;  // ranks by rule are rounded up to a multiple

  // From the options rank, energy, error, weaken, min_error and multiple; `rank` may be a number.
  static Result<RankRule> read(const Options& options);
  // The same by a share of energy; a rank that is given stays.
  RankRule at_energy(double share) const;
};

// Empty where the rule gives no number over the most that there can be.
std::string refuse_rank(std::string_view option, const RankRule& rule, int64_t most);

// values: singular values of [rows, cols], falling. n_modes: how many unfoldings share the error.
int64_t choose_rank(
    const RankRule& rule, const Vector& values, int64_t rows, int64_t cols, int64_t n_modes);

// These options in a component's schema, JSON without braces. The rank itself, for a method that
// has one:
#define TENON_RANK_OPTION                                                        \
  R"("rank": {"type": ["integer", "string"], "minimum": 1, "default": "evbmf",)" \
  R"("needs": {"budget": "absent", "time": "absent"},)"                          \
  R"("description": "a number, or how to find it: evbmf, energy, error"})"
// How it is found:
#define TENON_RANK_OPTIONS                                                               \
  R"("energy": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 0.9,)" \
  R"("needs": {"rank": ["energy"], "budget": "absent", "time": "absent"},)"              \
  R"("description": "rank energy: share of the squared norm of a weight that is )"       \
  R"(kept"},)"                                                                           \
  R"("error": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1,)"         \
  R"("needs": {"rank": ["error"], "budget": "absent", "time": "absent"},)"               \
  R"("default": 0.1, "description": "rank error: the least ranks whose relative error )" \
  R"(is at most this"},)"                                                                \
  R"("weaken": {"type": "number", "minimum": 0, "maximum": 1, "default": 0,)"            \
  R"("needs": {"rank": ["evbmf"], "budget": "absent", "time": "absent"},)"               \
  R"("description": "rank evbmf: 0 takes its rank, 1 the full one"},)"                   \
  R"("min_error": {"type": "number", "minimum": 0, "default": 0,)"                       \
  R"("needs": {"rank": ["evbmf", "energy", "error"]},)"                                  \
  R"("description": "ranks are lowered while the relative error stays under this"},)"    \
  R"("multiple": {"type": "integer", "minimum": 1, "default": 1,)"                       \
  R"("needs": {"rank": ["evbmf", "energy", "error"]},)"                                  \
  R"("description": "ranks by rule are rounded up to a multiple of this"})"

}  // namespace tenon::decomposer
