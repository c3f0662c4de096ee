// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `tenon plugin check` asks of a component. A suite is one file with a function and one row in
// suites.cpp. It runs in a process of its own, so a crash is an answer like any other.

#include <functional>
#include <random>
#include <string>

#include "tenon/role/op.h"

#include "tenon/cxx/plan.hpp"

namespace tenon::command::check {

using cxx::cat;
using cxx::Json;
using cxx::SessionPtr;

// One component under test.
struct Subject {
  SessionPtr session;
  std::string role, id, plugin;
  Json schema;
  Json options;                                                // that it is made with
  std::vector<std::pair<std::string, std::string>> operators;  // rows of the plugin: domain, type
  std::string sample;                                          // a file, for readers and data sets
  uint64_t seed = 0;                                           // where random choices begin

  cxx::Component make(const Json& given) const;
  cxx::Component make() const { return make(options); }
};

// A new component of the subject's and its table.
template <class Table>
struct Made {
  cxx::Component component;
  void* self = nullptr;
  const Table* table = nullptr;
  explicit Made(const Subject& subject)
      : component(subject.make()), table(component.table<Table>(subject.role, &self)) {}
};

// Thrown by a check that finds nothing to look at.
struct Skipped {
  std::string why;
};

// Says what happens as lines of JSON: {"begin": name}, then {"check", "result", "why"}.
class Report {
 public:
  explicit Report(int fd) : fd_(fd) {}
  // body throws where the component does not do what it promised, or Skipped.
  void check(const std::string& name, const std::function<void()>& body);
  void skip(const std::string& name, const std::string& why);
  void done() { line({{"done", true}}); }  // the last that is said

 private:
  void line(const Json& what);
  int fd_;
};

[[noreturn]] inline void broken(const std::string& why) {
  throw cxx::Error(TN_FAILED_PRECONDITION, why);
}
inline void require(bool kept, const std::string& why) {
  if (!kept) broken(why);
}
// body(i) on so many threads at once; the first failure is thrown when all have ended.
void at_once(size_t n_threads, const std::function<void(size_t)>& body);
// The same, again and again for so long that threads interrupt each other also where all CPUs are
// busy: what they share shows.
void beside_others(size_t n_threads, const std::function<void(size_t)>& body);
// The host answers in the place of a function that the component's table lacks: that is no refusal
// of the component's own, but the fault.
void require_provided(const std::string& failure);
// The failure that a call must answer with; that it succeeded is the fault.
int32_t code_of(tn_status* answer);
void must_fail(tn_status* answer, const std::string& what);

// Options for a component for which none were chosen: its defaults, and a small value for what is
// required. Empty text: why that cannot be.
Json sample_options(const Json& schema, std::string* missing);

cxx::Tensor random_tensor(const SessionPtr& session,
                          uint32_t dtype,
                          std::vector<int64_t> shape,
                          std::mt19937_64& random);
double dot(const cxx::Tensor& a, const cxx::Tensor& b);  // of one shape
// Throws where two tensors differ by more than rounding.
void same_numbers(const cxx::Tensor& got,
                  const cxx::Tensor& want,
                  const std::string& what,
                  double tolerance);
cxx::Model parse_model(const SessionPtr& session, std::string_view text);
// Small graphs with many of the forms that passes and backends meet: name and text.
const std::vector<std::pair<std::string, std::string>>& zoo();

// A random graph for a seed.
using SampleOf = std::function<cxx::Model(uint64_t seed)>;
// Gradients of this order against differences; wrt: indices of the inputs, NULL: all of a float
// type.
void check_gradient(const SampleOf& sample, int order, const Json& wrt = nullptr);
// What transforms make of the operator `row`, whose samples are graphs of one node.
void check_transforms(const std::string& name,
                      const tn_op* row,
                      const SampleOf& sample,
                      Report& report);

using Suite = void (*)(Subject&, Report&);
void check_component(Subject&, Report&);  // every role
void check_backend(Subject&, Report&);
void check_callback(Subject&, Report&);
void check_collective(Subject&, Report&);
void check_dataset(Subject&, Report&);
void check_importance(Subject&, Report&);
void check_initializer(Subject&, Report&);
void check_kernel(Subject&, Report&);
void check_layer(Subject&, Report&);
void check_loss(Subject&, Report&);
void check_metric(Subject&, Report&);
void check_observer(Subject&, Report&);
void check_operators(Subject&, Report&);
void check_optimizer(Subject&, Report&);
void check_pass(Subject&, Report&);
void check_reader(Subject&, Report&);
void check_schedule(Subject&, Report&);
void check_writer(Subject&, Report&);

// NULL: no suite for this role.
Suite suite_of(const std::string& role);

// All results as JUnit's XML: a suite for each component. Throws where it cannot be written.
void write_junit(const std::string& path, const Json& components);

// The file itself, without loading it: one line for each fault.
std::vector<std::string> library_faults(const std::string& path);

}  // namespace tenon::command::check
