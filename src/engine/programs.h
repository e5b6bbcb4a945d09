// SPDX-License-Identifier: Apache-2.0
// How the programs of processes hand requests on, as vocabularies say.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "causal/sockets.h"
#include "query/socket_carriers.h"

namespace clew::engine {

class Programs {
 public:
  Programs() = default;
  // Of no worse a class than `least`; of the worst, programs of which nothing is said are known by
  // rules that fit most.
  Programs(std::span<const query::Program> programs, causal::EdgeClass least);

  // Null: nothing is taken for known of the process. What was found once stays, also when the
  // process has ended.
  const causal::Profile* profile_of(int64_t pid);

 private:
  std::vector<causal::Profile> profiles_;
  std::vector<std::string> names_;                  // Of the profiles; the rest is of no name.
  std::map<int64_t, std::optional<size_t>> known_;  // By process.
};

}  // namespace clew::engine
