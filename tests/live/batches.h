// SPDX-License-Identifier: Apache-2.0
// Processes of a cluster on this machine that come and go, and what is asked of them: how many
// calls of each batch of the victim "batches" each node has counted. A batch has one number and
// always as many calls, so of each it is known whether it was counted once.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <sys/types.h>

#include "live/child.h"
#include "live/victim.h"

namespace clew::live {

inline constexpr uint64_t kCallsOfBatch = 40;
inline constexpr int64_t kBatchWidthNs = 250'000'000;  // Of intervals.

// Of nodes, and of the hosts that they are on.
inline constexpr std::array kNodes = {"a", "b", "c"};

int64_t wall_clock_ns();
void pass_ms(int duration);
std::string text_of_file(const std::string& name);

// The victim is a program of that name.
std::string question_of_batches(const std::string& victim);

// The command as on a machine of that name. Where that is not possible it ends.
std::vector<std::string> on_machine(const std::string& name, std::vector<std::string> command);
// The process by which a node traces its only query; -1: there is none at present.
pid_t session_of_node(pid_t node);

// A process of the cluster. What it says is in files, as nobody reads it meanwhile.
class Process {
 public:
  // `name`: of the files.
  Process(std::vector<std::string> command, std::string name)
      : command_(std::move(command)), name_(std::move(name)) {}

  void start();
  void kill() { child_.reset(); }  // With -9.
  [[nodiscard]] bool runs() const { return child_ != nullptr && child_->running(); }
  [[nodiscard]] Child& child() { return *child_; }
  [[nodiscard]] std::string said() const { return name_ + ".out"; }
  [[nodiscard]] std::string errors() const { return name_ + ".err"; }
  // Until it says so.
  [[nodiscard]] bool has_said(std::string_view text) const;

 private:
  std::vector<std::string> command_;
  std::string name_;
  std::unique_ptr<Child> child_;
};

struct BatchGap {
  int64_t begin_ns;
  int64_t end_ns;
};

struct BatchRow {
  int64_t begin_ns;  // Of its interval,
  int64_t interval;  // which has this number.
  std::string host;
  uint64_t batch;
  uint64_t calls;
};

// As they were given; and the words behind them, once they are there.
std::vector<BatchRow> batch_rows_of(const std::string& text,
                                    std::optional<nlohmann::json>* summary = nullptr);

// Whether each of the nodes has told of a whole batch in an interval that began later.
bool all_count_since(const std::string& text, int64_t begin_ns);

// What was answered: how many calls of each batch, and which intervals of a node are named as lost.
// Of an interval that was given again the last rows hold.
struct BatchAnswer {
  explicit BatchAnswer(const std::string& text);

  // Within an interval that is named, or one beside it: what is counted near the end of one may be
  // in the next one.
  [[nodiscard]] bool is_lost(const Numbers& truth, const std::string& host, uint64_t batch) const;
  // Behind the batch with which it began: it may have heard late of the question.
  [[nodiscard]] uint64_t first_batch_of(const std::string& host, uint64_t none) const;

  std::map<std::pair<std::string, uint64_t>, uint64_t> calls{};  // By host and batch.
  std::map<std::string, std::vector<BatchGap>> gaps{};           // By host.
  bool has_end = false;
  std::vector<std::string> lost{};
};

struct BatchSums {
  uint64_t whole = 0;
  uint64_t named = 0;
};

// Each node has some whole batches, and all others of those that were begun before `end_ns` are
// named; nobody else has any. `truth`: when each batch began, as the victim says at its end.
// `said`: by all, for who reads a failure.
BatchSums check_batches(const BatchAnswer& answer, const Numbers& truth, uint64_t end_ns,
                        const std::string& said);

}  // namespace clew::live
