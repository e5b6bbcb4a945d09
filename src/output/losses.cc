// SPDX-License-Identifier: Apache-2.0
// Losses as lines of text.
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "output/format.h"

namespace clew::output {
namespace {

constexpr size_t kNamesShownMax = 3;

void append_causes(std::string& text, std::string_view title, const collect::Causes& causes) {
  for (const auto& [cause, count] : causes) {
    text +=
        fmt::format("{}: {} {}\n", title, count, printable(collect::describe_cause(cause, count)));
  }
}

struct Reason {
  std::string text;
  std::vector<std::string> functions;
};

// Most sites first, then by text.
std::vector<Reason> reasons_of(const collect::Losses& losses) {
  std::map<std::string, std::vector<std::string>> by_text;
  for (const collect::RefusedSite& site : losses.refused) {
    by_text[fmt::format("{}: {}", site.kind, site.reason)].push_back(site.function);
  }
  std::vector<Reason> reasons;
  reasons.reserve(by_text.size());
  for (auto& [text, functions] : by_text)
    reasons.push_back({text, std::move(functions)});
  std::stable_sort(reasons.begin(), reasons.end(), [](const Reason& a, const Reason& b) {
    return a.functions.size() > b.functions.size();
  });
  return reasons;
}

std::string names_of(const std::vector<std::string>& functions) {
  std::string names;
  const size_t shown = std::min(functions.size(), kNamesShownMax);
  for (size_t i = 0; i < shown; ++i) {
    if (i > 0) names += ", ";
    names += printable(functions[i]);
  }
  const size_t rest = functions.size() - shown;
  return rest == 0 ? names : fmt::format("{} and {} more", names, rest);
}

void append_refused(std::string& text, const collect::Losses& losses) {
  for (const Reason& reason : reasons_of(losses)) {
    text += fmt::format("refused: {} {} {} ({})\n", reason.functions.size(),
                        reason.functions.size() == 1 ? "site," : "sites,", printable(reason.text),
                        names_of(reason.functions));
  }
}

void append_left_out(std::string& text, const collect::Losses& losses) {
  if (losses.left_out.empty()) return;
  text += fmt::format("left out: {} of {} processes\n", losses.left_out.size(),
                      losses.processes + losses.left_out.size());
  for (const collect::LeftOut& process : losses.left_out)
    text += fmt::format("left out: process {}: {}\n", process.process, printable(process.reason));
}

void append_open(std::string& text, const collect::OpenCalls& open) {
  if (open.count == 0) return;
  const aggregate::Column age{.name = "age",
                              .type = aggregate::ColumnType::Integer,
                              .unit = aggregate::Unit::Nanoseconds,
                              .approximate = false};
  text += fmt::format("open calls: {} had not returned at the end", open.count);
  if (open.oldest_ns != 0)
    text += ", the oldest for " + format_value(static_cast<int64_t>(open.oldest_ns), age);
  text += '\n';
}

void append_jumps(std::string& text, const std::vector<std::string>& functions) {
  if (functions.empty()) return;
  text += fmt::format("may leave by a jump to another function, timed up to there: {} {} ({})\n",
                      functions.size(), functions.size() == 1 ? "function" : "functions",
                      names_of(functions));
}

// "by cause: 12 requests; known by recipe 24"
void append_causal(std::string& text, const collect::Causes& causal) {
  if (causal.empty()) return;
  const auto requests = causal.find(collect::kCausalRequests);
  const uint64_t count = requests == causal.end() ? 0 : requests->second;
  text += fmt::format("by cause: {} {}", count, count == 1 ? "request" : "requests");
  const auto unjoined = causal.find(collect::kCausalUnjoined);
  if (unjoined != causal.end()) {
    text += fmt::format("; {} {} with nothing there to join", unjoined->second,
                        unjoined->second == 1 ? "event" : "events");
  }
  const auto again = causal.find(collect::kCausalAgain);
  if (again != causal.end()) {
    text += fmt::format("; {} {} that others had received before", again->second,
                        again->second == 1 ? "message" : "messages");
  }
  std::string_view between = "; edges: ";
  for (const auto& [how, edges] : causal) {
    if (how == collect::kCausalRequests || how == collect::kCausalUnjoined ||
        how == collect::kCausalAgain)
      continue;
    text += fmt::format("{}{} {}", between, edges, how);
    between = ", ";
  }
  text += "\n";
}

}  // namespace

std::string format_losses(const collect::Losses& losses) {
  std::string text;
  append_causes(text, "missed", losses.missed);
  append_causes(text, "dropped", losses.dropped);
  for (const std::string& source : losses.lost)
    text += "lost: " + printable(source) + "\n";
  for (const collect::DisarmedProbe& disarmed : losses.disarmed)
    text += "disarmed: " + printable(collect::describe(disarmed)) + "\n";
  append_refused(text, losses);
  if (!losses.uprobes.empty()) text += printable(collect::describe_uprobes(losses.uprobes)) + "\n";
  append_left_out(text, losses);
  append_open(text, losses.open);
  append_jumps(text, losses.left_by_jump);
  append_causal(text, losses.causal);
  if (losses.window_ms != 0) {
    const std::string all = losses.processes < 2
                                ? ""
                                : fmt::format(", the same for all {} processes", losses.processes);
    text += fmt::format("window: {:.3f} s{}\n", losses.window_ms / 1000, all);
  }
  if (const std::string cost = collect::describe(losses.cost); !cost.empty())
    text += "cost: " + cost + "\n";
  return text;
}

}  // namespace clew::output
