// SPDX-License-Identifier: Apache-2.0
#include "sparse_product.h"

#include <algorithm>

#include "epilogue_block.h"
#include "kernel_table.h"

namespace tenon::onednn::kernels {

namespace {

// So many blocks of rows are worth a piece of work of their own: they are copied and multiplied at
// once. Of fewer all are copied first, and the columns are what is cut.
constexpr int64_t kManyBlocks = 32;
// Of work, for each panel beside its weights: its results are transposed, go through their epilogue
// and are stored.
constexpr int64_t kPanelWork = 64;

bool are_quantized(const SparseProductArgs& args) {
  return element_bytes(args.a.src.type) == 1;
}

// How rows are cut into blocks, and where these lie in the scratch memory.
struct Blocks {
  int64_t rows;   // of one, a multiple of kSparseGroup
  int64_t count;  // of them
  int64_t steps;

  explicit Blocks(const SparseProductArgs& args)
      : rows(kMostSparseGroups * kSparseGroup),
        count((args.m + rows - 1) / rows),
        steps(sparse_steps(args.k, are_quantized(args))) {}
  int64_t groups_of(const SparseProductArgs& args, int64_t block) const {
    const int64_t here = std::min(rows, args.m - block * rows);
    return (here + kSparseGroup - 1) / kSparseGroup;
  }
  char* place(const SparseProductArgs& args, int64_t slot) const {
    return static_cast<char*>(args.scratch) + slot * rows * steps * 4;
  }
};

const char* row_at(const SparseProductArgs& args, int64_t row) {
  const SparseRows& a = args.a;
  int64_t at = row * a.stride;
  if (a.of_line > 0) {
    const int64_t line = row / a.of_line;
    at = row % a.of_line * a.stride + line % a.of_image * a.line + line / a.of_image * a.image;
  }
  return static_cast<const char*>(a.src.data) + at * element_bytes(a.src.type);
}

void take_group(const Context& context,
                const SparseProductArgs& args,
                const Blocks& blocks,
                int64_t block,
                int64_t group,
                char* to) {
  const int64_t first = block * blocks.rows + group * kSparseGroup;
  SparseLeft left;
  left.n_rows = std::min(kSparseGroup, args.m - first);
  for (int64_t i = 0; i < left.n_rows; ++i)
    left.rows[i] = row_at(args, first + i);
  left.k = args.k;
  left.type = args.a.src.type;
  left.to = to + group * kSparseGroup * 4;
  left.stride = blocks.groups_of(args, block) * kSparseGroup;
  context.table->sparse_left(left);
}

void multiply(const Context& context,
              const SparseProductArgs& args,
              const Blocks& blocks,
              int64_t block,
              int64_t panel,
              int64_t n_panels,
              const char* left) {
  const int64_t row = block * blocks.rows, column = panel * kSparsePanel;
  SparseBlock made;
  made.left = left;
  made.n_groups = blocks.groups_of(args, block);
  made.n_rows = std::min(blocks.rows, args.m - row);
  made.right = args.b;
  made.panel = panel;
  made.n_panels = n_panels;
  if (are_quantized(args))
    made.zero = args.a.src.quant.zero_point + (args.a.src.type == ElementType::kS8 ? 128 : 0);
  made.epilogue = epilogue_of_block(args, row, column, n_panels * kSparsePanel);
  if (are_quantized(args))
    context.table->sparse_int8(made);
  else
    context.table->sparse_reals(made);
}

// A piece of blocks is one thread's: it copies all of them to the same place.
void run_by_rows(const Context& context, const SparseProductArgs& args, const Blocks& blocks) {
  const int64_t panels = sparse_columns(args.n) / kSparsePanel;
  parallel_for(context.parallel, blocks.count, 1, [&](int64_t lo, int64_t hi) {
    char* const place = blocks.place(args, lo);
    for (int64_t block = lo; block < hi; ++block) {
      for (int64_t group = 0; group < blocks.groups_of(args, block); ++group)
        take_group(context, args, blocks, block, group, place);
      for (int64_t panel = 0; panel < panels; panel += kMostSparsePanels)
        multiply(context, args, blocks, block, panel, std::min(kMostSparsePanels, panels - panel),
                 place);
    }
  });
}

// Panels are cut by the weights that they have.
void run_by_columns(const Context& context, const SparseProductArgs& args, const Blocks& blocks) {
  const int64_t groups = (args.m + kSparseGroup - 1) / kSparseGroup;
  parallel_for(context.parallel, groups, grain_rows(blocks.steps * kSparseGroup * 8),
               [&](int64_t lo, int64_t hi) {
                 for (int64_t i = lo; i < hi; ++i) {
                   const int64_t block = i / kMostSparseGroups;
                   take_group(context, args, blocks, block, i % kMostSparseGroups,
                              blocks.place(args, block));
                 }
               });
  const int64_t panels = sparse_columns(args.n) / kSparsePanel;
  const int64_t stripes = kSparsePanel / args.b.width;
  auto work_before = [&](int64_t panel) {
    int64_t blocks_before = 0;
    for (int64_t span = 0; span < args.b.spans; ++span) {
      const uint32_t* const starts = args.b.starts + span * args.b.stripes;
      blocks_before += int64_t{starts[panel * stripes]} - starts[0];
    }
    return blocks_before * args.b.width + panel * kPanelWork;
  };
  auto first_from = [&](int64_t work) {  // the first panel with as much before it
    int64_t low = 0, high = panels;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (work_before(middle) < work)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  parallel_for(context.parallel, work_before(panels), grain_rows(args.m * 8),
               [&](int64_t lo, int64_t hi) {
                 const int64_t first = first_from(lo), last = first_from(hi);
                 for (int64_t block = 0; block < blocks.count; ++block)
                   for (int64_t panel = first; panel < last; panel += kMostSparsePanels)
                     multiply(context, args, blocks, block, panel,
                              std::min(kMostSparsePanels, last - panel), blocks.place(args, block));
               });
}

int64_t stripes_of(const SparseWeights& weights, int64_t width) {
  return sparse_columns(weights.n) / width;
}
int64_t up_to_line(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

// number(k, n): of any type, and 0 where there is none
template <class T>
T number_at(const SparseWeights& weights, int64_t k, int64_t n) {
  if (k >= weights.k || n >= weights.n) return 0;
  return static_cast<const T*>(weights.data)[k * weights.k_stride + n * weights.n_stride];
}

int64_t spans_of(const SparseWeights& weights) {
  const int64_t steps = sparse_steps(weights.k, weights.are_quantized);
  return (steps + kSparseSpan - 1) / kSparseSpan;
}

template <class T>
bool is_kept(const SparseWeights& weights, int64_t width, int64_t stripe, int64_t step) {
  const int64_t of_step = weights.are_quantized ? kSparseFour : 1;
  for (int64_t n = stripe * width; n < (stripe + 1) * width; ++n)
    for (int64_t i = 0; i < of_step; ++i)
      if (number_at<T>(weights, step * of_step + i, n) != 0) return true;
  return false;
}

// begin() of each stripe of each span, then found(stripe, step) for each block that is stored.
template <class T, class Begin, class Found>
void each_block(const SparseWeights& weights,
                int64_t width,
                const Begin& begin,
                const Found& found) {
  const int64_t steps = sparse_steps(weights.k, weights.are_quantized);
  for (int64_t first = 0; first < steps; first += kSparseSpan) {
    for (int64_t stripe = 0; stripe < stripes_of(weights, width); ++stripe) {
      begin();
      for (int64_t step = first; step < std::min(steps, first + kSparseSpan); ++step)
        if (is_kept<T>(weights, width, stripe, step)) found(stripe, step);
    }
  }
}

template <class T>
void pack(const SparseWeights& weights, int64_t width, const SparseColumns& to) {
  const int64_t of_step = weights.are_quantized ? kSparseFour : 1;
  auto* start = const_cast<uint32_t*>(to.starts);
  auto* const steps = const_cast<uint16_t*>(to.steps);
  auto* number = static_cast<T*>(const_cast<void*>(to.numbers));
  uint32_t n_blocks = 0;
  auto begin = [&] { *start++ = n_blocks; };
  each_block<T>(weights, width, begin, [&](int64_t stripe, int64_t step) {
    steps[n_blocks++] = static_cast<uint16_t>(step);
    for (int64_t n = stripe * width; n < (stripe + 1) * width; ++n)
      for (int64_t i = 0; i < of_step; ++i)
        *number++ = number_at<T>(weights, step * of_step + i, n);
  });
  begin();
}

int64_t starts_bytes(const SparseWeights& weights, int64_t width) {
  return up_to_line((spans_of(weights) * stripes_of(weights, width) + 1) * 4);
}

}  // namespace

bool multiplies_sparse_int8(const Context& context) {
  return has_vnni(context);
}

int64_t count_sparse_blocks(const SparseWeights& weights, int64_t width) {
  int64_t count = 0;
  auto begin = [] {};
  auto add = [&](int64_t, int64_t) { ++count; };
  if (weights.are_quantized)
    each_block<int8_t>(weights, width, begin, add);
  else
    each_block<float>(weights, width, begin, add);
  return count;
}

int64_t packed_sparse_bytes(const SparseWeights& weights, int64_t width, int64_t n_blocks) {
  const int64_t sums = weights.are_quantized ? sparse_columns(weights.n) * 4 : 0;
  return up_to_line(n_blocks * width * 4) + up_to_line(sums) + starts_bytes(weights, width) +
         n_blocks * 2;
}

SparseColumns unpacked_sparse(const SparseWeights& weights,
                              int64_t width,
                              int64_t n_blocks,
                              const void* packed) {
  const int64_t sums = weights.are_quantized ? sparse_columns(weights.n) * 4 : 0;
  SparseColumns made{
      .width = width, .stripes = stripes_of(weights, width), .spans = spans_of(weights)};
  const char* at = static_cast<const char*>(packed);
  made.numbers = at;
  at += up_to_line(n_blocks * width * 4);
  if (weights.are_quantized) made.sums = reinterpret_cast<const int32_t*>(at);
  at += up_to_line(sums);
  made.starts = reinterpret_cast<const uint32_t*>(at);
  made.steps = reinterpret_cast<const uint16_t*>(at + starts_bytes(weights, width));
  return made;
}

void pack_sparse(const SparseWeights& weights, int64_t width, int64_t n_blocks, void* to) {
  const SparseColumns made = unpacked_sparse(weights, width, n_blocks, to);
  if (!weights.are_quantized) return pack<float>(weights, width, made);
  pack<int8_t>(weights, width, made);
  for (int64_t n = 0; n < sparse_columns(weights.n); ++n) {
    int32_t sum = 0;
    for (int64_t k = 0; k < weights.k; ++k)
      sum += number_at<int8_t>(weights, k, n);
    const_cast<int32_t*>(made.sums)[n] = sum;
  }
}

void sparse_product(const Context& context, const SparseProductArgs& args) {
  if (args.m <= 0 || args.n <= 0) return;
  const Blocks blocks(args);
  if (blocks.count >= kManyBlocks)
    run_by_rows(context, args, blocks);
  else
    run_by_columns(context, args, blocks);
}

}  // namespace tenon::onednn::kernels
