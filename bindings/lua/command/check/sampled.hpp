// SPDX-License-Identifier: Apache-2.0
#pragma once
// A row's sample as a graph.

#include "check.hpp"

namespace tenon::command::check {

struct Sampled {
  cxx::Model model;
  tn_node_id node;
};
// One random node of a row that has a sample column, with its outputs as the graph's.
Sampled sample_of(const SessionPtr& session, const tn_op* row, uint64_t seed);

// An empty graph in which the row's operator is of the row's version.
cxx::Model graph_for(const SessionPtr& session, const tn_op* row);

// Traits of a row that other plugins rely on; types of its results while sizes are not known yet.
void check_traits(const SessionPtr& session, const tn_op* row, uint64_t first_seed);
void check_open_sizes(const SessionPtr& session, const tn_op* row, uint64_t first_seed);
// The numbers of a row: its cost, and axes beside shape.
void check_cost(const SessionPtr& session, const tn_op* row, uint64_t first_seed);
void check_axes(const SessionPtr& session, const tn_op* row, uint64_t first_seed);
// Its kernel reads and writes what it was given, and keeps nothing.
void check_buffers(const SessionPtr& session, const tn_op* row, uint64_t first_seed);
void check_leaks(const SessionPtr& session, const tn_op* row, uint64_t seed);

}  // namespace tenon::command::check
