// SPDX-License-Identifier: Apache-2.0
// "trainer.adafactor": the mean of squared gradients of a matrix as the product of a column and a
// row (Shazeer & Stern 2018, "Adafactor: adaptive learning rates with sublinear memory cost",
// algorithms 4 and 5), as PyTorch's Adafactor: at update t, with w = t^beta2_decay,
//   rho = min(rate, 1/sqrt(t));  alpha = max(smallest_scale, RMS(p)) rho;  p -= rate decay p
//   R = (1 - w) R + w mean(g^2 over columns);  C = (1 - w) C + w mean(g^2 over rows)
//   V = R C / max(mean R, epsilon);  u = g / sqrt(max(V, epsilon^2))
//   p -= alpha u / max(1, RMS(u) / clip)
// Vectors keep the whole mean. The last two axes are the matrix, which saves little of a
// convolution's weight: `flatten` makes [out, all else] of it. Parameters of 16 bits are updated in
// float32, which their states are in too: squares of their gradients are 0 in float16.
#include <limits>

#include "counts.hpp"

namespace tenon::trainer {
namespace {

class Adafactor {
 public:
  static Result<Adafactor> create(tn_ctx*, const Options& options) {
    return Adafactor{options.number("beta2_decay"),    options.number("epsilon"),
                     options.number("smallest_scale"), options.number("clip"),
                     options.flag("flatten"),          Decay::from(options)};
  }

  Status build(EditView edit, const Update& update, std::span<Value> after) const {
    TN_CHECK(decay_.check(edit.graph()));
    Builder b(edit);
    Coefficients constants(b);
    const uint32_t type = update.rate.dtype();
    TN_TRY(counts, count_updates(edit, b, "adafactor", update.parameters, type));
    std::map<std::string, Shared, std::less<>> shared;
    for (const auto& [layer, t] : counts) {
      Value most = b.op("Reciprocal", {b.op("Sqrt", {t})});
      shared[layer] = {b.op("Min", {update.rate, most}),
                       b.op("Pow", {t, b.number(beta2_decay_, type)})};
    }
    Value pull;
    if (decay_.amount != 0) pull = b.mul(update.rate, decay_.number(constants, type));
    for (size_t i = 0; i < after.size(); ++i) {
      const Parameter& one = update.parameters[i];
      uint32_t dtype = one.value.dtype();
      TN_TRY(change, step(b, constants, one, shared.at(rests_with(one))));
      if (decay_.applies_to(one))
        change = b.add(change, b.mul(one.value, constants.as(pull, dtype)));
      after[i] = b.sub(one.value, change);
    }
    return b.status();
  }

 private:
  struct Shared {  // scalars of one update
    Value rho, fresh;
  };
  Adafactor(double beta2_decay,
            double epsilon,
            double smallest_scale,
            double clip,
            bool flatten,
            Decay decay)
      : beta2_decay_(beta2_decay),
        epsilon_(epsilon),
        smallest_scale_(smallest_scale),
        clip_(clip),
        flattens_(flatten),
        decay_(std::move(decay)) {}

  double epsilon(uint32_t dtype) const {
    if (epsilon_ > 0) return epsilon_;
    if (dtype == TN_F64) return std::numeric_limits<double>::epsilon();
    if (dtype == TN_F16) return 0x1p-10;
    return dtype == TN_BF16 ? 0x1p-7 : std::numeric_limits<float>::epsilon();
  }

