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
  void forks(int64_t parent, int64_t child) override;
  void executes(int64_t pid) override { known_.erase(pid); }
  void ends(int64_t pid) override { known_.erase(pid); }
  std::string name_of(int64_t pid) override;

 private:
  using Time = std::chrono::steady_clock;
  struct Known {
    std::string name;
    std::optional<size_t> profile;
    Time::time_point looked;
  };
  const Known* look(int64_t pid);

  std::vector<causal::Profile> profiles_;
  std::vector<std::string> names_;  // Of the profiles; the rest is of no name.
  std::map<int64_t, Known> known_;
};

}  // namespace clew::engine
