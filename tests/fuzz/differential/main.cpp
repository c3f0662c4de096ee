// SPDX-License-Identifier: Apache-2.0
// Random graphs, computed by two backends (tests/fuzz/README.md). Graphs run in a child: when it
// dies, its graph is reported and the next one goes on in another child.
// usage: fuzz_differential [--seed N] [--from N] [--count N] [--nodes N] [--mode NAME]
//                          [--kind rows|networks] [--backend ID] [--domain onnx] [--keep FOLDER]
//                          [--rows 1]
//                          [--state FILE]: what is done so far, where the same command goes on
//                          [--every N]: seconds until it is written again
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <new>
#include <tuple>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tenon/role/op.h"

#include "folders.hpp"
#include "gradient.hpp"
#include "judgement.hpp"
#include "kept.hpp"
#include "mutants/limit.hpp"
#include "networks.hpp"
#include "resume.hpp"
#include "state_folder.hpp"

namespace {

using namespace tenon;
using namespace tenon::fuzz;

constexpr unsigned kSeconds = 60;  // for one graph
constexpr size_t kMostRows = 1024;

struct Arguments {
  uint64_t seed = 1, from = 0, count = 1000, nodes = 60, rows = 0, every = 5;
  std::string mode, kind, backend = "onednn", domain, keep, state;
};

// What came of all graphs; lives in memory that outlives a process that dies.
struct Tally {
  std::atomic<uint64_t> next{0}, grown{0}, ran{0}, outputs{0}, decided{0}, findings{0}, nodes{0},
      died{0};
  std::atomic<uint64_t> rows[kMostRows] = {};  // of graphs that ran
};

bool read(int argc, char** argv, Arguments& out) {
  std::map<std::string, uint64_t*> numbers{{"--seed", &out.seed},   {"--from", &out.from},
                                           {"--count", &out.count}, {"--nodes", &out.nodes},
                                           {"--rows", &out.rows},   {"--every", &out.every}};
  std::map<std::string, std::string*> texts{{"--mode", &out.mode},       {"--kind", &out.kind},
                                            {"--backend", &out.backend}, {"--domain", &out.domain},
                                            {"--keep", &out.keep},       {"--state", &out.state}};
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string key = argv[i];
    if (auto number = numbers.find(key); number != numbers.end())
      *number->second = std::strtoull(argv[i + 1], nullptr, 10);
    else if (auto text = texts.find(key); text != texts.end())
      *text->second = argv[i + 1];
    else
      return false;
  }
  return argc % 2 == 1;
}

