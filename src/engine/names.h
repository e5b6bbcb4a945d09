// SPDX-License-Identifier: Apache-2.0
// Names of one traced process: what the words in its cells and events mean.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "answer/names.h"
#include "engine/owners.h"
#include "engine/process_stacks.h"
#include "plan/sites.h"
#include "session/recording.h"
#include "target/catalog.h"
#include "target/perf_map.h"

namespace clew::engine {

class ProcessNames final : public answer::Names {
 public:
  // Borrows both. `names` is indexed by the site constants of names.
  ProcessNames(pid_t pid, target::Catalog& catalog, const std::vector<plan::SiteNames>& names);

  // Where stacks get their names. Borrowed.
  void set_stacks(ProcessStacks& stacks) { stacks_ = &stacks; }
  // The pid of followed child `process` (1, 2, …).
  void add_child(uint64_t process, pid_t pid);
  // Reads the names of all threads that live now, so that they are known when they are gone.
  void refresh_threads();

  // All names that are known by now.
  void describe(session::RecordedProcess& into);

  std::string function(uint64_t index) override;
  std::string module(uint64_t index) override;
  std::string probe(uint64_t index) override;
  int64_t pid(uint64_t process) override;
  std::string process_name(uint64_t process) override;
  std::string thread_name(uint64_t process, uint64_t tid) override;
  std::string host() override;
  std::string node_name(uint64_t process) override;
  const answer::Owner& owner(query::Field field, uint64_t process) override;
  std::string symbol(uint64_t address) override;
  std::string code(uint64_t address) override;
  aggregate::Stack stack(std::span<const uint64_t> words) override;

 private:
  std::string name_of(uint64_t address, uint64_t back);

  pid_t pid_;
  target::Catalog& catalog_;
  target::PerfMap made_code_;
  const std::vector<plan::SiteNames>& names_;
  std::map<uint64_t, pid_t> children_;
  std::map<uint64_t, std::string> process_names_;
  std::map<uint64_t, std::string> node_names_;
  Owners known_owners_;
  std::map<uint64_t, answer::Owner> owners_;
  std::unordered_map<uint64_t, std::string> thread_names_;
  std::unordered_map<uint64_t, std::string> symbols_;
  std::string host_;
  ProcessStacks* stacks_ = nullptr;
};

}  // namespace clew::engine