  Result<Value> step(Builder& b, Coefficients& c, const Parameter& one, const Shared& of) const {
    const uint32_t own = one.value.dtype(), dtype = own == TN_F64 ? TN_F64 : TN_F32;
    std::vector<int64_t> dims = one.value.type().dims;
    Value given = b.cast(one.gradient, dtype);
    const bool is_folded = flattens_ && dims.size() > 2;
    if (is_folded) dims = {dims[0], one.value.type().elements() / std::max<int64_t>(dims[0], 1)};
    Value g = is_folded ? b.reshape(given, dims) : given;
    TN_TRY(v, dims.size() > 1 ? factored(b, c, one, g, dims, c.as(of.fresh, dtype))
                              : whole(b, c, one, g, c.as(of.fresh, dtype)));
    double least = epsilon(own);
    Value u = b.div(g, b.op("Sqrt", {b.op("Max", {v, c.number(least * least, dtype)})}));
    Value excess = b.mul(root_mean_square(b, u), c.number(1 / clip_, dtype));
    Value size = root_mean_square(b, b.cast(one.value, dtype));
    Value scale = b.op("Max", {size, c.number(smallest_scale_, dtype)});
    Value alpha =
        b.div(b.mul(scale, c.as(of.rho, dtype)), b.op("Max", {excess, c.number(1, dtype)}));
    Value change = b.cast(b.mul(u, alpha), own);
    return is_folded ? b.reshape_like(change, one.value) : change;
  }

  static Value root_mean_square(Builder& b, Value x) {
    return b.op("Sqrt", {b.op("ReduceMean", {b.mul(x, x)}, {{"keepdims", 0}})});
  }
  // before + fresh (now - before), kept in a state of this name and shape.
  static Result<Value> mean(
      Builder& b, std::string name, const std::vector<int64_t>& dims, Value now, Value fresh) {
    TN_TRY(slot, Slot::open(b.edit(), name, Type(now.dtype(), dims)));
    Value next = b.add(slot.before, b.mul(fresh, b.sub(now, slot.before)));
    TN_CHECK(b.status());
    TN_CHECK(slot.close(b.edit(), next));
    return next;
  }
  static Result<Value> whole(
      Builder& b, Coefficients&, const Parameter& one, Value g, Value fresh) {
    return mean(b, cat(one.name, "/variance"), one.value.type().dims, b.mul(g, g), fresh);
  }
  Result<Value> factored(Builder& b,
                         Coefficients& c,
                         const Parameter& one,
                         Value g,
                         const std::vector<int64_t>& dims,
                         Value fresh) const {
    std::vector<int64_t> rows = dims, columns = dims;
    rows.back() = columns[columns.size() - 2] = 1;
    Value squares = b.mul(g, g);
    auto over = [&](Value x, int64_t axis) { return b.op("ReduceMean", {x, b.ints({axis})}); };
    TN_TRY(r, mean(b, cat(one.name, "/row_var"), rows, over(squares, -1), fresh));
    TN_TRY(k, mean(b, cat(one.name, "/col_var"), columns, over(squares, -2), fresh));
    Value all = b.op("Max", {over(r, -2), c.number(epsilon(one.value.dtype()), g.dtype())});
    return b.div(b.mul(r, k), all);
  }

  double beta2_decay_, epsilon_, smallest_scale_, clip_;
  bool flattens_;
  Decay decay_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_OPTIMIZER(adafactor,
                tenon::trainer::Adafactor,
                "trainer.adafactor",
                "Adam's second moment as a row and a column, for little memory",
                R"({
  "properties": {
    "beta2_decay": {"type": "number", "maximum": 0, "default": -0.8, "description": "exponent of the share that a new squared gradient has at update t: t^beta2_decay"},
    "epsilon": {"type": "number", "minimum": 0, "default": 0, "description": "smallest root of the second moment; 0: the type's machine epsilon"},
    "smallest_scale": {"type": "number", "minimum": 0, "default": 0.001, "description": "least of a tensor's root mean square, which its steps are relative to"},
    "clip": {"type": "number", "exclusiveMinimum": 0, "default": 1, "description": "maximum of the root mean square of an update"},
    "flatten": {"type": "boolean", "default": false, "description": "weights of more than two axes are factored as [out, all else]"},
    )" TRAINER_DECAY_OPTIONS("0") R"(}})")
