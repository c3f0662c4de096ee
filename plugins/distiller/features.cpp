// SPDX-License-Identifier: Apache-2.0
// "distiller.features": a student that learns what a teacher computes inside (FitNets, ICLR 2015),
// beside labels and, with alpha above 0, the teacher's answers.
#include "distilled.hpp"
#include "distilled_options.hpp"

TENON_LOSS(features,
           tenon::distiller::Distilled,
           "distiller.features",
           "learn what a teacher computes inside, beside labels and its answers",
           R"({"required": ["features"], "properties": {)" TENON_TEACHER_OPTIONS
           "," TENON_ALPHA_OPTION("0") "," TENON_HINT_OPTIONS "}}")
