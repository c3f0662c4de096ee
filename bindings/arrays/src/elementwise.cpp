// SPDX-License-Identifier: Apache-2.0
// Functions that work element by element and are one operator; shapes are broadcast.
#include "call.hpp"

namespace tenon::arrays {
namespace {

const Function kRows[] = {
    {"abs(x)", "Abs", "x without its sign.", "="},
    {"acos(x: float)", "Acos", "The angle whose cosine is x."},
    {"acosh(x: float)", "Acosh", "The inverse of cosh."},
    {"add(a: together, b: together)", "Add", "a + b; shapes are broadcast.", "Or"},
    {"asin(x: float)", "Asin", "The angle whose sine is x."},
    {"asinh(x: float)", "Asinh", "The inverse of sinh."},
    {"atan(x: float)", "Atan", "The angle whose tangent is x."},
    {"atanh(x: float)", "Atanh", "The inverse of tanh."},
    {"bitwise_and(a: together, b: together)", "BitwiseAnd", "The bits that both have.", "And"},
    {"bitwise_invert(x)", "BitwiseNot", "Every bit inverted; of a truth value its negation.",
     "Not"},
    {"bitwise_or(a: together, b: together)", "BitwiseOr", "The bits that one of them has.", "Or"},
    {"bitwise_xor(a: together, b: together)", "BitwiseXor", "The bits that just one of them has.",
     "Xor"},
    {"ceil(x)", "Ceil", "The smallest whole number that is not below x.", "", rounded},
    {"cos(x: float)", "Cos", "The cosine of x, in radians."},
    {"cosh(x: float)", "Cosh", "The hyperbolic cosine."},
    {"equal(a: compared, b: compared)", "Equal", "True where a is b; shapes are broadcast.", "",
     compared},
    {"erf(x: float)", "Erf", "The error function."},
    {"exp(x: float)", "Exp", "e to the power of x."},
    {"floor(x)", "Floor", "The largest whole number that is not above x.", "", rounded},
    {"gelu(x: float)", "Gelu", "x times the normal distribution's cumulative probability at x."},
    {"greater(a: compared number, b: compared number)", "Greater", "True where a > b.", "",
     compared},
    {"greater_equal(a: compared number, b: compared number)", "GreaterOrEqual",
     "True where a >= b.", "", compared},
    {"isinf(x: float)", "IsInf", "True where x is infinite."},
    {"isnan(x: float)", "IsNaN", "True where x is not a number."},
    {"less(a: compared number, b: compared number)", "Less", "True where a < b.", "", compared},
    {"less_equal(a: compared number, b: compared number)", "LessOrEqual", "True where a <= b.", "",
     compared},
    {"log(x: float)", "Log", "The natural logarithm."},
    {"logical_and(a: bool, b: bool)", "And", "True where both are."},
    {"logical_not(x: bool)", "Not", "True where x is not."},
    {"logical_or(a: bool, b: bool)", "Or", "True where one of them is."},
    {"logical_xor(a: bool, b: bool)", "Xor", "True where just one of them is."},
    {"maximum(a: together, b: together)", "Max", "The larger of the two.", "Or"},
    {"minimum(a: together, b: together)", "Min", "The smaller of the two.", "And"},
    {"multiply(a: together, b: together)", "Mul", "a * b; shapes are broadcast.", "And"},
    {"negative(x)", "Neg", "-x.", "!tn.logical_not"},
    {"reciprocal(x: float)", "Reciprocal", "1/x."},
    {"relu(x: float)", "Relu", "x where it is positive, else 0."},
    {"relu6(x: float)", "",
     "x, but not below 0 and not above 6. Its slope is 0 at both, where that of clip is 0.5.", "",
     [](Call& c) -> Values { return node("Clip", {c[0], 0.0, 6.0}); }},
    {"round(x)", "Round", "The nearest whole number, halves to the even one.", "", rounded},
    {"sigmoid(x: float)", "Sigmoid", "1/(1 + exp(-x))."},
    {"sign(x)", "Sign", "-1, 0 or 1.", "!tn.astype first"},
    {"silu(x: float)", "Swish", "x*sigmoid(x)."},
    {"sin(x: float)", "Sin", "The sine of x, in radians."},
    {"sinh(x: float)", "Sinh", "The hyperbolic sine."},
    {"softplus(x: float)", "Softplus", "log(1 + exp(x)), without overflow."},
    {"sqrt(x: float)", "Sqrt", "The square root."},
    {"subtract(a: together, b: together)", "Sub", "a - b; shapes are broadcast.",
     "!tn.logical_xor"},
    {"tan(x: float)", "Tan", "The tangent of x, in radians."},
    {"tanh(x: float)", "Tanh", "The hyperbolic tangent."},
};

}  // namespace

const std::span<const Function> kElementwise = kRows;

}  // namespace tenon::arrays
