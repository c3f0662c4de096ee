// SPDX-License-Identifier: Apache-2.0
// "trainer.train": a model, trained on a data set.
#include "tenon/sdk/role/pass.hpp"

#include "loop.hpp"

namespace tenon::trainer {
namespace {

class Train {
 public:
  static Result<Train> create(tn_ctx* ctx, const Options& options) {
    Result<Settings> settings = Settings::from(ctx, options);
    if (!settings.ok()) return std::move(settings).status();
    return Train{ctx, std::move(*settings)};
  }

  Status run(tn_graph* raw, const Cancel& cancel, Sink& report) {
    TN_TRY(model, OwnedGraph::copy_of(raw));
    Loop loop(ctx_, settings_, model.get());
    TN_CHECK(loop.run(cancel));
    TN_CHECK(loop.put_trained(raw, cancel));
    return report.write(loop.report().dump());
  }

  tn_ctx* ctx_;
  Settings settings_;
};

}  // namespace
}  // namespace tenon::trainer

TENON_PASS(train,
           tenon::trainer::Train,
           "trainer.train",
           "a model, trained on a data set",
           R"({
  "required": ["data"],
  "properties": {
    "data": {"type": "component", "role": "tenon.dataset/1", "description": "samples to learn from: inputs of the model by name, and targets"},
    "target": {"type": ["array", "string"], "items": {"type": "string"}, "description": "fields that the loss compares with; the one that is no input, or label, when absent"},
    "validation": {"type": ["number", "component"], "role": "tenon.dataset/1", "description": "a data set to validate on after each epoch, or a share of data to hold out"},
    "loss": {"type": "component", "role": "tenon.loss/1", "default": "cross_entropy", "description": "the loss"},
    "optimizer": {"type": "component", "role": "tenon.optimizer/1", "default": "sgd", "description": "how parameters are updated"},
    "rate": {"type": ["number", "component"], "role": "tenon.schedule/1", "minimum": 0, "default": 0.01, "description": "the learning rate: a number, or a schedule over steps"},
    "rate_batch": {"type": "integer", "minimum": 0, "default": 0, "description": "the batch that rate is for: other batches, accumulated ones as well, have one that is as many times higher or lower; 0: any"},
    "plateau": {"type": "object", "description": "cuts the rate by factor (0.1) after more than patience (10) epochs that are no better by threshold (1e-4, relative), with cooldown (0) and a lowest (0) rate; of: validation, or loss, that of the training"},
    "schedules": {"type": ["object", "component"], "role": "tenon.schedule/1", "description": "numbers that change over the updates, by name: an object with schedule, the id of one, its options, and plateau or follow; or a trainer.driven. Options of loss and optimizer (weight_decay, label_smoothing, temperature), scalar constants of the model, dropout, learning_rate in place of rate"},
    "groups": {"type": "object", "description": "by name: parameters, as patterns; and for them rate, a factor, optimizer, an id, and its options"},
    "clip_norm": {"type": "number", "minimum": 0, "default": 0, "description": "maximum of the global gradient norm; 0: no limit"},
    "clip_value": {"type": "number", "minimum": 0, "default": 0, "description": "maximum of the absolute value of each element of a gradient, before clip_norm; 0: no limit"},
    "accumulate": {"type": "integer", "minimum": 1, "default": 1, "description": "gradient accumulation: batches of one update, which is that of one batch of all their samples"},
    "average": {"type": "number", "minimum": 0, "exclusiveMaximum": 1, "default": 0, "description": "decay rate of a moving average of the weights, which is validated and returned in their place; 0: none"},
    "swa": {"type": "object", "description": "stochastic weight averaging: the mean of the weights at the ends of epochs is validated and returned. begin (3/4 of the epochs): epochs before the first; every (1): epochs; rate: the learning rate from then on, reached over anneal (0) epochs; statistics: samples by which those of BatchNormalization are estimated again, all when absent"},
    "check_nan": {"type": "boolean", "default": false, "description": "checks each step for NaN, and names the node that produced the first one"},
    "epochs": {"type": "integer", "minimum": 1, "default": 1, "description": "number of epochs"},
    "batch": {"type": "integer", "minimum": 1, "description": "batch size; 64, or the model's own where it is fixed, when absent"},
    "memory": {"type": "integer", "minimum": 0, "default": 0, "description": "bytes: in place of batch, the largest one whose step is planned to fit, states and waiting batches counted"},
    "step_shapes": {"type": "integer", "minimum": 1, "default": 8, "description": "shapes of a batch whose compiled steps are kept, those used last; all have the same states"},
    "curriculum": {"type": "object", "description": "score: a field of the data set, whose sum over a sample is its score, or a number for each sample; the easiest sample_share (of schedules) is drawn from. fit: an input of the model: each batch is cut behind its last number that is not 0 in any of its samples. buckets (8): the number of lengths that fit and sequence_length (of schedules) take, even steps up to the longest; 0: any"},
    "shuffle": {"type": "boolean", "default": true, "description": "shuffles the samples in each epoch"},
    "drop_last": {"type": "boolean", "default": false, "description": "drops the last batch of an epoch when it is smaller"},
    "seed": {"type": "integer", "minimum": 0, "default": 0, "description": "seed of the order of samples, of held-out ones, and of Dropout"},
    "parameters": {"type": ["array", "string"], "items": {"type": "string"}, "description": "patterns of names, nodes, operators or scopes: only these are trained"},
    "frozen": {"type": ["array", "string"], "items": {"type": "string"}, "description": "patterns of what is not trained"},
    "batch_norm": {"type": "string", "enum": ["train", "frozen"], "default": "train", "description": "frozen: BatchNormalization keeps its statistics and uses them"},
    "precision": {"type": "string", "enum": ["fp32", "bf16", "fp16", "fp8", "tf32", "fp64", "O0", "O1", "O2", "O3"], "default": "fp32", "description": "mixed precision: parameters stay in float32; O0 to O3: levels of float16 as Apex has them, O3 with parameters of float16; fp8: operands of products rounded to float8; tf32: where the backend has it; fp64: steps and states in float64"},
    "loss_scale": {"type": "object", "description": "options of the scaler of float16: preset (torch, apex, deepspeed), init_scale, growth_factor, backoff_factor, growth_interval, min_scale, max_scale, hysteresis, consecutive_hysteresis; config, state: that library's own"},
    "fp8": {"needs": {"precision": ["fp8"]}, "type": "object", "description": "options of precision.fp8: history, margin, amax, format, only, skip"},
    "drop_layers": {"type": "object", "description": "progressive layer dropping, options of trainer.drop_layers: layers (names or scopes, * for one part), keep (0.5, of the last layer), rule, sets (12) at most"},
    "gradient_histogram": {"type": "boolean", "default": false, "description": "each epoch's record says what float16 would make of gradients: shares that become zero, lose digits, overflow; and the loss scale that follows"},
    "joint": {"type": ["array", "string", "object"], "items": {"type": "string"}, "description": "passes on forward and backward together, in this order, or an object of their options by id: autodiff.recompute, autodiff.compress"},
    "backend": {"type": ["array", "string"], "items": {"type": "string"}, "description": "the backend of the steps; onednn where it is available, when absent"},
    "threads": {"type": "integer", "minimum": 0, "default": 0, "description": "threads of the backend; 0: all"},
    "backend_options": {"type": "object", "description": "options of the backend's own, as tenon plugin info lists them: {\"choose\": \"measured\"} of onednn"},
    "metric": {"needs": {"validation": "given"}, "type": "string", "description": "of the validation: accuracy, or a metric's id"},
    "train_as": {"type": ["array", "string", "object"], "items": {"type": "string"}, "description": "passes that make what is trained of the model, or an object of their options by id: quantizer.track, for ranges that move inside the step"},
    "validate_as": {"needs": {"validation": "given"}, "type": ["array", "string", "object"], "items": {"type": "string"}, "description": "passes that make what is validated of the model: quantizer.convert, for its accuracy in 8 bits"},
    "metric_options": {"needs": {"metric": "given"}, "type": "object", "description": "options of the metric"},
    "patience": {"needs": {"validation": "given"}, "type": "integer", "minimum": 0, "default": 0, "description": "early stopping: ends after this many epochs without a better validation; 0: never"},
    "min_delta": {"needs": {"validation": "given"}, "type": "number", "minimum": 0, "default": 0, "description": "smallest improvement of the validation that counts"},
    "restore_best": {"type": "boolean", "default": true, "description": "with patience: the weights of the best epoch, not of the last"},
    "callbacks": {"type": "component", "role": "tenon.callback/1", "description": "notified of each step and epoch, and may end the run; trainer.both for several"},
    "run": {"type": "path", "description": "a folder for history.jsonl and checkpoints"},
    "resume": {"needs": {"run": "given"}, "type": "boolean", "default": false, "description": "resumes the run in that folder"},
    "checkpoint_steps": {"type": "integer", "minimum": 0, "default": 0, "description": "a checkpoint every this many steps; 0: each epoch, and each minute"},
    "keep_steps": {"needs": {"run": "given"}, "type": ["array", "integer"], "items": {"type": "integer", "minimum": 0}, "description": "steps whose checkpoints stay in the folder of the run, as step_120.safetensors; 0: the start"},
    "keep_last": {"needs": {"run": "given"}, "type": "integer", "minimum": 0, "default": 0, "description": "checkpoints of this many epochs, the newest, stay in the folder of the run, as epoch_7.safetensors"},
    "shard_bytes": {"type": "integer", "minimum": 0, "default": 0, "description": "a checkpoint that is larger lies in several files; 0: in one"},
    "rewind": {"type": "path", "description": "a checkpoint that another run kept: this one begins with all that it holds, weights too, but for the masks of this model"}}})")
