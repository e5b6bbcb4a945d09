// SPDX-License-Identifier: Apache-2.0
// How the programs of processes hand requests on, as vocabularies say.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "causal/sockets.h"
#include "query/socket_carriers.h"

namespace clew::engine {

class Programs final : public causal::Profiles {
 public:
  // Of no worse a class than `least`; of the worst, programs of which nothing is said are known by
  // rules that fit most.
  Programs(std::span<const query::Program> programs, causal::EdgeClass least);

  // What was found of a process stays for a while, and when it has ended.
  const causal::Profile* of(int64_t pid) override;
  [[nodiscard]] bool has_tables() const { return !tables_.empty(); }
  // Whether what it reads from pipes is of a request; and whether there is any such program.
  bool follows_pipes(int64_t pid);
  [[nodiscard]] bool may_follow_pipes() const;
  void forks(int64_t parent, int64_t child) override;
  // Looked at now, as it may have ended when it is asked for.
  void executes(int64_t pid) override {
    known_.erase(pid);
    (void)look(pid);
  }
  void ends(int64_t pid) override { known_.erase(pid); }
  std::string name_of(int64_t pid) override;
  bool is_guessed(int64_t pid) override;
  struct Said {
    std::string name;
    std::string text;                       // For people: what is taken for known.
    const query::Program* table = nullptr;  // Of the programs; null: none says it.
    bool is_believed = false;
  };
  [[nodiscard]] Said say(int64_t pid);
  // For people: what is taken for known, a line for each program of these processes.
  std::vector<std::string> describe(std::span<const int64_t> pids);

 private:
  using Time = std::chrono::steady_clock;
  struct Known {
    std::string name;             // Of the table, or of the program that has none.
    std::optional<size_t> table;  // In tables_.
    Time::time_point looked;
  };
  const Known* look(int64_t pid);
  [[nodiscard]] const causal::Profile* believed(const Known& known) const;
  [[nodiscard]] std::string describe(const Known& known) const;

  std::vector<query::Program> tables_;
  causal::EdgeClass least_ = causal::kLeastBelieved;
  causal::Profile rest_{};          // Of programs without a table.
  std::map<int64_t, Known> known_;  // By process.
};

}  // namespace clew::engine
