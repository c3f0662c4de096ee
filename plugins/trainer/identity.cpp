// SPDX-License-Identifier: Apache-2.0
#include "identity.hpp"

#include <algorithm>

#include "tenon/fnv.hpp"
#include "tenon/sdk/run.hpp"

namespace tenon::trainer {
namespace {

using nlohmann::json;

constexpr size_t kMostNamed = 4;  // differences that a message shows

class Hash {  // of texts, each of which ends with a byte that UTF-8 has not
 public:
  void add(std::string_view text) { hash_ = fnv1a("\xff", fnv1a(text, hash_)); }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = kFnvOffset;
};

// Of a line of the graph's text, without names: "Softmax {axis = 1}", "constant f32[] = [0.9]".
std::string content_of(std::string_view line) {
  constexpr std::string_view kConstant = "constant ";
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (line.starts_with(kConstant)) {
    size_t type = line.find(": ");
    return type == line.npos ? "" : cat(kConstant, line.substr(type + 2));
  }
  size_t equals = line.find(" = ");
  if (!line.starts_with('%') || equals == line.npos) return "";
  std::string_view call = line.substr(equals + 3);
  std::string out(call.substr(0, call.find('(')));
  size_t begin = call.find(") {"), end = call.rfind('}');
  if (begin != call.npos && end != call.npos && begin < end)
    out += call.substr(begin + 1, end - begin);
  return out;
}

// What `of` has more of than `than`, as "constant f32[] = [0.9], 2 Mul".
std::string surplus(const StepContents& of, const StepContents& than) {
  std::string out;
  size_t n_named = 0;
  for (const auto& [key, count] : of.counts) {
    auto found = than.counts.find(key);
    uint64_t there = found == than.counts.end() ? 0 : found->second;
    if (count <= there) continue;
    if (n_named++ == kMostNamed) return out + ", ...";
    out += cat(out.empty() ? "" : ", ", there ? cat(count, " ") : std::string(), key);
  }
  return out.empty() ? "none of these" : out;
}

// One list of the members for both directions.
template <class Self, class Visit>
void members(Self& identity, Visit&& visit) {
  visit("model", identity.model);
  visit("choices", identity.choices);
  visit("step_hash", identity.step.hash);
  visit("step", identity.step.counts);
  visit("planned_steps", identity.rates.total_steps);
  visit("rates", identity.rates.at);
}

}  // namespace

json Identity::to_json() const {
  json out;
  members(*this, [&](const char* name, const auto& member) { out[name] = member; });
  return out;
}

Result<Identity> Identity::from(const json& saved) {
  Identity out;
  try {
    members(out, [&](const char* name, auto& member) { saved.at(name).get_to(member); });
  } catch (const json::exception& wrong) {
    return Status(TN_DATA_LOSS, cat("identity of the run: ", wrong.what()));
  }
  return out;
}

uint64_t structure_hash(Graph graph) {
  Hash hash;
  for (Node node : graph.nodes()) {
    hash.add(node.domain());
    hash.add(node.type());
    for (Value input : node.inputs())
      hash.add(input ? input.name() : "");
  }
  for (Value constant : graph.constants()) {
    Type type = constant.type();
    hash.add(constant.name());
    hash.add(dtype_name(type.dtype));
    for (int64_t dim : type.dims)
      hash.add(std::to_string(dim));
  }
  return hash.value();
}

Result<StepContents> StepContents::of(Graph step) {
  StepContents out;
  StringSink sink;
  TN_CHECK(Status(services.graph->print(step.raw, 0, sink.get())));
  Hash hash;
  hash.add(sink.text);
  std::string_view text = sink.text;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    if (std::string content = content_of(text.substr(0, end)); !content.empty())
      ++out.counts[content];
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  out.hash = hash.value();
  return out;
}

Result<Rates> Rates::of(const RateAt& rate, uint64_t total_steps) {
  Rates out{total_steps, {}};
  uint64_t last = total_steps - 1;
  for (uint64_t step :
       {uint64_t{0}, std::min<uint64_t>(1, last), last / 4, last / 2, last - last / 4, last}) {
    TN_TRY(value, rate(step, total_steps));
    out.at[step] = value;
  }
  return out;
}

Status same_choices(const Identity& began, const Identity& now) {
  if (began.model != now.model)
    return invalid("the checkpoint is of another model; give its own, or another folder as run");
  Identity then = began;
  then.choices[kBatch] = now.choices[kBatch];
  return same_options(then, now);
}

Status same_options(const Identity& began, const Identity& now) {
  for (const auto& [key, value] : now.choices.items()) {
    json was = began.choices.value(key, json());
    if (was != value)
      return invalid(
          cat("option ", key, ": the run began with ", was.dump(), ", got ", value.dump()));
  }
  return {};
}

Status same_step(const Identity& began, const Identity& now) {
  const StepContents &was = began.step, &is = now.step;
  if (was.hash == is.hash) return {};
  std::string who = cat("options of ", now.choices["loss"].get<std::string>(), " or ",
                        now.choices["optimizer"].get<std::string>());
  std::string difference = was.counts == is.counts ? "the same operators on other parameters"
                                                   : cat("a step that has ", surplus(was, is),
                                                         ", got ", surplus(is, was));
  std::string writer =
      began.writer == now.writer ? "another build of Tenon" : "Tenon " + began.writer;
  return invalid(cat(who, ": the run began with ", difference, "; where these are as they were, ",
                     writer, " wrote the checkpoint: go on with that, or give another folder"));
}

Status same_rates(const Identity& began, const RateAt& now) {
  for (const auto& [step, was] : began.rates.at) {
    TN_TRY(rate, now(step, began.rates.total_steps));
    if (rate != was)
      return invalid(cat("option rate: step ", step + 1, " of ", began.rates.total_steps,
                         ": the run began with ", json(was).dump(), ", got ", json(rate).dump()));
  }
  return {};
}

}  // namespace tenon::trainer
