// SPDX-License-Identifier: Apache-2.0
// Fourier transforms by the array API's extension `fft`. Complex numbers are pairs (real,
// imaginary) in a last axis of two, as in ONNX; `axis` counts the axes in front of it.
#include <cmath>

#include "call.hpp"

namespace tenon::arrays {
namespace {

using cxx::cat, cxx::invalid;

enum class Kind { kFull, kToHalf, kFromHalf };  // complex to complex, real to half, half to real

struct Transform {
  Kind kind = Kind::kFull;
  bool inverse = false;
  std::string norm = "backward";
};

// What the sums are multiplied with beside what DFT does: 1/n in the inverse.
double scale_of(const Transform& t, const Call& c, int64_t n) {
  bool forward = t.norm == "forward", ortho = t.norm == "ortho";
  if (!forward && !ortho && t.norm != "backward")
    invalid(cat(c.row.signature.substr(0, c.row.signature.find('(')),
                ": norm: expected 'backward', 'ortho' or 'forward', got '", t.norm, "'"));
  auto size = static_cast<double>(n);
  if (ortho) return t.inverse ? std::sqrt(size) : 1 / std::sqrt(size);
  return !forward ? 1 : t.inverse ? size : 1 / size;
}

const Value& pairs(const Call& c, const Value& x) {
  if (x.rank() >= 2 && x.dims.back() == 2) return x;
  invalid(cat(c.row.signature.substr(0, c.row.signature.find('(')),
              ": x: expected complex numbers as pairs in a last axis of 2, got ", x.text(),
              "; real arrays are for fft.rfft, or stack x with zeros on a last axis"));
}

// One axis; length: as it is where nothing is given.
Value transformed(
    const Call& c, const Value& x, int64_t axis, const Json& length, const Transform& t) {
  bool from_real = t.kind == Kind::kToHalf, to_real = t.kind == Kind::kFromHalf;
  Value in = from_real ? expand_dims(x, x.rank()) : x;
  std::optional<int64_t> n;
  if (!length.is_null()) {
    if (!is_whole(length) || length.get<int64_t>() < 1)
      invalid(cat("fft: n: expected a whole number from 1, got ", cxx::dump(length)));
    n = length.get<int64_t>();
  } else if (t.norm != "backward" || (to_real && in.dims[static_cast<size_t>(axis)] >= 0)) {
    n = to_real ? 2 * (in.size_of(axis) - 1) : in.size_of(axis);
  }
  if (n && *n < 1)
    invalid(cat("fft: axis ", axis, " of ", x.text(), ": expected two elements at least"));
  std::vector<Value> inputs = {in};
  inputs.push_back(n ? c.graph.number(*n, TN_I64) : Value{});
  inputs.push_back(c.graph.number(axis, TN_I64));
  Json attributes = {{"inverse", t.inverse ? 1 : 0}, {"onesided", t.kind == Kind::kFull ? 0 : 1}};
  Value made = c.graph.nodes("DFT", inputs, attributes).front();
  if (double by = scale_of(t, c, n.value_or(1)); by != 1) made = made * by;
  return to_real ? squeeze(made, {made.rank() - 1}) : made;
}

int64_t rank_of(const Value& x, Kind kind) {
  return kind == Kind::kToHalf ? x.rank() : x.rank() - 1;
}

Values one(Call& c) {  // x, n, axis, norm; the row's op says which
  std::string_view op = c.row.op;
  Transform t{
      op.ends_with("rfft") ? op.starts_with("i") ? Kind::kFromHalf : Kind::kToHalf : Kind::kFull,
      op.starts_with("i"), c.text(3)};
  const Value& x = t.kind == Kind::kToHalf ? c[0] : pairs(c, c[0]);
  return transformed(c, x, c.axis(2, rank_of(x, t.kind)), c.json(1), t);
}

// The conjugate's transform the other way round is that of a signal with a real spectrum.
Value conjugate(const Value& x) {
  std::vector<Json> signs = {1.0, -1.0};
  return x * x.graph->constant(x.dtype, {2}, signs);
}
std::string opposite(const std::string& norm) {
  return norm == "backward" ? "forward" : norm == "forward" ? "backward" : norm;
}
Values hermitian(Call& c) {
  if (c.row.op == "hfft") {
    Transform t{Kind::kFromHalf, true, opposite(c.text(3))};
    const Value& x = pairs(c, c[0]);
    return transformed(c, conjugate(x), c.axis(2, x.rank() - 1), c.json(1), t);
  }
  Transform t{Kind::kToHalf, false, opposite(c.text(3))};
  return conjugate(transformed(c, c[0], c.axis(2, c[0].rank()), c.json(1), t));
}

// Several axes: the half one is the last, first in the transform and last in its inverse.
Values several(Call& c) {  // x, s, axes, norm
  std::string_view op = c.row.op;
  bool inverse = op.starts_with("i"), half = op.ends_with("rfftn");
  Kind kind = !half ? Kind::kFull : inverse ? Kind::kFromHalf : Kind::kToHalf;
  Value x = kind == Kind::kToHalf ? c[0] : pairs(c, c[0]);
  std::vector<int64_t> sizes;
  if (!c.json(1).is_null()) sizes = c.ints(1);
  std::vector<int64_t> axes = c.axes_in_turn(2, rank_of(x, kind));
  if (c.json(2).is_null() && !sizes.empty() && sizes.size() < axes.size())
    axes.erase(axes.begin(), axes.end() - static_cast<std::ptrdiff_t>(sizes.size()));
  if (axes.empty() || (!sizes.empty() && sizes.size() != axes.size()))
    invalid(cat("fft: s: expected a size for each of ", axes.size(), " axes, got ", sizes.size()));
  auto step = [&](size_t i, Kind of) {
    x = transformed(c, x, axes[i], sizes.empty() ? Json() : Json(sizes[i]),
                    {of, inverse, c.text(3)});
  };
  if (kind == Kind::kToHalf) step(axes.size() - 1, kind);
  for (size_t i = 0; i + (half ? 1 : 0) < axes.size(); ++i)
    step(i, Kind::kFull);
  if (kind == Kind::kFromHalf) step(axes.size() - 1, kind);
  return x;
}

Values frequencies(Call& c) {  // n, d, dtype
  int64_t n = c.integer(0);
  if (n < 1) invalid(cat("fft: n: expected a number from 1, got ", n));
  bool half = c.row.op == "rfftfreq";
  std::vector<Json> numbers;
  for (int64_t i = 0; i < (half ? n / 2 + 1 : n); ++i) {
    int64_t turns = !half && i >= (n + 1) / 2 ? i - n : i;
    numbers.push_back(static_cast<double>(turns) /
                      (static_cast<double>(n) * c.json(1).get<double>()));
  }
  return c.graph.constant(c.dtype(2), {static_cast<int64_t>(numbers.size())}, numbers);
}

Values shifted(Call& c) {
  std::vector<int64_t> axes = c.axes_in_turn(1, c[0].rank()), by;
  for (int64_t axis : axes) {
    int64_t half = c[0].size_of(axis) / 2;
    by.push_back(c.row.op == "fftshift" ? half : -half);
  }
  Json positional = {{{"value", c[0].id}}, by, axes};
  return c.graph.value(c.graph.call("roll", positional, Json::object()).front());
}

const Function kRows[] = {
    {"fft.fft(x: float, n: int = none, axis: int = -1, norm: text = \"backward\")", "fft",
     "The transform of complex signals [..., n, 2] along axis, cut or filled with zeros to n. "
     "norm: "
     "'backward', 'ortho' or 'forward', which of the two directions is divided by the length.",
     "", one},
    {"fft.fftfreq(n: int, d: scalar = 1.0, dtype: dtype = \"float32\")", "fftfreq",
     "The frequencies of fft's results, for samples at distance d.", "", frequencies},
    {"fft.fftn(x: float, s: ints = none, axes: axes = none, norm: text = \"backward\")", "fftn",
     "The transform along several axes; s: their lengths. Axes count those before the pairs.", "",
     several},
    {"fft.fftshift(x, axes: axes = none)", "fftshift",
     "The frequency 0 moved to the middle of axes; of complex numbers name the axes.", "", shifted},
    {"fft.hfft(x: float, n: int = none, axis: int = -1, norm: text = \"backward\")", "hfft",
     "The real spectrum [..., n] of a signal that is its own conjugate backwards, from its first "
     "half [..., n/2 + 1, 2].",
     "", hermitian},
    {"fft.ifft(x: float, n: int = none, axis: int = -1, norm: text = \"backward\")", "ifft",
     "The inverse of fft.", "", one},
    {"fft.ifftn(x: float, s: ints = none, axes: axes = none, norm: text = \"backward\")", "ifftn",
     "The inverse of fftn.", "", several},
    {"fft.ifftshift(x, axes: axes = none)", "ifftshift", "The inverse of fftshift.", "", shifted},
    {"fft.ihfft(x: float, n: int = none, axis: int = -1, norm: text = \"backward\")", "ihfft",
     "The inverse of hfft.", "", hermitian},
    {"fft.irfft(x: float, n: int = none, axis: int = -1, norm: text = \"backward\")", "irfft",
     "The inverse of rfft: real signals [..., n] from [..., n/2 + 1, 2]; n is even by default.", "",
     one},
    {"fft.irfftn(x: float, s: ints = none, axes: axes = none, norm: text = \"backward\")", "irfftn",
     "The inverse of rfftn.", "", several},
    {"fft.rfft(x: float, n: int = none, axis: int = -1, norm: text = \"backward\")", "rfft",
     "The first half [..., n/2 + 1, 2] of the transform of real signals [..., n], which says the "
     "other.",
     "", one},
    {"fft.rfftfreq(n: int, d: scalar = 1.0, dtype: dtype = \"float32\")", "rfftfreq",
     "The frequencies of rfft's results, for samples at distance d.", "", frequencies},
    {"fft.rfftn(x: float, s: ints = none, axes: axes = none, norm: text = \"backward\")", "rfftn",
     "The transform of real arrays along several axes, the last of them as rfft does.", "",
     several},
};

}  // namespace

const std::span<const Function> kFft = kRows;

}  // namespace tenon::arrays
