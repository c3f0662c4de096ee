// SPDX-License-Identifier: Apache-2.0
// "distiller.response": the loss of a student that learns from a teacher's answers, softened by a
// temperature, and from labels (Hinton, Vinyals and Dean 2015).
#include "distilled.hpp"

TENON_LOSS(response,
           tenon::distiller::Distilled,
           "distiller.response",
           "learn from a teacher's softened answers and from labels",
           R"({
  "properties": {
    "teacher": {"type": "graph", "description": "the model to learn from, which reads what the student reads; default: what the student was before it was made smaller"},
    "cached": {"type": "boolean", "default": false,
               "description": "no teacher: the last target is its answer, as distiller.cached gives it"},
    "temperature": {"type": "number", "exclusiveMinimum": 0, "default": 4, "description": "divides the scores of both"},
    "alpha": {"type": "number", "minimum": 0, "maximum": 1, "default": 0.7,
              "description": "share of the teacher's part; 1: no labels are needed"},
    "hard": {"type": "component", "role": "tenon.loss/1", "default": "trainer.cross_entropy",
             "description": "the loss against the labels, of share 1 - alpha"},
    "axis": {"type": "integer", "default": 1, "description": "where the classes are"},
    "prediction": {"type": "integer", "minimum": 0, "default": 0, "description": "which output of the student"},
    "teacher_output": {"type": "string", "description": "which output of the teacher; default: the first"}}})")
