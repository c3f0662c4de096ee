// SPDX-License-Identifier: Apache-2.0
#pragma once
// Changing a graph, for suites of components that write into one.

#include <string>
#include <utility>
#include <vector>

#include "check.hpp"

namespace tenon::command::check {

// A transaction; rolled back unless it is committed.
class Edit {
 public:
  Edit(const SessionPtr& session, tn_graph* graph) : session_(session) {
    cxx::check(session->edit->begin(graph, &raw_));
  }
  Edit(const Edit&) = delete;
  ~Edit() {
    if (raw_) session_->edit->rollback(raw_);
  }
  void commit() { cxx::check(session_->edit->commit(std::exchange(raw_, nullptr))); }
  tn_edit* raw() const { return raw_; }
  const tn_graph* graph() const { return session_->edit->graph(raw_); }
  std::vector<tn_value_id> ends(tn_node_id node, uint32_t side) const {
    std::vector<tn_value_id> out;
    for (uint64_t i = 0; i < session_->graph->io_count(graph(), node, side); ++i)
      out.push_back(session_->graph->io_at(graph(), node, side, i));
    return out;
  }
  void output(const std::string& name, tn_value_id value) const {
    cxx::check(session_->edit->add_output(raw_, cxx::str(name), value));
  }
  tn_value_id input(const std::string& name,
                    uint32_t dtype,
                    const std::vector<int64_t>& dims) const {
    tn_type type{sizeof type, TN_KIND_TENSOR, dtype, static_cast<uint32_t>(dims.size()),
                 dims.data(), nullptr};
    tn_value_id out = 0;
    cxx::check(session_->edit->add_input(raw_, cxx::str(name), &type, &out));
    return out;
  }

 private:
  SessionPtr session_;
  tn_edit* raw_ = nullptr;
};

}  // namespace tenon::command::check
