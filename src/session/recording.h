// SPDX-License-Identifier: Apache-2.0
// What a file of events (collect/spill.h) says besides the events: which sources and expressions
// they are of, the clock, and the names that only the traced processes knew. It is the note of the
// file's first frame and, with all names, of its last.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

#include "answer/names.h"
#include "base/error.h"
#include "collect/losses.h"
#include "output/kept_stacks.h"
#include "plan/held.h"
#include "plan/lower.h"
#include "plan/sites.h"

namespace clew::session {

struct RecordedProcess {
  // By abi::SlotControl::process.
  struct Incarnation {
    pid_t pid = 0;
    std::string name{};
    std::string node_name{};  // Files of earlier versions have none.
    answer::Owner owner{};    // The same: it is unknown.
  };
  std::map<uint64_t, Incarnation> incarnations{};
  std::vector<plan::SiteNames> sites{};  // By index of function, module and probe.
  std::map<uint64_t, std::string> threads{};
  std::map<uint64_t, std::string> symbols{};
};

struct Recording {
  std::vector<std::string> sources{};  // By shape of the events, as query::print writes them.
  std::vector<plan::HeldCapture> held{};
  plan::Clock clock{};
  std::string host{};
  std::vector<RecordedProcess> processes{};  // By tracee.
  output::KeptStacks stacks{};               // Of all of them.
  collect::Losses losses{};                  // The counters of the recording session.
};

// As JSON; bytes that are no UTF-8 are replaced.
std::string note_of(const Recording& recording);
// InvalidQuery when it is not such a note.
Expected<Recording> recording_of(const std::string& note);

// Names of one recorded process. Borrows the recording.
class RecordedNames final : public answer::Names {
 public:
  RecordedNames(const Recording& recording, size_t process)
      : host_(recording.host), stacks_(recording.stacks), process_(recording.processes[process]) {}

  std::string function(uint64_t index) override;
  std::string module(uint64_t index) override;
  std::string probe(uint64_t index) override;
  int64_t pid(uint64_t process) override;
  std::string process_name(uint64_t process) override;
  std::string thread_name(uint64_t process, uint64_t tid) override;
  std::string host() override { return host_; }
  std::string node_name(uint64_t process) override;
  const answer::Owner& owner(query::Field field, uint64_t process) override;
  std::string symbol(uint64_t address) override;
  aggregate::Stack stack(std::span<const uint64_t> words) override { return stacks_.named(words); }

 private:
  const std::string& host_;
  const output::KeptStacks& stacks_;
  const RecordedProcess& process_;
  answer::Owner unknown_;
};

}  // namespace clew::session
