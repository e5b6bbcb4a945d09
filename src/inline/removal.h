// SPDX-License-Identifier: Apache-2.0
// Takes sessions out of a stopped process: text first, so that no thread enters their code any
// more, then the threads that are inside, then memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "inline/arena.h"
#include "inline/attachment.h"
#include "inline/changed_text.h"
#include "inline/program_counters.h"
#include "inline/site_journal.h"
#include "inline/stopped_target.h"
#include "inline/text_image.h"
#include "inline/vdso_load.h"

namespace clew::inline_ {

struct RemovalRequest {
  uint32_t leaving = 0;            // Bit s: the layers of session s go.
  std::set<uint32_t> layers = {};  // These of the journal go, too; their sessions stay.
  // All layers go and the arena is unmapped; the tracer's own mapping stays readable.
  bool everything = false;
};

// What takes time is done in the constructor and in forget(), while the target runs.
class Removal {
 public:
  // Borrows both.
  Removal(const Arena& arena, SiteJournal& journal, const RemovalRequest& request);

  // Before the stop: finds frames of coroutines that rest (see program_counters.h). Of others that
  // run() is used for, they are looked for then.
  void look_for_resting_frames(pid_t pid, uint64_t restorer);

  // Before the stop: reads what the process's text has to be in the end (see changed_text.h). Of
  // others that run() is used for, it is read then.
  void look_at_text(pid_t pid);

  // With all threads stopped. May be used for several processes: forked children have the same
  // sites.
  Expected<DetachReport> run(StoppedTarget& target);

  // With all threads stopped: text alone, while the code that jumps led to stays where it is, and
  // threads are in it.
  Expected<void> take_out_of_text(StoppedTarget& target);

  // After a run that left residue: is a thread inside that will leave? Nobody comes in any more.
  [[nodiscard]] bool waits_for_a_thread() const { return thread_is_inside_; }

  // After a run that left residue: it is nothing but copies of functions that have not returned
  // yet. They count nothing, and what they call are originals.
  [[nodiscard]] bool keeps_copies_alone() const { return keeps_copies_alone_; }

  // Whose text changes.
  [[nodiscard]] size_t sites() const { return changes_.size(); }

  // Takes what is gone out of the journal, when sessions stay. Not after a removal that left
  // residue.
  void forget();
  // After one that keeps copies alone, for a session that begins in the same arena.
  void forget_all();

 private:
  struct Change {
    uint32_t site = 0;
    std::vector<uint32_t> staying;  // Layers, lowest first.
    std::vector<uint32_t> leaving;
  };

  void list_changes();
  void list_code();
  void list_hops();
  void list_load();
  void sort_code();
  Expected<void> look_again(const StoppedTarget& target);
  [[nodiscard]] std::vector<TextImage::Range> text_ranges() const;
  [[nodiscard]] bool leaves(uint32_t session) const;
  [[nodiscard]] bool leaves_layer(uint32_t index) const;
  [[nodiscard]] bool takes_memory() const;
  Expected<void> restore_text(StoppedTarget& target);
  Expected<void> leave_both_ways(StoppedTarget& target, const TextImage& text);
  void restore_site(TextImage& text, const Change& change);
  Expected<void> compare_text(StoppedTarget& target);
  void leave_copies() const;
  [[nodiscard]] uint64_t code_kib() const;
  [[nodiscard]] bool has_query_copies() const;
  bool keeps_copies();
  [[nodiscard]] bool has_copies() const;
  [[nodiscard]] std::vector<AddressInterval> patches_of(bool leaving) const;
  [[nodiscard]] bool is_ours(const TextImage& text, const Change& change, uint32_t patch) const;
  Expected<std::optional<std::vector<size_t>>> move_out(StoppedTarget& target);
  [[nodiscard]] bool is_in_copy(uint64_t pc) const;
  // For the user.
  [[nodiscard]] std::string who_stays(StoppedTarget& target, const ProgramCounter& counter) const;
  Expected<bool> drain(StoppedTarget& target);
  [[nodiscard]] std::optional<uint64_t> way_out(StoppedTarget& target,
                                                const ProgramCounter& counter) const;
  static std::optional<uint64_t> way_of_flags(StoppedTarget& target, const ProgramCounter& counter,
                                              const abi::SiteRecord& site);
  [[nodiscard]] std::optional<uint64_t> way_out_of(const abi::LayerRecord& layer,
                                                   uint64_t pc) const;
  [[nodiscard]] std::optional<uint64_t> continue_at(const abi::LayerRecord& layer,
                                                    uint32_t instruction) const;
  Expected<void> unmap_shared_parts(StoppedTarget& target);
  Expected<void> close_left_behind(StoppedTarget& target);
  static Expected<void> unmap_inside(StoppedTarget& target, std::span<const target::Mapping> maps,
                                     const abi::SharedRecord& part);
  void reset_gs(StoppedTarget& target) const;

  const Arena& arena_;
  SiteJournal& journal_;
  RemovalRequest request_;
  std::vector<Change> changes_;
  std::vector<AddressInterval> code_;  // That nobody may be in afterwards.
  std::vector<uint64_t> resting_;      // Of the process that run() is used for.
  std::map<pid_t, std::vector<uint64_t>> resting_of_;
  std::map<uint64_t, uint32_t> hops_;  // Where short windows that go lead first: their sites.
  std::vector<target::Mapping> maps_;
  std::optional<abi::LoadRecord> load_;  // In the process.
  std::map<pid_t, ChangedText> texts_;
  DetachReport report_;
  uint32_t repaired_ = 0;
  uint64_t restorer_ = 0;
  bool thread_is_inside_ = false;
  bool keeps_copies_alone_ = false;
  bool threads_ran_ = false;  // Since somebody looked for resting frames.
};

}  // namespace clew::inline_
