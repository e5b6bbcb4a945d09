// SPDX-License-Identifier: Apache-2.0
// The files of recorded modules: each is read once, and analysed once for each way in which it is
// recorded, for all processes that have it. What was analysed last is kept in memory, as far as
// there is room, and in side files for the next time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "recorder/imports.h"
#include "recorder/installable.h"
#include "recorder/recorded_module.h"
#include "recorder/sidecar.h"
#include "recorder/stamps.h"
#include "target/linked_names.h"
#include "target/module_file.h"
#include "target/process.h"
#include "target/sha256.h"

namespace clew::engine {

struct ModuleFile {
  bool is_left_out = false;      // A part of the C library, or the loader.
  bool has_guards = false;       // Only looked for where they record.
  bool opens_libraries = false;  // It may open others while it runs.
  target::LinkedNames names{};
  target::Digest digest{};  // Of all its bytes; of one that is left out: none.
};

// What is put into each process that records a module so.
class SharedModule {
 public:
  SharedModule(recorder::Installable module, recorder::Recipe recipe)
      : module_(std::move(module)),
        recipe_(std::move(recipe)),
        digest_(module_.number_from(recipe_.first_id)) {}
  [[nodiscard]] const recorder::Installable& module() const { return module_; }
  [[nodiscard]] const copy::ModuleCopy& copy() const { return module_.copy(); }
  [[nodiscard]] const recorder::Recipe& recipe() const { return recipe_; }
  [[nodiscard]] const recorder::Digest& digest() const { return digest_; }
  // Its copy is for this place from now on, and no longer for that of another process. Errors:
  // Limit; it is of no use any more then.
  Expected<void> move_to(uint64_t load_bias, uint64_t address);
  [[nodiscard]] bool is_broken() const { return is_broken_; }

 private:
  recorder::Installable module_;
  recorder::Recipe recipe_;
  recorder::Digest digest_;
  bool is_broken_ = false;
};

// Ids of a module that a process has.
struct IdRange {
  uint32_t first = 0;
  uint32_t count = 0;
};

// How a module is recorded in one process.
struct Wanted {
  uint32_t cursor = 0;
  std::vector<recorder::KnownImport> imports;
  std::vector<recorder::StampedImport> stamped;
  std::vector<IdRange> taken;  // By other modules of the process.
};

class ModuleFiles {
 public:
  // `cache`: the folder of side files; empty: there are none.
  ModuleFiles(recorder::Loops loops, recorder::FrontEnd front_end, const std::string& cache)
      : loops_(loops), front_end_(front_end), sidecars_(cache) {}

  [[nodiscard]] recorder::FrontEnd front_end() const { return front_end_; }

  // Shared with all processes that have it, and for as long as they do. Errors: Io when nothing can
  // be said of it; those of check_stack_maps().
  Expected<std::shared_ptr<const ModuleFile>> read(const target::ProcessModule& module);
  // Whether exceptions go through its functions. Errors: Io, as above.
  static Expected<bool> unwinds(const target::ProcessModule& module, const ModuleFile& file);
  // Also shared. Errors: Io, as above; those of RecordedModule::make and of write_unwind().
  Expected<std::shared_ptr<SharedModule>> analyse(const target::ProcessModule& module,
                                                  const ModuleFile& file, Wanted wanted);
  // As another recorder has analysed it.
  Expected<std::shared_ptr<SharedModule>> analyse_again(const target::ProcessModule& module,
                                                        const ModuleFile& file,
                                                        const recorder::Recipe& recipe);

 private:
  // Device, inode, build-id.
  using Key = std::tuple<uint64_t, uint64_t, std::string>;
  struct Analysed {
    Key key;
    std::shared_ptr<SharedModule> module;
  };
  static std::optional<Key> key_of(const target::ProcessModule& module);
  [[nodiscard]] std::shared_ptr<SharedModule> find(const Key& key, const Wanted& wanted);
  void keep(Key key, std::shared_ptr<SharedModule> module);
  // Of the file as it is now, which may be another one than it was.
  [[nodiscard]] Expected<recorder::Installable> find_or_make(const target::ProcessModule& module,
                                                             const ModuleFile& file,
                                                             const recorder::Recipe& recipe) const;
  [[nodiscard]] Expected<recorder::Installable> make(const target::ProcessModule& module,
                                                     const recorder::Recipe& recipe) const;
  [[nodiscard]] uint32_t first_id(const Wanted& wanted) const;

  recorder::Loops loops_;
  recorder::FrontEnd front_end_;
  recorder::Sidecars sidecars_;
  std::map<Key, std::shared_ptr<const ModuleFile>> files_;
  std::list<Analysed> analysed_;  // The newest is the first.
  uint32_t next_id_ = 1;
};

}  // namespace clew::engine
