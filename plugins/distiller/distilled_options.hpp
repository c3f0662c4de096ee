// SPDX-License-Identifier: Apache-2.0
#pragma once
// Options that several losses have, as members of the "properties" of their JSON: one source for
// what users read. They are macros, as a component's description is one literal.

#define TENON_TEACHER_OPTIONS                                                                                                                                                      \
  R"("teacher": {"type": "graph", "description": "the model to learn from, which reads what the student reads; default: what the student was before it was made smaller"},)"       \
  R"("temperature": {"type": "number", "exclusiveMinimum": 0, "default": 4, "description": "divides the scores of both"},)"                                                        \
  R"("hard": {"type": "component", "role": "tenon.loss/1", "description": "the loss against the labels, of share 1 - alpha; default: trainer.cross_entropy over the same axis"},)" \
  R"("axis": {"type": "integer", "default": 1, "description": "where the classes are"},)"                                                                                          \
  R"("prediction": {"type": "integer", "minimum": 0, "description": "which output of the student, for labels too; default: the first, and all for the loss against the labels"},)" \
  R"("teacher_output": {"type": "string", "description": "which output of the teacher; default: the first"})"

#define TENON_CACHED_OPTION \
  R"("cached": {"type": "boolean", "default": false, "description": "no teacher: the last target is its answer, as distiller.cached gives it"})"

#define TENON_ALPHA_OPTION(share)                                                \
  R"("alpha": {"type": "number", "minimum": 0, "maximum": 1, "default": )" share \
  R"(, "description": "share of the teacher's answers; 1: no labels are needed"})"

#define TENON_HINT_OPTIONS                                                                                                                                                                                                                                                                                                                                                \
  R"("features": {"type": ["array", "string", "object"], "items": {"type": "string"}, "description": "names of values of both models, or an object: student's name -> teacher's name"},)"                                                                                                                                                                                 \
  R"("match": {"needs": {"features": "given"}, "type": "string", "enum": ["hint", "attention", "relation", "similarity", "contrast"], "default": "hint", "description": "hint: the numbers themselves; attention: where squares are large; relation: distances and angles between samples; similarity: products of samples; contrast: each sample nearest to its own"},)" \
  R"("distance": {"needs": {"features": "given", "match": ["relation"]}, "type": "number", "minimum": 0, "default": 25, "description": "match relation: share of the distances"},)"                                                                                                                                                                                       \
  R"("angle": {"needs": {"features": "given", "match": ["relation"]}, "type": "number", "minimum": 0, "default": 50, "description": "match relation: share of the angles"},)"                                                                                                                                                                                             \
  R"("softness": {"needs": {"features": "given", "match": ["contrast"]}, "type": "number", "exclusiveMinimum": 0, "default": 0.07, "description": "match contrast: divides the cosines"},)"                                                                                                                                                                               \
  R"("width": {"needs": {"features": "given", "match": ["contrast"]}, "type": "integer", "minimum": 1, "default": 128, "description": "match contrast: to so many numbers a trained map brings each side"},)"                                                                                                                                                             \
  R"("weight": {"needs": {"features": "given"}, "type": "number", "minimum": 0, "default": 1, "description": "of each hint"},)"                                                                                                                                                                                                                                           \
  R"("adapter": {"needs": {"features": "given"}, "type": "string", "enum": ["auto", "always", "none"], "default": "auto", "description": "a trained 1x1 convolution or product behind the student's value; auto: where channels differ"},)"                                                                                                                               \
  R"("seed": {"needs": {"features": "given"}, "type": "integer", "minimum": 0, "default": 0, "description": "of the adapters' first numbers"})"
