// SPDX-License-Identifier: Apache-2.0
#pragma once
// Matrix products by cuBLASLt. A product is prepared once, with the algorithm that its heuristic
// likes best; products of one form share the answer.

#include <memory>
#include <string>

#include "device.hpp"
#include "plan.hpp"

namespace tenon::cuda {

constexpr const char* kCublasltLibrary = "libcublasLt.so.13";

// Why there are no products with this library, a name or a path, empty for none; empty: there are.
std::string why_no_cublaslt(const std::string& library = kCublasltLibrary);

constexpr uint64_t kProductWorkspace = uint64_t{32} << 20;

// How the memory of each operand is aligned at least, in bytes.
struct ProductAlignment {
  uint32_t a = kOwnAlign, b = kOwnAlign, bias = kOwnAlign, c = kOwnAlign, out = kOwnAlign;
};
// What serves wherever the operands come to lie: before that is known.
constexpr ProductAlignment kLeastAligned{kBoundaryAlign, kBoundaryAlign, kBoundaryAlign,
                                         kBoundaryAlign, kBoundaryAlign};

class PreparedProduct {
 public:
  virtual ~PreparedProduct() = default;
  // Addresses by the product's members; NULL where it has none.
  virtual Status launch(const void* a,
                        const void* b,
                        const void* bias,
                        const void* c,
                        void* out,
                        void* workspace,
                        cudaStream_t stream) = 0;
};

class Products {
 public:
  // library: cuBLASLt's, by name or path.
  static Result<std::unique_ptr<Products>> open(Device& device,
                                                const std::string& library = kCublasltLibrary);
  virtual ~Products() = default;
  // tf32: float32 numbers are multiplied with 10 bits of fraction. TN_UNIMPLEMENTED: there
  // is no algorithm for this form.
  virtual Result<std::unique_ptr<PreparedProduct>> prepare(const Product& product,
                                                           bool tf32,
                                                           const ProductAlignment& alignment) = 0;
};

}  // namespace tenon::cuda
