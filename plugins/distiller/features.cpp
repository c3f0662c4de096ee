// SPDX-License-Identifier: Apache-2.0
// "distiller.features": a student that learns what a teacher computes inside (FitNets, ICLR 2015),
// beside labels and, with alpha above 0, the teacher's answers.
#include "distilled.hpp"

TENON_LOSS(features,
           tenon::distiller::Distilled,
           "distiller.features",
           "learn what a teacher computes inside, beside labels and its answers",
           R"({
  "properties": {
    "teacher": {"type": "graph", "description": "the model to learn from, which reads what the student reads; default: what the student was before it was made smaller"},
    "features": {"type": ["array", "string", "object"], "items": {"type": "string"},
                 "description": "names of values of both models, or an object: student's name -> teacher's name"},
    "weight": {"type": "number", "minimum": 0, "default": 1, "description": "of each hint's mean squared difference"},
    "adapter": {"type": "string", "enum": ["auto", "always", "none"], "default": "auto",
                "description": "a trained 1x1 convolution or product behind the student's value; auto: where channels differ"},
    "seed": {"type": "integer", "minimum": 0, "default": 0, "description": "of the adapters' first numbers"},
    "alpha": {"type": "number", "minimum": 0, "maximum": 1, "default": 0, "description": "share of the teacher's answers, as in distiller.response"},
    "temperature": {"type": "number", "exclusiveMinimum": 0, "default": 4, "description": "divides the scores of both"},
    "hard": {"type": "component", "role": "tenon.loss/1", "default": "trainer.cross_entropy",
             "description": "the loss against the labels, of share 1 - alpha"},
    "axis": {"type": "integer", "default": 1, "description": "where the classes are"},
    "prediction": {"type": "integer", "minimum": 0, "default": 0, "description": "which output of the student"},
    "teacher_output": {"type": "string", "description": "which output of the teacher; default: the first"}},
  "required": ["features"]})")
