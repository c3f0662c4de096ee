// SPDX-License-Identifier: Apache-2.0
// "distiller.response": the loss of a student that learns from a teacher's answers, softened by a
// temperature, and from labels (Hinton, Vinyals and Dean 2015).
#include "distilled.hpp"
#include "distilled_options.hpp"

TENON_LOSS(response,
           tenon::distiller::Distilled,
           "distiller.response",
           "learn from a teacher's softened answers and from labels",
           R"({"properties": {)" TENON_TEACHER_OPTIONS "," TENON_CACHED_OPTION
           "," TENON_ALPHA_OPTION("0.7") "}}")