class Fuzzer {
 public:
  explicit Fuzzer(const Arguments& arguments) : arguments_(arguments) {
    std::string config = cat(R"({"plugin_path": [")", test::kPluginFolder, R"(", ")",
                             test::kTestPluginFolder, "/devices\"]}");
    if (tenon_open(str(config), &session_) || !services.fill(*tenon_host(session_)).empty())
      std::abort();
    recipe_.ctx = tenon_host(session_)->ctx;
    if (!Status(tenon_plugin_load(session_, str("ops"))).ok()) std::abort();
    for (uint64_t i = 0; i < services.op->count(recipe_.ctx); ++i) {
      const tn_op* row = services.op->at(recipe_.ctx, i);
      // Random numbers are nobody else's.
      bool is_foreign = !view(row->domain).empty() || (row->traits & TN_OP_RANDOM);
      bool is_wanted = arguments.domain.empty() || !is_foreign;
      if (row->sample && is_wanted) recipe_.rows.push_back(row);
    }
    differentiable_ = differentiable_rows(recipe_);
  }
  Fuzzer(const Fuzzer&) = delete;
  ~Fuzzer() { tenon_close(session_); }
  const std::vector<const tn_op*>& rows() const { return recipe_.rows; }

  void run(uint64_t number, Tally& tally) {
    Random random(arguments_.seed * 0x9e3779b97f4a7c15ull + number);
    const Mode& mode = kModes[number % std::size(kModes)];
    if (!arguments_.mode.empty() && arguments_.mode != mode.name) return;
    std::map<std::string, uint64_t> used;
    Result<OwnedGraph> graph = grown(mode, random, used);
    if (!graph.ok()) return;
    ++tally.grown;
    auto inputs = numbers_for(recipe_.ctx, graph->view(), random);
    if (!inputs.ok()) return;
    Judge judge(session_, recipe_.ctx, mode, arguments_.backend);
    Verdict verdict = judge.judge(graph->get(), *inputs, number);
    if (!verdict.ran) return;
    ++tally.ran;
    tally.nodes += graph->view().n_nodes();
    tally.outputs += verdict.n_outputs;
    tally.decided += verdict.n_decided;
    for (size_t i = 0; i < recipe_.rows.size() && i < kMostRows; ++i)
      if (auto at = used.find(std::string(view(recipe_.rows[i]->type))); at != used.end())
        tally.rows[i] += at->second;
    if (!verdict.finding.empty())
      report(judge, graph->get(), *inputs, number, verdict, mode, tally);
    if (!arguments_.keep.empty()) keep_graph(judge, graph->get(), *inputs, number);
  }

 private:
  Result<OwnedGraph> grown(const Mode& mode,
                           Random& random,
                           std::map<std::string, uint64_t>& used) const {
    size_t n_nodes = 5 + random.below(std::max<uint64_t>(arguments_.nodes, 5) - 4);
    Recipe recipe{.ctx = recipe_.ctx,
                  .rows = some_of(mode.differentiate ? differentiable_ : recipe_.rows, random),
                  .quantize = mode.quantize};
    bool is_network = random.one_in(2);
    if (!arguments_.kind.empty()) is_network = arguments_.kind == "networks";
    TN_TRY(graph, is_network ? grow_network(recipe_.ctx, n_nodes, mode.quantize, random, used)
                             : grow(recipe, n_nodes, random, used));
    if (!mode.differentiate) return Result<OwnedGraph>(std::move(graph));
    return gradient_of(recipe_.ctx, graph.get(), random);
  }

  void report(const Judge& judge,
              const tn_graph* graph,
              const std::vector<Tensor>& inputs,
              uint64_t number,
              const Verdict& verdict,
              const Mode& mode,
              Tally& tally) {
    ++tally.findings;
    std::printf("FOUND graph %llu (%s): %s\n", static_cast<unsigned long long>(number), mode.name,
                verdict.finding.c_str());
    auto small = judge.minimise(graph, inputs, number);
    if (small.ok() && small->graph.get()) {
      std::printf("  of which is left: %s\n%s", small->finding.c_str(),
                  printed(small->graph.get()).c_str());
      if (!arguments_.keep.empty())
        keep_found(session_, small->graph.get(), small->inputs,
                   cat(arguments_.keep, "/found_", number));
    }
    std::fflush(stdout);
  }

  // All values are outputs, in the order of the nodes: the first that differs names the node.
  void keep_graph(const Judge& judge,
                  const tn_graph* graph,
                  const std::vector<Tensor>& inputs,
                  uint64_t number) {
    Status kept = [&]() -> Status {
      tn_graph* raw = nullptr;
      TN_CHECK(services.graph->clone(graph, &raw));
      OwnedGraph open = OwnedGraph::take(raw);
      TN_TRY(edit, Edit::begin(raw));
      std::vector<Value> values;
      for (Node node : edit.graph().nodes())
        for (Value value : node.outputs())
          if (value && value.type().kind == TN_KIND_TENSOR) values.push_back(value);
      for (size_t n = edit.graph().outputs().size(); n > 0; --n)
        TN_CHECK(Status(services.edit->remove_output(edit.raw, n - 1)));
      for (size_t i = 0; i < values.size(); ++i)
        TN_CHECK(edit.output(cat("value", i), values[i]));
      TN_CHECK(edit.commit());
      TN_TRY(expected, judge.expect(raw, inputs, number, kDoubts[1]));
      keep(session_, recipe_.ctx, raw, inputs, expected, cat(arguments_.keep, "/", number));
      return {};
    }();
  }

  const Arguments& arguments_;
  tenon_session* session_ = nullptr;
  Recipe recipe_ = {};
  std::vector<const tn_op*> differentiable_ = {};
};

// The numbers of a tally beside their names in the file of a run.
std::vector<std::pair<const char*, std::atomic<uint64_t>*>> counts(Tally& tally) {
  return {{"next", &tally.next},         {"grown", &tally.grown},     {"ran", &tally.ran},
          {"outputs", &tally.outputs},   {"decided", &tally.decided}, {"nodes", &tally.nodes},
          {"findings", &tally.findings}, {"died", &tally.died}};
}

