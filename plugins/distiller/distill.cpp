// SPDX-License-Identifier: Apache-2.0
// "distiller.distill": what scripts call tn.loss.distill: distiller.response, and the hints of
// distiller.features where they are asked for.
#include "distilled.hpp"
#include "distilled_options.hpp"

TENON_LOSS(distill,
           tenon::distiller::Distilled,
           "distiller.distill",
           "learn from a teacher: its answers, labels, and what it computes inside",
           R"({"properties": {)" TENON_TEACHER_OPTIONS "," TENON_CACHED_OPTION
           "," TENON_ALPHA_OPTION("0.7") "," TENON_HINT_OPTIONS "}}")
