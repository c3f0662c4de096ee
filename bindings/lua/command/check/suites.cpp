// SPDX-License-Identifier: Apache-2.0
// The table of suites, and what they share.
#include <chrono>
#include <cmath>
#include <latch>
#include <thread>
#include <vector>

#include <unistd.h>

#include "check.hpp"

namespace tenon::command::check {
namespace {

struct Row {
  const char* role;
  Suite suite;
};
constexpr Row kSuites[] = {
    {"tenon.backend/1", check_backend},
    {"tenon.callback/1", check_callback},
    {"tenon.collective/1", check_collective},
    {"tenon.dataset/1", check_dataset},
    {"tenon.importance/1", check_importance},
    {"tenon.initializer/1", check_initializer},
    {"tenon.kernel/1", check_kernel},
    {"tenon.layer/1", check_layer},
    {"tenon.loss/1", check_loss},
    {"tenon.metric/1", check_metric},
    {"tenon.observer/1", check_observer},
    {"tenon.ops/1", check_operators},
    {"tenon.optimizer/1", check_optimizer},
    {"tenon.pass/1", check_pass},
    {"tenon.reader/1", check_reader},
    {"tenon.schedule/1", check_schedule},
    {"tenon.writer/1", check_writer},
};

Json sample_value(const Json& option) {
  if (option.contains("enum")) return option["enum"][0];
  Json type = option.value("type", Json());
  if (type.is_array()) type = type[0];
  double least = option.value("minimum", option.value("exclusiveMinimum", -INFINITY));
  if (type == "integer") return std::isfinite(least) ? static_cast<int64_t>(least) + 1 : 1;
  if (type == "number")
    return std::isfinite(least)
               ? (least + std::min(option.value("maximum", least + 1), least + 1)) / 2
               : 0.5;
  if (type == "boolean") return false;
  if (type == "array") return Json::array({sample_value(option.value("items", Json::object()))});
  if (type == "component" && option.value("role", "") == "tenon.schedule/1")
    return "scheduler.constant";
  return nullptr;
}

}  // namespace

Suite suite_of(const std::string& role) {
  for (const Row& row : kSuites)
    if (role == row.role) return row.suite;
  return nullptr;
}

cxx::Component Subject::make(const Json& given) const {
  cxx::Options with(session, given);
  // Tensors of any name: one, so that there is something to work on.
  if (schema.is_object() &&
      schema.value(Json::json_pointer("/additionalProperties/type"), "") == "tensor")
    with.set("given", cxx::Tensor::zeros(session, TN_F32, {4, 3}));
  return {session, role, id, with};
}

void Report::line(const Json& what) {
  std::string text = cxx::dump(what) + "\n";
  for (size_t done = 0; done < text.size();) {
    ssize_t wrote = write(fd_, text.data() + done, text.size() - done);
    if (wrote <= 0) _exit(3);  // the reader has gone
    done += static_cast<size_t>(wrote);
  }
}

void Report::check(const std::string& name, const std::function<void()>& body) {
  line({{"begin", name}});
  try {
    body();
    line({{"check", name}, {"result", "passed"}, {"why", ""}});
  } catch (const Skipped& skipped) {
    skip(name, skipped.why);
  } catch (const std::exception& thrown) {
    line({{"check", name}, {"result", "failed"}, {"why", thrown.what()}});
  }
}

void Report::skip(const std::string& name, const std::string& why) {
  line({{"check", name}, {"result", "skipped"}, {"why", why}});
}

void require_provided(const std::string& failure) {
  require(failure.find("is not provided: the plugin was built without it") == failure.npos,
          failure);
}

namespace {

std::pair<int32_t, std::string> released(tn_status* answer) {
  int32_t code = tenon_status_code(answer);
  std::string text(answer ? cxx::view(tenon_status_message(answer)) : std::string_view());
  tenon_status_release(answer);
  require_provided(text);
  return {code, std::move(text)};
}

}  // namespace

int32_t code_of(tn_status* answer) {
  return released(answer).first;
}

void at_once(size_t n_threads, const std::function<void(size_t)>& body) {
  std::vector<std::string> failures(n_threads);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < n_threads; ++i)
    threads.emplace_back([&, i] {
      try {
        body(i);
      } catch (const std::exception& thrown) {
        failures[i] = thrown.what();
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  for (const std::string& failure : failures)
    require(failure.empty(), failure);
}

void beside_others(size_t n_threads, const std::function<void(size_t)>& body) {
  constexpr std::chrono::milliseconds kLeast(50);
  std::latch begun(static_cast<std::ptrdiff_t>(n_threads));
  at_once(n_threads, [&](size_t i) {
    begun.arrive_and_wait();
    const auto end = std::chrono::steady_clock::now() + kLeast;
    do
      body(i);
    while (std::chrono::steady_clock::now() < end);
  });
}

void must_fail(tn_status* answer, const std::string& what) {
  require(answer != nullptr, cat(what, ": expected a failure, got success"));
  // The whole text begins with who failed: what counts is what stands behind it.
  std::string text = released(answer).second;
  bool has_message = !text.empty() && !text.ends_with(": ");
  require(has_message, cat(what, ": expected a message, got a status without one"));
}

Json sample_options(const Json& schema, std::string* missing) {
  Json out = Json::object();
  if (!schema.is_object()) return out;
  for (const Json& name : schema.value("required", Json::array())) {
    const Json& option = schema["properties"][name.get<std::string>()];
    if (option.contains("default")) continue;
    Json value = sample_value(option);
    if (value.is_null()) {
      *missing = cat("option ", name.get<std::string>(), " is required: give it with --option");
      return out;
    }
    out[name.get<std::string>()] = value;
  }
  return out;
}

cxx::Tensor random_tensor(const SessionPtr& session,
                          uint32_t dtype,
                          std::vector<int64_t> shape,
                          std::mt19937_64& random) {
  cxx::Tensor out = cxx::Tensor::zeros(session, dtype, std::move(shape));
  bool whole = dtype != TN_F32 && dtype != TN_F64 && dtype != TN_F16 && dtype != TN_BF16;
  std::uniform_real_distribution<double> number(-2, 2);
  for (int64_t i = 0; i < out.size(); ++i) {
    double x = number(random);
    if (dtype == TN_BOOL) x = x > 0;
    out.set(i, whole ? std::fabs(std::round(x)) : x);
  }
  return out;
}

double dot(const cxx::Tensor& a, const cxx::Tensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    sum += a.at(i) * b.at(i);
  return sum;
}

void same_numbers(const cxx::Tensor& got,
                  const cxx::Tensor& want,
                  const std::string& what,
                  double tolerance) {
  require(got.text() == want.text(), cat(what, ": expected ", want.text(), ", got ", got.text()));
  for (int64_t i = 0; i < want.size(); ++i) {
    double a = got.at(i), b = want.at(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b || std::fabs(a - b) <= tolerance * (1 + std::fabs(b))) continue;
    broken(cat(what, ": element ", i, ": expected ", b, ", got ", a));
  }
}

cxx::Model parse_model(const SessionPtr& session, std::string_view text) {
  tn_graph* raw = nullptr;
  cxx::check(session->graph->parse(session->ctx(), cxx::str(text), &raw));
  return {session, raw};
}

const std::vector<std::pair<std::string, std::string>>& zoo() {
  static const std::vector<std::pair<std::string, std::string>> graphs = {
      {"an empty graph", "graph {\n}\n"},
      {"one node", R"(graph {
  input %x: f32[2, 3]
  %y: f32[2, 3] = Relu(%x) @relu
  output y = %y
})"},
      {"an input that is an output", R"(graph {
  input %x: f32[2]
  output y = %x
})"},
      {"a dense layer with a free batch size", R"(graph {
  input %x: f32[n, 3]
  constant %w: f32[3, 2] = [1, -2, 3, 0.5, -1, 2]
  constant %b: f32[2] = [0.25, -0.25]
  %p: f32[n, 2] = MatMul(%x, %w) @product
  %s: f32[n, 2] = Add(%p, %b) @sum
  %y: f32[n, 2] = Relu(%s) @relu
  output y = %y
})"},
      {"a value used twice, a node that is not used", R"(graph {
  input %x: f32[4]
  %a: f32[4] = Identity(%x) @same
  %b: f32[4] = Add(%a, %a) @sum
  %c: f32[4] = Exp(%a) @unused
  %d: f32[4] = Mul(%b, %a) @product
  output sum = %b
  output product = %d
})"},
      {"constants alone", R"(graph {
  constant %a: f32[2] = [1, 2]
  constant %b: f32[2] = [3, 4]
  %c: f32[2] = Add(%a, %b) @sum
  output c = %c
})"},
  };
  return graphs;
}

}  // namespace tenon::command::check
