// SPDX-License-Identifier: Apache-2.0
#include "live/batches.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "base/clock_ns.h"

namespace clew::live {

using nlohmann::json;

int64_t wall_clock_ns() {
  return clock_ns(CLOCK_REALTIME);
}

void pass_ms(int duration) {
  (void)poll(nullptr, 0, duration);
}

std::string text_of_file(const std::string& name) {
  std::ifstream file(name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string question_of_batches(const std::string& victim) {
  return "from e in cluster.Function(\"" + victim +
         "!batch_call\") group by e.host, e.arg0 select new { host = e.host, batch = e.arg0, "
         "calls = count() } every 250ms";
}

// Nobody goes on under another name: its counts would be nobody's.
std::vector<std::string> on_machine(const std::string& name, std::vector<std::string> command) {
  command.insert(command.begin(),
                 {"unshare", "--uts", "sh", "-c", "hostname " + name + R"( && exec "$@")", "sh"});
  return command;
}

// Before it is a node it has other children, which give the machine its name.
pid_t session_of_node(pid_t node) {
  const pid_t child = only_child_of(node);
  const std::string command = text_of_file(fmt::format("/proc/{}/cmdline", child));
  return command.find("--serve-session") == std::string::npos ? -1 : child;
}

void Process::start() {
  std::vector<std::string> words = {
      "sh", "-c", R"(exec "$@" >>")" + said() + R"(" 2>>")" + errors() + "\"", "sh"};
  words.insert(words.end(), command_.begin(), command_.end());
  child_ = std::make_unique<Child>(ChildOptions{.arguments = std::move(words)});
}

bool Process::has_said(std::string_view text) const {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (text_of_file(errors()).find(text) == std::string::npos) {
    if (std::chrono::steady_clock::now() > end) return false;
    pass_ms(5);
  }
  return true;
}

std::vector<BatchRow> batch_rows_of(const std::string& text, std::optional<json>* summary) {
  std::vector<BatchRow> rows;
  size_t at = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', at)) {
    const json line = json::parse(text.substr(at, end - at));
    at = end + 1;
    if (line.contains("summary")) {
      if (summary != nullptr) *summary = line.at("summary");
      continue;
    }
    rows.push_back({.begin_ns = line.at("interval_begin").get<int64_t>(),
                    .interval = line.at("interval").get<int64_t>(),
                    .host = line.at("host").get<std::string>(),
                    .batch = line.at("batch").get<uint64_t>(),
                    .calls = line.at("calls").get<uint64_t>()});
  }
  return rows;
}

bool all_count_since(const std::string& text, int64_t begin_ns) {
  std::set<std::string> counting;
  for (const BatchRow& row : batch_rows_of(text)) {
    if (row.begin_ns > begin_ns && row.calls == kCallsOfBatch) counting.insert(row.host);
  }
  return std::all_of(kNodes.begin(), kNodes.end(),
                     [&counting](const char* node) { return counting.contains(node); });
}

BatchAnswer::BatchAnswer(const std::string& text) {
  std::map<std::tuple<int64_t, std::string, uint64_t>, uint64_t> rows;
  int64_t first_ns = 0;
  std::optional<json> summary;
  for (const BatchRow& row : batch_rows_of(text, &summary)) {
    first_ns = row.begin_ns - (row.interval - 1) * kBatchWidthNs;
    rows[{row.begin_ns, row.host, row.batch}] = row.calls;
  }
  has_end = summary.has_value();
  if (summary) lost = summary->at("lost").get<std::vector<std::string>>();
  for (const auto& [where, count] : rows)
    calls[{std::get<1>(where), std::get<2>(where)}] += count;
  static const std::regex kNamed(
      "(?:node (\\w+)|some node) (?:may lack|lacks) intervals? (\\d+)(?: to (\\d+))?");
  for (const std::string& each : lost) {
    std::smatch found;
    if (!std::regex_search(each, found, kNamed)) continue;
    const int64_t first = std::stoll(found[2]);
    const int64_t last = found[3].matched ? std::stoll(found[3]) : first;
    const BatchGap gap = {.begin_ns = first_ns + (first - 1) * kBatchWidthNs,
                          .end_ns = first_ns + last * kBatchWidthNs};
    for (const std::string host : kNodes) {
      if (!found[1].matched || found[1] == host) gaps[host].push_back(gap);
    }
  }
}

bool BatchAnswer::is_lost(const Numbers& truth, const std::string& host, uint64_t batch) const {
  const auto begin = static_cast<int64_t>(truth.at(std::to_string(batch)));
  const auto next = truth.find(std::to_string(batch + 1));
  const int64_t end = next == truth.end() ? begin : static_cast<int64_t>(next->second);
  const auto named = gaps.find(host);
  if (named == gaps.end()) return false;
  return std::any_of(named->second.begin(), named->second.end(), [&](const BatchGap& gap) {
    return end >= gap.begin_ns - kBatchWidthNs && begin <= gap.end_ns + kBatchWidthNs;
  });
}

uint64_t BatchAnswer::first_batch_of(const std::string& host, uint64_t none) const {
  const auto found = calls.lower_bound({host, 0});
  return found == calls.end() || found->first.first != host ? none : found->first.second + 1;
}

BatchSums check_batches(const BatchAnswer& answer, const Numbers& truth, uint64_t end_ns,
                        const std::string& said) {
  EXPECT_TRUE(answer.has_end) << said;
  BatchSums sums;
  uint64_t last = truth.size() - 1;  // In which the question ended.
  while (last > 0 && truth.at(std::to_string(last)) > end_ns)
    --last;
  for (const auto& [where, calls] : answer.calls) {
    const bool is_node = std::find(kNodes.begin(), kNodes.end(), where.first) != kNodes.end();
    if (is_node) continue;
    ADD_FAILURE() << calls << " of batch " << where.second << " are of '" << where.first << "'\n"
                  << said;
    break;
  }
  for (const std::string host : kNodes) {
    std::vector<std::string> wrong;
    const uint64_t whole_before = sums.whole;
    uint64_t first_wrong = 0;
    for (uint64_t batch = answer.first_batch_of(host, truth.size()); batch < last; ++batch) {
      const auto found = answer.calls.find({host, batch});
      const uint64_t calls = found == answer.calls.end() ? 0 : found->second;
      const bool is_named = calls < kCallsOfBatch && answer.is_lost(truth, host, batch);
      sums.whole += calls == kCallsOfBatch ? 1 : 0;
      sums.named += is_named ? 1 : 0;
      if (calls == kCallsOfBatch || is_named) continue;
      if (wrong.empty()) first_wrong = batch;
      wrong.push_back(fmt::format("{} of {}", calls, batch));
    }
    EXPECT_GT(sums.whole, whole_before) << "node " << host << "\n" << said;
    if (wrong.empty()) continue;
    ADD_FAILURE() << "node " << host << ": " << wrong.size() << " of " << last
                  << " batches have wrong counts: " << wrong.front() << " to " << wrong.back()
                  << ", at " << truth.at(std::to_string(first_wrong)) << "\n"
                  << fmt::format("{}", fmt::join(answer.lost, "\n")) << "\n"
                  << said;
  }
  return sums;
}

}  // namespace clew::live
