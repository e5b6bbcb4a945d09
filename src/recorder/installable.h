// SPDX-License-Identifier: Apache-2.0
// What is put into a process so that a module is recorded, and what the recorder must know of it
// then: nothing of the analysis. It follows from the file's bytes and from the recipe, so it is
// kept for the next time (sidecar.h).
//
// Its ids begin with 1, and it is where it was written: number_from() once, then move_to(), then
// entries are written. It may be moved again, to a place in another process.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <sys/user.h>

#include "base/error.h"
#include "copy/check.h"
#include "copy/unwind.h"
#include "recorder/cursor_map.h"
#include "recorder/entries.h"
#include "recorder/recorded_module.h"

namespace clew::recorder {

struct InstallableCounts {
  uint32_t ids = 0;
  uint32_t functions = 0;  // That are recorded.
  uint32_t refused = 0;    // That are not.
  uint32_t heads = 0;
  uint32_t bits = 0;

  bool operator==(const InstallableCounts&) const = default;
};

// A word of a DAG's record in the probe of one way into the copy.
struct EntryId {
  uint32_t entry = 0;   // In EntryPlan::entries.
  uint16_t second = 0;  // 1: of PlannedEntry::second.
  uint16_t offset = 0;
};

class Installable {
 public:
  // Made for the id 1; `unwind` is the copy's. Errors: Refused when the ids are not where they
  // should be.
  static Expected<Installable> of(std::unique_ptr<RecordedModule> module, copy::UnwindBytes unwind);

  // The module's first id. The SHA-256 of the copy's bytes, as RecordedModule::digest().
  Digest number_from(uint32_t first_id);
  // The copy's place in a process. Errors: Limit when it is too far away from the module; it is of
  // no use any more then.
  Expected<void> move_to(uint64_t load_bias, uint64_t address);
  [[nodiscard]] Expected<Entries> write_entries(const HeadPlaces& places,
                                                const EntryPlacement& placement) const;

  [[nodiscard]] const copy::ModuleCopy& copy() const { return copy_.copy(); }
  // Stands behind the copy.
  [[nodiscard]] const copy::UnwindBytes& unwind() const { return unwind_; }
  [[nodiscard]] const EntryPlan& entries() const { return entries_; }
  [[nodiscard]] const InstallableCounts& counts() const { return counts_; }
  // As RecordedModule's.
  [[nodiscard]] std::optional<uint64_t> cursor_in(const user_regs_struct& registers) const {
    return cursor_map_.cursor_in(registers, copy());
  }
  // What guards call, in a process where the module is there; none when it is recorded by copies.
  [[nodiscard]] std::vector<uint8_t> guard_probe(uint64_t load_bias) const {
    return guards_ ? guards_->probe(load_bias, first_id_, cursor_) : std::vector<uint8_t>();
  }

 private:
  friend class SidecarFile;
  explicit Installable(copy::CheckedCopy copy) : copy_(std::move(copy)) {}
  static Expected<Installable> of_guards(std::unique_ptr<RecordedModule> module,
                                         copy::UnwindBytes unwind);

  copy::CheckedCopy copy_;
  copy::UnwindBytes unwind_;
  uint64_t load_bias_ = 0;
  std::vector<uint32_t> ids_;  // Words of records in the copy's bytes: offsets, ascending.
  CursorMap cursor_map_;
  EntryPlan entries_;
  std::vector<EntryId> entry_ids_;  // By entry.
  InstallableCounts counts_;
  std::optional<Guards> guards_;  // Their probe says where the module is.
  uint32_t first_id_ = 1;
  uint32_t cursor_ = 0;
};

}  // namespace clew::recorder
