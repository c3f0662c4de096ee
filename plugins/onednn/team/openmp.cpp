// SPDX-License-Identifier: Apache-2.0
#include "openmp.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <oneapi/dnnl/dnnl.h>

#include "imports.hpp"
#include "team.hpp"

namespace tenon::onednn::team {
namespace {

// libgomp's interface (GCC, libgomp/libgomp_g.h, version GOMP_1.0) and OpenMP's own functions.
void parallel_start(void (*body)(void*), void* arg, unsigned n) {
  begin(body, arg, static_cast<int>(n));
}

void parallel_end() {
  end();
}

void parallel(void (*body)(void*), void* arg, unsigned n, unsigned) {
  region(body, arg, static_cast<int>(n));
}

// `omp for schedule(static, chunk)` of a compiler that does not cut the loop itself: each id asks
// for its first piece and for the next, until it gets none.
struct StaticLoop {
  long begin = 0;
  long step = 1;
  long n = 0;      // iterations
  long chunk = 0;  // 0: one piece for each id
  long turn = 0;
};
thread_local StaticLoop loop;

bool loop_static_next(long* begin, long* end) {
  const long ids = size();
  const long own = id();
  long first = 0;
  long last = 0;
  if (loop.chunk == 0) {
    if (loop.turn > 0) return false;
    const long least = loop.n / ids;
    const long longer = loop.n % ids;
    first = own * least + (own < longer ? own : longer);
    last = first + least + (own < longer ? 1 : 0);
  } else {
    first = (loop.turn * ids + own) * loop.chunk;
    last = first + loop.chunk < loop.n ? first + loop.chunk : loop.n;
  }
  if (first >= last) return false;
  ++loop.turn;
  *begin = loop.begin + first * loop.step;
  *end = loop.begin + last * loop.step;
  return true;
}

bool loop_static_start(long begin, long end, long step, long chunk, long* first, long* last) {
  const long round = step > 0 ? step - 1 : step + 1;
  const long n = (end - begin + round) / step;
  loop = {begin, step, n > 0 ? n : 0, chunk, 0};
  return loop_static_next(first, last);
}

void loop_end_nowait() {}

int omp_in_parallel() {
  return is_inside() ? 1 : 0;
}

struct Function {
  std::string_view name;
  void* address;
};

template <class F>
Function row(std::string_view name, F* function) {
  return {name, reinterpret_cast<void*>(function)};
}

const Function* find(std::string_view name) {
  static const std::array kFunctions{
      row("GOMP_barrier", barrier),
      row("GOMP_loop_end_nowait", loop_end_nowait),
      row("GOMP_loop_static_next", loop_static_next),
      row("GOMP_loop_static_start", loop_static_start),
      row("GOMP_parallel", parallel),
      row("GOMP_parallel_end", parallel_end),
      row("GOMP_parallel_start", parallel_start),
      row("omp_get_max_threads", max_threads),
      row("omp_get_num_threads", size),
      row("omp_get_thread_num", id),
      row("omp_in_parallel", omp_in_parallel),
  };
  for (const Function& function : kFunctions)
    if (function.name == name) return &function;
  return nullptr;
}

bool is_of_openmp(std::string_view name) {
  return name.starts_with("GOMP_") || name.starts_with("omp_") || name.starts_with("__kmpc_");
}

std::string take_over() {
  const void* onednn = reinterpret_cast<const void*>(dnnl_version);
  std::vector<Import> imports;
  for (Import& import : imports_of(onednn)) {
    if (!is_of_openmp(import.name)) continue;
    if (find(import.name) == nullptr)
      return "libdnnl calls " + import.name + ", which team/openmp.cpp does not have";
    imports.push_back(std::move(import));
  }
  // Without any it was built for other threads, and brings them.
  for (const Import& import : imports)
    if (!replace(onednn, import, find(import.name)->address))
      return "libdnnl's call of " + import.name + " cannot be replaced: its table is read-only";
  return {};
}

}  // namespace

const std::string& why_not_on_team() {
  static const std::string why = take_over();
  return why;
}

}  // namespace tenon::onednn::team
