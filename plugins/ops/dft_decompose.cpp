// SPDX-License-Identifier: Apache-2.0
// DFT as products with constant matrices. A short signal takes one, of the whole transform; a
// signal of n1 n2 numbers takes two smaller ones with a rotation of each number between them
// (Cooley and Tukey 1965; Bailey 1990 has the order of steps); a length with a large prime factor
// becomes a convolution, whose transforms have a power of two (Bluestein 1970).
#include <algorithm>
#include <cmath>
#include <optional>

#include "dims.hpp"
#include "matrices.hpp"
#include "numbers.hpp"
#include "spectrum.hpp"

namespace tenon::ops {
namespace {

// Shorter signals are not worth more than one product, on the CPUs measured.
constexpr int64_t kLeastFactored = 128;

// What is to be transformed, as `rows` signals side by side.
struct Site {
  Dft dft;
  Type x;
  size_t along = 0, before = 0;  // the axis; the last one in front of the components
  int64_t rows = 0, given = 0, n = 0, in = 0;

  int64_t bins() const { return dft.bins(n); }
  int64_t out() const { return dft.components(); }
  int64_t half() const { return n / 2 + 1; }
  double scale() const { return dft.inverse ? 1 / static_cast<double>(n) : 1; }
  std::vector<int64_t> order() const { return swapped(x.rank(), along, before); }
};

Result<Site> site_of(Node node) {
  Type x = node.input(0).type();
  std::optional<std::vector<int64_t>> axis = known_ints(node.input(2));
  std::optional<std::vector<int64_t>> length = known_ints(node.input(1));
  if (!x.is_static() || x.rank() < 2 || (node.input(2) && (!axis || axis->size() != 1)) ||
      (node.input(1) && (!length || length->size() != 1)))
    return unsupported("DFT: composite where axis and all sizes are known");
  TN_TRY(positive, axis_in(node.input(2) ? axis->at(0) : -2, x.rank()));
  Site site{.dft = dft_of(node), .x = x};
  site.along = static_cast<size_t>(positive);
  site.before = x.rank() - 2;
  if (site.along > site.before) return invalid("axis: expected another than the last");
  const int64_t size = x.dims[site.along];
  site.in = x.dims.back();
  site.n = length ? length->at(0) : site.dft.from_half() ? 2 * (size - 1) : size;
  if (site.n < 1) return invalid(cat("dft_length: expected a number from 1, got ", site.n));
  site.given = std::min(size, site.dft.from_half() ? site.half() : site.n);
  site.rows = 1;
  for (size_t i = 0; i < x.rank() - 1; ++i)
    if (i != site.along) site.rows *= x.dims[i];
  return site;
}

// [rows, given, in]: the signals without what the transform leaves out.
Value signals(Builder& b, const Site& site, Value x) {
  Value y = b.transpose(x, site.order());
  if (site.given < site.x.dims[site.along])
    y = b.op("Slice",
             {y, b.ints({0}), b.ints({site.given}), b.ints({static_cast<int64_t>(site.before)})});
  return b.reshape(y, {site.rows, site.given, site.in});
}

Value slice(Builder& b, Value x, int64_t axis, int64_t begin, int64_t end) {
  return b.op("Slice", {x, b.ints({begin}), b.ints({end}), b.ints({axis})});
}

Value concat(Builder& b, Value first, Value second, int64_t axis) {
  return b.op("Concat", {first, second}, {{"axis", axis}});
}

// [rows, n, in]: zeros behind what is given; of the half of a real signal's spectrum the other
// half, which is its conjugate in reverse.
Value completed(Builder& b, const Site& site, Value x) {
  const int64_t wanted = site.dft.from_half() ? site.half() : site.n;
  if (site.given < wanted) {
    std::vector<int64_t> pads = {0, wanted - site.given};
    x = b.op("Pad", {x, b.ints(pads), Value{}, b.ints({1})});
  }
  const int64_t missing = site.n - wanted;
  if (missing == 0) return x;
  Value rest = b.op("Slice", {x, b.ints({missing}), b.ints({0}), b.ints({1}), b.ints({-1})});
  if (site.in == 2) rest = b.mul(rest, constant_of(b, site.x.dtype, {2}, {1, -1}));
  return concat(b, x, rest, 1);
}

struct Parts {
  Value re, im;
};

// (re + i im)(c + i s)
Parts rotated(Builder& b, Parts z, Value c, Value s) {
  return {b.sub(b.mul(z.re, c), b.mul(z.im, s)), b.add(b.mul(z.re, s), b.mul(z.im, c))};
}

// The real matrix of n x m complex factors, as products with pairs take it. Rows and columns count
// numbers and their components, the components outside where they come first.
struct MatrixForm {
  int64_t n, in;
  bool in_first;
  int64_t m, out;
  bool out_first;
};

template <class At>
Result<Value> matrix_of(Builder& b, uint32_t dtype, const MatrixForm& form, const At& at) {
  const int64_t rows = form.n * form.in, columns = form.m * form.out;
  TN_CHECK(check_matrix(rows, columns));
  std::vector<double> numbers(static_cast<size_t>(rows * columns));
  for (int64_t j = 0; j < form.n; ++j) {
    for (int64_t k = 0; k < form.m; ++k) {
      const Complex w = at(j, k);
      const Complex made[2] = {w, w * Complex(0, 1)};  // of 1 and of i
      for (int64_t p = 0; p < form.in; ++p) {
        for (int64_t q = 0; q < form.out; ++q) {
          const int64_t row = form.in_first ? p * form.n + j : j * form.in + p;
          const int64_t column = form.out_first ? q * form.m + k : k * form.out + q;
          numbers[static_cast<size_t>(row * columns + column)] =
              q ? made[p].imag() : made[p].real();
        }
      }
    }
  }
  return constant_of(b, dtype, {rows, columns}, numbers);
}

// One product. Of the half of a real signal's spectrum all but the ends count twice.
Result<Value> direct(Builder& b, const Site& site, Value x) {
  const int64_t n = site.n;
  const MatrixForm form = {site.given, site.in, false, site.bins(), site.out(), false};
  TN_TRY(matrix, matrix_of(b, site.x.dtype, form, [&](int64_t j, int64_t k) {
           const bool is_twice = site.dft.from_half() && j > 0 && 2 * j != n;
           return turn(site.dft.sign(), j * k % n, n) * site.scale() * (is_twice ? 2.0 : 1.0);
         }));
  Value y = b.op("MatMul", {b.reshape(x, {site.rows, site.given * site.in}), matrix});
  return b.reshape(y, {site.rows, site.bins(), site.out()});
}

// j = j1 n2 + j2 and k = k1 + n1 k2: a transform over j1 for each j2, a rotation by j2 k1, and a
// transform over j2 for each k1, of which only what is wanted is made.
Result<Value> factored(Builder& b, const Site& site, Value x, int64_t n1) {
  const uint32_t dtype = site.x.dtype;
  const int64_t n = site.n, n2 = n / n1, in = site.in, out = site.out(), rows = site.rows;
  const int64_t m2 = (site.bins() + n1 - 1) / n1;
  const double sign = site.dft.sign();
  TN_TRY(first, matrix_of(b, dtype, {n1, in, false, n1, 2, true},
                          [&](int64_t j1, int64_t k1) { return turn(sign, j1 * k1 % n1, n1); }));
  TN_TRY(second, matrix_of(b, dtype, {n2, 2, true, m2, out, false}, [&](int64_t j2, int64_t k2) {
           return turn(sign, j2 * k2 % n2, n2) * site.scale();
         }));
  std::vector<double> cosines, sines;
  for (int64_t k1 = 0; k1 < n1; ++k1) {
    for (int64_t j2 = 0; j2 < n2; ++j2) {
      cosines.push_back(turn(sign, k1 * j2, n).real());
      sines.push_back(turn(sign, k1 * j2, n).imag());
    }
  }
  Value y = b.transpose(b.reshape(completed(b, site, x), {rows, n1, n2, in}), {0, 2, 1, 3});
  y = b.op("MatMul", {b.reshape(y, {rows * n2, n1 * in}), first});
  y = b.transpose(b.reshape(y, {rows, n2, 2 * n1}), {0, 2, 1});
  Parts z = {slice(b, y, 1, 0, n1), slice(b, y, 1, n1, 2 * n1)};
  z = rotated(b, z, constant_of(b, dtype, {n1, n2}, cosines),
              constant_of(b, dtype, {n1, n2}, sines));
  y = b.op("MatMul", {b.reshape(concat(b, z.re, z.im, 2), {rows * n1, 2 * n2}), second});
  y = b.transpose(b.reshape(y, {rows, n1, m2, out}), {0, 2, 1, 3});
  y = b.reshape(y, {rows, m2 * n1, out});
  return m2 * n1 == site.bins() ? y : slice(b, y, 1, 0, site.bins());
}

// The largest factor up to the root.
int64_t factor_of(int64_t n) {
  auto factor = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  while (n % factor != 0)
    --factor;
  return factor;
}

int64_t power_of_two_from(int64_t least) {
  int64_t m = 1;
  while (m < least)
    m *= 2;
  return m;
}

// [rows, n, in] times n complex numbers, as pairs.
Value multiplied(Builder& b, uint32_t dtype, Value x, int64_t in, const Signal& by) {
  std::vector<double> re, im;
  for (Complex c : by) {
    re.push_back(c.real());
    im.push_back(c.imag());
  }
  const auto n = static_cast<int64_t>(by.size());
  Value c = constant_of(b, dtype, {n, 1}, re), s = constant_of(b, dtype, {n, 1}, im);
  if (in == 1) return concat(b, b.mul(x, c), b.mul(x, s), 2);
  Parts z = rotated(b, {slice(b, x, 2, 0, 1), slice(b, x, 2, 1, 2)}, c, s);
  return concat(b, z.re, z.im, 2);
}

// With j k = (j^2 + k^2 - (k - j)^2) / 2 the transform is a convolution with a chirp.
Result<Value> chirped(Builder& b, const Site& site, Value x) {
  const int64_t n = site.n, m = power_of_two_from(2 * n - 1);
  Site longer = site;
  longer.given = n;
  longer.n = m;
  longer.in = 2;
  auto chirp = [&](int64_t t) { return turn(site.dft.sign(), t * t % (2 * n), 2 * n); };
  Signal front, back(static_cast<size_t>(m)), behind;
  for (int64_t t = 0; t < n; ++t) {
    front.push_back(chirp(t));
    back[static_cast<size_t>(t)] = std::conj(chirp(t));
    if (t > 0) back[static_cast<size_t>(m - t)] = std::conj(chirp(t));
    if (t < site.bins()) behind.push_back(chirp(t) * site.scale());
  }
  const uint32_t dtype = site.x.dtype;
  Value y = multiplied(b, dtype, completed(b, site, x), site.in, front);
  longer.dft = {.inverse = false, .onesided = false};
  TN_TRY(spectrum, factored(b, longer, y, factor_of(m)));
  y = multiplied(b, dtype, spectrum, 2, transform(back, -1));
  longer.dft.inverse = true;
  longer.given = m;
  TN_TRY(convolved, factored(b, longer, y, factor_of(m)));
  y = multiplied(b, dtype, slice(b, convolved, 1, 0, site.bins()), 2, behind);
  return site.out() == 2 ? y : slice(b, y, 2, 0, 1);
}

// Multiplications of complex numbers of one signal, from a first factor of the length.
double factored_cost(int64_t n, int64_t n1) {
  const double others = n1 == 1 ? 0 : static_cast<double>(n1);
  return static_cast<double>(n) * (others + static_cast<double>(n / n1));
}

Result<Value> transformed(Builder& b, const Site& site, Value x) {
  // Half precision is rounded once.
  const bool is_whole = site.x.dtype != TN_F32 && site.x.dtype != TN_F64;
  if (is_whole || site.n < kLeastFactored) return direct(b, site, x);
  const int64_t n1 = factor_of(site.n), m = power_of_two_from(2 * site.n - 1);
  const double chirp_cost = 3 * factored_cost(m, factor_of(m));  // two, and the rest
  if (chirp_cost < factored_cost(site.n, n1)) return chirped(b, site, x);
  return n1 == 1 ? direct(b, site, x) : factored(b, site, x, n1);
}

}  // namespace

Result<std::vector<Value>> dft_decompose(EditView edit, Node node) {
  Builder b(edit);
  TN_TRY(site, site_of(node));
  TN_TRY(made, transformed(b, site, signals(b, site, node.input(0))));
  std::vector<int64_t> dims = site.x.dims;
  std::swap(dims[site.along], dims[site.before]);
  dims[site.before] = site.bins();
  dims.back() = site.out();
  Value y = b.transpose(b.reshape(made, dims), site.order());
  TN_CHECK(b.status());
  return std::vector<Value>{y};
}

}  // namespace tenon::ops
