// SPDX-License-Identifier: Apache-2.0
// Templates of fused kernels and collectives.
#include "templates.hpp"

namespace tenon::command {

const char* const kKernelTemplate = R"code(@include@ <algorithm>

@include@ "tenon/sdk/build.hpp"
@include@ "tenon/sdk/role/kernel.hpp"

namespace {

// max(x * y, 0) in one loop, for float32 of one shape.
struct @Class@ {
  static constexpr std::string_view kPattern = "Relu(Mul(x, y))";
  static tenon::Result<@Class@> create(tn_ctx*, const tenon::Options&) { return @Class@{}; }

  tenon::Status claim(const tenon::KernelSite& site) const {
    tenon::Type x = site.input(0).type();
    bool fits = x.dtype == TN_F32 && site.n_inputs() == 2 && site.input(1).type().dims == x.dims;
    return fits ? tenon::Status() : tenon::unsupported("expected float32 of one shape");
  }
  // What a run needs to know of a site: nothing here.
  struct Compiled {};
  tenon::Result<Compiled> compile(const tenon::KernelSite&) const { return Compiled{}; }

  tenon::Status run(Compiled&,
                    std::span<const DLTensor* const> in,
                    const DLTensor& out,
                    const tenon::Cancel&) const {
    const float* x = tenon::data_of<const float>(*in[0]);
    const float* y = tenon::data_of<const float>(*in[1]);
    float* to = tenon::data_of<float>(out);
    for (int64_t i = 0, n = tenon::element_count(out); i < n; ++i)
      to[i] = std::max(x[i] * y[i], 0.0F);
    return {};
  }
  // A site that it claims, for tests.
  tenon::Result<tenon::Value> sample(tenon::EditView edit, uint64_t seed) const {
    tenon::Type type(TN_F32, {static_cast<int64_t>(seed % 3) + 1, 4});
    TN_TRY(x, edit.input("x", type));
    TN_TRY(y, edit.input("y", type));
    tenon::Builder b(edit);
    tenon::Value out = b.op("Relu", {b.mul(x, y)});
    TN_CHECK(b.status());
    return out;
  }
};

}  // namespace

TENON_KERNEL(@name@, @Class@, "@id@", "a product and Relu in one loop", "{}")
)code";

const char* const kCollectiveTemplate = R"code(@include@ <cstring>

@include@ "tenon/sdk/role/collective.hpp"

namespace {

// One rank alone: what it would get from others is its own.
struct @Class@ {
  static tenon::Result<@Class@> create(tn_ctx*, const tenon::Options&) { return @Class@{}; }
  uint32_t rank() const { return 0; }
  uint32_t ranks() const { return 1; }

  tenon::Status all_reduce(std::string_view,
                           uint32_t how,
                           const DLTensor& in,
                           const DLTensor& out,
                           const tenon::Cancel& cancel) {
    uint32_t kind = in.dtype.code;
    if (how > TN_REDUCE_MAX) return tenon::invalid("how: expected one of TN_REDUCE_*");
    if (how == TN_REDUCE_MEAN && kind != kDLFloat && kind != kDLBfloat)
      return tenon::invalid("in: expected floating point, which has a mean");
    TN_CHECK(cancel.check());
    std::memcpy(tenon::data_of<char>(out), tenon::data_of<const char>(in), size_of(in));
    return {};
  }
  tenon::Status broadcast(std::string_view,
                          uint32_t root,
                          const DLTensor&,
                          const tenon::Cancel& cancel) {
    return root == 0 ? cancel.check() : tenon::invalid("root: expected 0, the one rank");
  }
  tenon::Status all_gather(std::string_view tag,
                           const DLTensor& in,
                           const DLTensor& out,
                           const tenon::Cancel& cancel) {
    return all_reduce(tag, TN_REDUCE_SUM, in, out, cancel);  // [1, shape of in]
  }

 private:
  static size_t size_of(const DLTensor& tensor) {
    return static_cast<size_t>(
        tenon::bytes_of(tenon::dtype_of(tensor), tenon::element_count(tensor)));
  }
};

}  // namespace

TENON_COLLECTIVE(@name@, @Class@, "@id@", "one rank alone", "{}")
)code";

}  // namespace tenon::command