// before: what the file had; its rows are counted on here, by name.
Resume::Json summary(Tally& tally,
                     const std::vector<const tn_op*>& rows,
                     const Resume::Json& before) {
  Resume::Json out;
  for (auto [name, count] : counts(tally))
    out[name] = count->load();
  Resume::Json known = before.value("rows", Resume::Json::object());
  for (size_t i = 0; i < rows.size() && i < kMostRows; ++i) {
    std::string type(view(rows[i]->type));
    out["rows"][type] = known.value(type, uint64_t{0}) + tally.rows[i];
  }
  return out;
}

int work(const Arguments& arguments, Tally& tally, Resume& resume, const Resume::Json& before) {
  Fuzzer fuzzer(arguments);
  auto done = [&] { return summary(tally, fuzzer.rows(), before); };
  while (tally.next < arguments.from + arguments.count) {
    limit_seconds(kSeconds);
    fuzzer.run(tally.next, tally);
    ++tally.next;
    resume.tick(done);
  }
  resume.write(done());
  limit_seconds(0);
  return 0;
}

// Runs children until all graphs are done.
void run_children(const Arguments& arguments,
                  Tally& tally,
                  Resume& resume,
                  const Resume::Json& before) {
  while (tally.next < arguments.from + arguments.count) {
    pid_t child = fork();
    if (child < 0) std::abort();
    if (child == 0) std::exit(work(arguments, tally, resume, before));
    int status = 0;
    waitpid(child, &status, 0);
    if (status == 0) break;
    ++tally.died;
    std::printf("FOUND graph %llu: %s %d\n", static_cast<unsigned long long>(tally.next.load()),
                WIFSIGNALED(status) ? "signal" : "exit code",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    std::fflush(stdout);
    ++tally.next;
  }
}

void print_rows(const Arguments& arguments, Tally& tally, const Resume::Json& before) {
  Fuzzer fuzzer(arguments);
  Resume::Json done = summary(tally, fuzzer.rows(), before);
  std::string rarest;
  uint64_t least = UINT64_MAX;
  for (const auto& [type, count] : done["rows"].items()) {
    auto times = count.get<uint64_t>();
    if (times < least) std::tie(rarest, least) = std::pair(type, times);
    if (arguments.rows)
      std::printf("%8llu %s\n", static_cast<unsigned long long>(times), type.c_str());
  }
  std::printf("%zu rows, each at least %llu times (%s)\n", done["rows"].size(),
              static_cast<unsigned long long>(least), rarest.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!read(argc, argv, arguments))
    return std::fputs("fuzz_differential: see its first lines\n", stderr), 2;
  Resume resume(arguments.state,
                {{"seed", arguments.seed},
                 {"from", arguments.from},
                 {"nodes", arguments.nodes},
                 {"mode", arguments.mode},
                 {"kind", arguments.kind},
                 {"backend", arguments.backend},
                 {"domain", arguments.domain}},
                arguments.every);
  Resume::Json before;
  if (std::string why = resume.read(before); !why.empty())
    return std::fprintf(stderr, "fuzz_differential: %s\n", why.c_str()), 2;
  void* memory =
      mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  tenon::fuzz::StateFolder state;
  Tally& tally = *new (memory) Tally;
  tally.next = arguments.from;
  for (auto [name, count] : counts(tally))
    *count = before.value(name, count->load());
  run_children(arguments, tally, resume, before);
  double took = resume.seconds();
  for (const Mode& mode : kModes)
    std::printf("%s: within %g of 1 + the largest number, and 6 times what noise of %g does\n",
                mode.name, mode.tolerance, mode.noise);
  print_rows(arguments, tally, before);
  auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  uint64_t findings = tally.findings + tally.died;
  std::printf(
      "seed %llu: %llu graphs grown, %llu ran (%llu nodes), %llu of %llu outputs compared, "
      "%llu findings, %.0f s\n",
      number(arguments.seed), number(tally.grown), number(tally.ran), number(tally.nodes),
      number(tally.decided), number(tally.outputs), number(findings), took);
  // A run that compares little tests nothing.
  bool is_deep = tally.ran * 2 >= tally.grown && tally.decided * 3 >= tally.outputs;
  if (!is_deep) std::puts("expected half of the graphs to run and a third of outputs compared");
  return findings == 0 && is_deep ? 0 : 1;
}
