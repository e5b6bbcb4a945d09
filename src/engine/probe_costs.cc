// SPDX-License-Identifier: Apache-2.0
#include "engine/probe_costs.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/clock_ns.h"
#include "base/log.h"
#include "engine/overhead.h"

namespace clew::engine {
namespace {

// Some twenty seconds of one busy CPU: what was longer ago says less of now.
constexpr uint64_t kRecentMax = 4096;
constexpr unsigned kFailuresMax = 5;
constexpr size_t kHottestShown = 8;

double ms_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

}  // namespace

void ProbeCosts::add(const std::optional<Function>& function, uint64_t body,
                     std::span<const inline_::CodeSpan> code) {
  std::optional<size_t> index;
  if (function) {
    index =
        indices_.try_emplace({function->module, function->name}, functions_.size()).first->second;
    if (*index == functions_.size()) functions_.push_back({.name = function->name, .bodies = {}});
    functions_[*index].bodies.push_back(body);
    functions_[*index].is_out = false;  // Of a library that was opened again.
  }
  for (const inline_::CodeSpan& span : code)
    code_.insert_or_assign(span.begin, Code{.end = span.end, .function = index});
}

ProbeCosts::Place ProbeCosts::find(uint64_t address) const {
  const auto next = code_.upper_bound(address);
  if (next == code_.begin()) return code_.end();
  const auto found = std::prev(next);
  return address < found->second.end ? found : code_.end();
}

ProbeCosts::Place ProbeCosts::find_probe(const kernel::CpuSample& sample) const {
  if (!sample.is_user) return code_.end();
  const Place found = find(sample.address);
  if (found != code_.end()) return found;
  const bool is_ours =
      std::any_of(areas_.begin(), areas_.end(), [&sample](const inline_::CodeSpan& area) {
        return sample.address >= area.begin && sample.address < area.end;
      });
  if (!is_ours) return code_.end();
  for (const uint64_t word : sample.stack) {
    const Place caller = find(word);
    if (caller != code_.end()) return caller;
  }
  return code_.end();
}

void ProbeCosts::take(const kernel::CpuSample& sample) {
  const Place probe = find_probe(sample);
  const bool is_probe = probe != code_.end();
  const bool is_recent = sample.time_ns >= judged_since_ns_;
  all_ += {.probes = is_probe ? 1U : 0U, .all = 1};
  if (is_recent) recent_ += {.probes = is_probe ? 1U : 0U, .all = 1};
  if (!is_probe || !probe->second.function) return;
  OfFunction& function = functions_[*probe->second.function];
  ++function.samples;
  if (is_recent) ++function.recent;
}

// What was seen counts half from now on, so that what comes counts.
void ProbeCosts::judge_anew() {
  recent_ = {.probes = recent_.probes / 2, .all = recent_.all / 2};
  for (OfFunction& function : functions_)
    function.recent /= 2;
}

std::vector<collect::DisarmedProbe> ProbeCosts::keep_below(const OverheadBound& bound,
                                                           inline_::Attachment& attachment,
                                                           std::vector<std::string>& problems) {
  if (is_given_up_) return {};
  if (!exceeds(recent_, bound.share)) {
    if (recent_.all >= kRecentMax) judge_anew();
    return {};
  }
  std::vector<uint64_t> recent;
  recent.reserve(functions_.size());
  for (const OfFunction& function : functions_)
    recent.push_back(function.is_out ? 0 : function.recent);
  const std::vector<size_t> leaving = to_take_out(recent, recent_, bound.share);
  if (!leaving.empty()) return take_out(leaving, bound, attachment, problems);
  is_given_up_ = true;
  problems.push_back(fmt::format(
      "probes take {:.1f} % of the CPU time of process {}, where {:g} % is allowed, and "
      "nothing is left there that could be taken out",
      100 * recent_.share(), attachment.pid(), 100 * bound.share));
  return {};
}

std::vector<collect::DisarmedProbe> ProbeCosts::take_out(const std::vector<size_t>& leaving,
                                                         const OverheadBound& bound,
                                                         inline_::Attachment& attachment,
                                                         std::vector<std::string>& problems) {
  std::vector<uint64_t> bodies;
  for (const size_t index : leaving) {
    const std::vector<uint64_t>& some = functions_[index].bodies;
    bodies.insert(bodies.end(), some.begin(), some.end());
  }
  const auto hold = attachment.try_hold();
  if (hold && !*hold) return {};
  const auto done = attachment.disarm(bodies);
  if (!done && ++failures_ < kFailuresMax) return {};
  if (!done) {
    is_given_up_ = true;
    problems.push_back(fmt::format(
        "{} in process {} takes more than {:g} % of its CPU time, and could not be taken out: {}",
        functions_[leaving[0]].name, attachment.pid(), 100 * bound.share, done.error().message));
    return {};
  }
  // Nobody comes there any more, though a thread may still be inside.
  if (done->residue)
    log_step(attachment.pid(), "code stays until the end: {}", done->residue_reason);
  failures_ = 0;
  std::vector<collect::DisarmedProbe> found;
  for (const size_t index : leaving) {
    OfFunction& function = functions_[index];
    const collect::ShareSamples own{.probes = function.recent, .all = recent_.all};
    found.push_back({.probe = function.name,
                     .process = attachment.pid(),
                     .bound = bound.share,
                     .share = own.share(),
                     .after_ms = ms_since(bound.begin)});
    log_step(attachment.pid(), "{} is taken out: {} of {} samples", function.name, own.probes,
             own.all);
    function.is_out = true;
    function.bodies.clear();
  }
  // What is left is judged by what it does from now on.
  judged_since_ns_ = clock_ns(CLOCK_MONOTONIC);
  recent_ = {};
  for (OfFunction& function : functions_)
    function.recent = 0;
  taken_out_.insert(taken_out_.end(), found.begin(), found.end());
  return found;
}

collect::ProcessCost ProbeCosts::cost(pid_t pid) const {
  collect::ProcessCost cost{.process = pid, .samples = all_, .functions = {}};
  for (const OfFunction& function : functions_) {
    if (function.samples != 0)
      cost.functions.push_back({.function = function.name, .samples = function.samples});
  }
  std::stable_sort(cost.functions.begin(), cost.functions.end(),
                   [](const collect::FunctionCost& one, const collect::FunctionCost& other) {
                     return one.samples > other.samples;
                   });
  if (cost.functions.size() > kHottestShown) cost.functions.resize(kHottestShown);
  return cost;
}

void ProbeCosts::log_cost(pid_t pid) const {
  const collect::ProcessCost whole = cost(pid);
  log_step(pid, "probes were seen in {} of {} samples of its CPU time ({:.2f} %)",
           whole.samples.probes, whole.samples.all, 100 * whole.samples.share());
  for (const collect::FunctionCost& function : whole.functions)
    log_step(pid, "in those of {}: {}", function.function, function.samples);
}

}  // namespace clew::engine
