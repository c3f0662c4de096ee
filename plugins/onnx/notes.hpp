// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a model file says about itself beyond the graph is kept as notes, so that it is written
// back.

#include <string_view>

namespace tenon::onnx_plugin {

inline constexpr std::string_view kNoteProducer = "onnx.producer_name";
inline constexpr std::string_view kNoteProducerVersion = "onnx.producer_version";
inline constexpr std::string_view kNoteDomain = "onnx.domain";
inline constexpr std::string_view kNoteModelVersion = "onnx.model_version";
inline constexpr std::string_view kNoteDoc = "onnx.doc";  // of the graph or a node
inline constexpr std::string_view kNoteModelDoc = "onnx.model_doc";
inline constexpr std::string_view kNoteGraphName = "onnx.graph_name";
inline constexpr std::string_view kNoteMetadata = "onnx.metadata.";  // + key; graph or node
inline constexpr std::string_view kNoteGraphMetadata = "onnx.graph_metadata.";  // + key
// Of a node: the element type of the sequence that its attribute type states.
inline constexpr std::string_view kNoteSequenceOf = "onnx.sequence_of";
// Of a constant, true: a number that the program spelled out. It is written as a Constant node.
inline constexpr std::string_view kNoteLiteral = "onnx.literal";
inline constexpr std::string_view kNoteTrain = "train";  // of a constant: whether it is a parameter
// + domain, not ONNX's own: which version of its operators the graph means (tenon/role/op.h).
inline constexpr std::string_view kNoteOpset = "opset.";

inline constexpr std::string_view kStopGradient = "StopGradient";  // of Tenon's domain

inline constexpr std::string_view kOurProducer = "tenon";  // where no note names another

// Keys of metadata_props, for what ONNX has no place for.
inline constexpr std::string_view kMetadataScope = "tenon.scope";  // of a node
// Of an Identity: the operator of Tenon's domain that it is to Tenon, StopGradient.
inline constexpr std::string_view kMetadataIdentity = "tenon.identity";
inline constexpr std::string_view kMetadataTrain = "tenon.train";   // of an initializer: 1 or 0
inline constexpr std::string_view kMetadataState = "tenon.state.";  // + input: the paired output

}  // namespace tenon::onnx_plugin
