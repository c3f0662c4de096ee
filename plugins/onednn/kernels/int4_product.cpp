// SPDX-License-Identifier: Apache-2.0
#include "int4_product.h"

#include <algorithm>

#include "epilogue_block.h"
#include "kernel_table.h"

namespace tenon::onednn::kernels {

namespace {

// The left operand in the scratch memory: blocks of kInt4Rows rows, one behind the other.
struct Scratch {
  int8_t* quantized;
  float* scales;
  int32_t* sums;
  float* reals;

  explicit Scratch(const Int4ProductArgs& args)
      : quantized(static_cast<int8_t*>(args.scratch)),
        scales(reinterpret_cast<float*>(quantized + args.m * args.b.padded_k())),
        sums(reinterpret_cast<int32_t*>(scales + args.m * args.b.n_groups)),
        reals(static_cast<float*>(args.scratch)) {}
};

Int4Form form_of(const Context& context, const Int4ProductArgs& args) {
  if (!args.as_int8) return Int4Form::kReal;
  return has_vnni(context) && args.with_vnni ? Int4Form::kVnni : Int4Form::kBytes;
}

void take_left(const Context& context, const Int4ProductArgs& args, int64_t row) {
  const Scratch scratch(args);
  const int64_t padded = args.b.padded_k(), groups = args.b.n_groups;
  const int64_t first_row = row - row % kInt4Rows;
  Int4Left left;
  left.src = args.a;
  left.src.data =
      static_cast<const char*>(args.a.data) + row * args.a_stride * element_bytes(args.a.type);
  left.rows = std::min(kInt4Rows, args.m - first_row);
  left.row = row - first_row;
  left.k = args.k;
  left.group = args.b.group;
  left.n_groups = groups;
  left.has_zeros = args.b.zeros != nullptr;
  if (args.as_int8) {
    left.quantized = scratch.quantized + first_row * padded;
    left.scales = scratch.scales + first_row * groups;
    left.sums = scratch.sums + first_row * groups;
  } else {
    left.reals = scratch.reals + first_row * padded;
  }
  context.table->int4_left(left);
}

Int4Panels panels_from(const Int4Panels& all, int64_t panel) {
  Int4Panels made = all;
  const int64_t numbers = panel * all.n_groups * kInt4Panel;
  made.quantized += panel * all.panel_bytes();
  made.scales = static_cast<const char*>(all.scales) + numbers * element_bytes(all.scale_type);
  if (all.zeros != nullptr) made.zeros += numbers;
  return made;
}

// One panel and some rows are a unit; those of a panel follow each other, so that it stays in
// cache.
void run_unit(const Context& context, const Int4ProductArgs& args, Int4Form form, int64_t unit) {
  const Scratch scratch(args);
  const int64_t n_blocks = (args.m + kInt4Rows - 1) / kInt4Rows;
  const int64_t first_row = unit % n_blocks * kInt4Rows;
  const int64_t panel = unit / n_blocks;
  const int64_t first_column = panel * kInt4Panel;
  Int4Block block;
  block.form = form;
  block.n_rows = std::min(kInt4Rows, args.m - first_row);
  block.quantized = scratch.quantized + first_row * args.b.padded_k();
  block.scales = scratch.scales + first_row * args.b.n_groups;
  block.sums = scratch.sums + first_row * args.b.n_groups;
  block.reals = scratch.reals + first_row * args.b.padded_k();
  block.right = panels_from(args.b, panel);
  block.epilogue = epilogue_of_block(args, first_row, first_column, kInt4Panel);
  context.table->int4_block(block);
}

}  // namespace

void pack_int4(const Int4Values& b, int64_t k, int64_t n, int64_t group, uint8_t* packed) {
  const int64_t padded = int4_groups(k, group) * group;
  auto quantized = [&](int64_t row, int64_t column) -> uint8_t {
    return row < k && column < n ? b.at(row, column) : static_cast<uint8_t>(kInt4Zero);
  };
  for (int64_t panel = 0; panel < int4_columns(n); panel += kInt4Panel)
    for (int64_t step = 0; step < padded; step += kInt4Step)
      for (int64_t column = panel; column < panel + kInt4Panel; ++column)
        for (int64_t i = step; i < step + kInt4Step / 2; ++i)
          *packed++ = static_cast<uint8_t>(quantized(i, column) |
                                           quantized(i + kInt4Step / 2, column) << 4);
}

void int4_product(const Context& context, const Int4ProductArgs& args) {
  if (args.m <= 0 || args.n <= 0) return;
  const Int4Form form = form_of(context, args);
  const int64_t n_blocks = (args.m + kInt4Rows - 1) / kInt4Rows;
  parallel_for(context.parallel, args.m, grain_rows(args.k * 8), [&](int64_t lo, int64_t hi) {
    for (int64_t row = lo; row < hi; ++row)
      take_left(context, args, row);
  });
  const int64_t rows = std::min(args.m, kInt4Rows);
  parallel_for(context.parallel, n_blocks * (int4_columns(args.n) / kInt4Panel),
               grain_rows(args.k * (kInt4StepBytes / kInt4Step + 2 * rows)),
               [&](int64_t lo, int64_t hi) {
                 for (int64_t unit = lo; unit < hi; ++unit)
                   run_unit(context, args, form, unit);
               });
}

}  // namespace tenon::onednn::kernels
