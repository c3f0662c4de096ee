// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loop over epochs and batches.

#include <chrono>

#include "ahead.hpp"
#include "curriculum.hpp"
#include "gradient_shares.hpp"
#include "run_folder.hpp"
#include "settings.hpp"
#include "stepper.hpp"

namespace tenon::trainer {

class Loop {
 public:
  Loop(tn_ctx* ctx, const Settings& settings, const tn_graph* model)
      : ctx_(ctx),
        given_(settings),
        model_(model),
        folder_(ctx, settings.run, settings.shard_bytes) {}
  Loop(const Loop&) = delete;

  Status run(const Cancel& cancel);
  // Puts into this copy of the model what was trained.
  Status put_trained(tn_graph* model, const Cancel& cancel) const;
  nlohmann::json report() const;

 private:
  using Clock = std::chrono::steady_clock;

  Status set_up(const Cancel& cancel);
  Status set_up_parameters();
  Status leave_idle_parameters();
  Status set_up_data();
  Status set_up_batch();
  Status set_up_curriculum();
  // Finds the largest batch that fits into the memory that was given.
  Status fit_batch(const Cancel& cancel);
  // Passes on forward and backward, for steps of this batch.
  Status set_up_joint(uint64_t batch, const Cancel& cancel);
  // by_backend: it computes in the precision that was asked for by itself.
  Status set_up_recipe(std::string_view backend, bool by_backend);
  Status resume(const Cancel& cancel);
  Result<RunFolder::Saved> earlier_run() const;
  Status set_states(const Weights& states);
  Status run_epoch(const Cancel& cancel, Progress& progress);
  void prepare_ahead();
  Result<size_t> draw_layers(const StepInputs& inputs) const;
  Status step(const Cancel& cancel);
  Status end_epoch(const Cancel& cancel);
  Status judge(const Cancel& cancel, nlohmann::json& record);
  void measure(const nlohmann::json& record);
  std::string judged_by() const;
  Status refuse_broken(const Outcome& outcome, uint64_t number) const;
  Status refuse_broken(const Weights& states) const;
  Status check_weights() const;
  Status notify_step(const Outcome& outcome);
  Status notify_epoch(const Cancel& cancel, nlohmann::json& record);
  Status save();
  Status keep_step();
  Status keep_epoch();
  Result<std::optional<double>> loss_scale() const;
  Status warn_of_scale() const;
  Result<RunFolder::Saved> as_it_is() const;
  std::string last_good_checkpoint() const;
  Status stopped(Status why);
  double seconds_since(Clock::time_point then) const {
    return std::chrono::duration<double>(Clock::now() - then).count();
  }
  uint64_t batches_of(uint64_t samples, uint64_t batch) const;
  uint64_t batches_per_epoch() const { return batches_of(samples_.size(), batch_); }
  uint64_t updates_per_epoch() const {
    return (batches_per_epoch() + given_.accumulate - 1) / given_.accumulate;
  }
  // Whether the next batch is the last one of its window; that of an epoch may be smaller.
  bool ends_window() const;
  uint64_t windows_done() const;
  bool at_end() const;
  // Of the model's constants, trained; nothing else that the states hold is copied.
  Result<Weights> weights() const;
  // The same as they were put into a copy of the model, with statistics that were estimated again.
  Result<Weights> weights_of(Graph model) const;
  // A copy of this model with the weights of now.
  Result<OwnedGraph> trained(const tn_graph* model, const Cancel& cancel) const;
  Status average_epoch();
  // Where a batch, counted on over the epochs, lies in the order of its epoch.
  struct Range {
    uint64_t begin, count;
  };
  Range range_of(uint64_t batch) const;
  // The run was so far one of batches of another size.
  void regroup(uint64_t before, Position* at) const;
  // Of a batch, counted on over the epochs.
  uint64_t update_of(uint64_t batch) const {
    uint64_t each = batches_per_epoch();
    return batch / each * updates_per_epoch() + batch % each / given_.accumulate;
  }
  // Whoever prepares a batch decides its shape.
  StepSizes sizes_of(const std::vector<Tensor>& batch) const;
  uint64_t next_batch() const { return batches_per_epoch() * position_.epoch + position_.batch; }
  Result<std::vector<Tensor>> batch_of(std::span<const uint64_t> samples,
                                       uint64_t batch,
                                       uint64_t seed);
  void add_curriculum(nlohmann::json& record) const;
  std::vector<uint64_t> order_of(uint64_t epoch) const;
  Status check_identity(const std::optional<RunFolder::Saved>& saved, const Cancel& cancel);
  Result<StepContents> contents_of_step(uint64_t batch, const Cancel& cancel);
  Identity choices() const;
  // At the update `step` of so many, with batches of this size.
  Result<double> rate_at(uint64_t step, uint64_t total_steps, uint64_t batch) const;
  // Of the next step.
  Result<StepInputs> next_inputs() const;
  void log_epoch(const nlohmann::json& record) const;

  tn_ctx* ctx_;
  const Settings& given_;
  const tn_graph* model_;
  RunFolder folder_;
  OwnedGraph free_;  // the model for any batch, or for the one that it is fixed to
  bool fixed_ = false;
  uint64_t batch_ = 64;
  std::optional<Feed> feed_, held_out_;
  std::vector<uint64_t> samples_;
  ValidationPlan validation_;
  Recipe recipe_;
  std::optional<Stepper> stepper_;
  bool takes_decisions_ = false;  // the backend builds what an earlier plan has reported
  Curriculum curriculum_;
  uint64_t planned_bytes_ = 0;  // where option memory asks for them
  Identity identity_;           // where a run is kept
  Position position_;
  Regrouped regrouped_;  // position_'s, for the thread that prepares batches
  nlohmann::json history_ = nlohmann::json::array();  // one record for each epoch
  Weights best_;
  Weights average_;  // of the weights of epochs, n_averaged_ so far; empty without swa
  uint64_t n_averaged_ = 0;
  double rate_ = 0;
  uint64_t skipped_in_a_row_ = 0, saved_step_ = 0;
  bool is_saved_ = false, callback_failed_ = false, higher_is_better_ = false;
  Clock::time_point began_, epoch_began_, saved_at_;
  uint64_t epoch_samples_before_ = 0;
  std::optional<GradientShares> gradients_;  // of this epoch so far, in this process
  std::optional<Ahead> ahead_;               // last: its thread reads the members above
};

// For messages: four digits.
std::string short_number(double value);

// The model for batches of any size, where nothing in it fixes the size.
Result<OwnedGraph> with_free_batch(const tn_graph* model, uint64_t* fixed);

}  // namespace tenon::trainer
