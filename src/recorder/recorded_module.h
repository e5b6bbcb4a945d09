// SPDX-License-Identifier: Apache-2.0
// A module as it is recorded: what was proved, tiled and written. It follows from the file and from
// the few values of Recipe alone, so that whoever reads a recording makes it anew, and compares
// `digest`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <sys/user.h>

#include "base/error.h"
#include "copy/check.h"
#include "copy/facts.h"
#include "copy/prove_module.h"
#include "recorder/cursor_map.h"
#include "recorder/guards.h"
#include "recorder/probes.h"
#include "recorder/tile.h"
#include "target/module_image.h"
#include "target/sha256.h"

namespace clew::recorder {

// Guards: the compiler has put a call into each block, and what is called records (guards.h).
enum class FrontEnd : uint8_t { Copies = 0, Guards = 1 };

struct Recipe {
  uint32_t first_id = 1;  // Of the module's DAGs.
  uint32_t cursor = 0;    // gs displacement.
  Loops loops = Loops::Once;
  std::vector<KnownImport> imports = {};    // Those that lead where their names say. By slot.
  std::vector<StampedImport> stamped = {};  // None where the time cannot be read. By slot.
  FrontEnd front_end = FrontEnd::Copies;
};

using Digest = target::Digest;

class RecordedModule {
  struct Key {
    explicit Key() = default;
  };

 public:
  explicit RecordedModule(Key) {}
  // Errors: Io; Refused when the copy does not pass its check, or by guards when there are none;
  // Limit when ids run out. By guards only what they call has a copy. The image is
  // borrowed. `recorded`, which may be null, is borrowed for the call: of a copy that has been in a
  // process, so that one with the same bytes need not pass again to be read.
  static Expected<std::unique_ptr<RecordedModule>> make(const target::ModuleImage& image,
                                                        const Recipe& recipe,
                                                        const Digest* recorded = nullptr);

  [[nodiscard]] copy::Facts& facts() const { return *facts_; }
  [[nodiscard]] const copy::ModuleProof& proof() const { return proof_; }
  [[nodiscard]] const Copied& copied() const { return *copied_; }
  [[nodiscard]] const ModuleTiling& tiling() const { return tiling_; }
  [[nodiscard]] const Probes& probes() const { return probes_; }
  [[nodiscard]] copy::CheckedCopy& copy() { return *copy_; }
  [[nodiscard]] const CursorMap& cursor_map() const { return cursor_map_; }
  [[nodiscard]] const Recipe& recipe() const { return recipe_; }
  // Of a thread that stopped in the copy, as it was moved, where a register has its cursor: newer
  // than that in memory.
  [[nodiscard]] std::optional<uint64_t> cursor_in(const user_regs_struct& registers) const;
  // SHA-256 of the copy's bytes as they were written, before they were moved.
  [[nodiscard]] const Digest& digest() const { return digest_; }
  // Null when it is recorded by copies.
  [[nodiscard]] const Guards* guards() const { return guards_ ? &*guards_ : nullptr; }

 private:
  Expected<copy::ModuleCopy> write_guards(const target::ModuleImage& image);
  Expected<copy::ModuleCopy> write_probes(const target::ModuleImage& image);
  [[nodiscard]] Expected<void> check_ids(const target::ModuleImage& image) const;

  Recipe recipe_;
  std::unique_ptr<copy::Facts> facts_;
  copy::ModuleProof proof_;
  std::optional<Copied> copied_;
  ModuleTiling tiling_;
  Probes probes_;
  std::optional<copy::CheckedCopy> copy_;
  CursorMap cursor_map_;
  Digest digest_{};
  std::optional<Guards> guards_;
  std::vector<copy::Proved> in_copy_;  // By guards: the functions that they call.
};

}  // namespace clew::recorder
