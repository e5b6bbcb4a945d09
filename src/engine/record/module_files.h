// SPDX-License-Identifier: Apache-2.0
// The files of recorded modules: each is read once, and analysed once for each way in which it is
// recorded, for all processes that have it. What was analysed last is kept, as far as there is
// room.
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
#include "copy/unwind.h"
#include "engine/record/known_imports.h"
#include "recorder/recorded_module.h"
#include "target/module_image.h"
#include "target/process.h"

namespace clew::engine {

struct ModuleFile {
  bool is_left_out = false;  // A part of the C library, or the loader.
  bool unwinds = false;      // Exceptions go through its functions.
  ModuleNames names{};
};

// An analysed module, for all processes that record it so.
class SharedModule {
 public:
  SharedModule(std::unique_ptr<const target::ModuleImage> image,
               std::unique_ptr<recorder::RecordedModule> module, copy::UnwindBytes unwind)
      : image_(std::move(image)), module_(std::move(module)), unwind_(std::move(unwind)) {}
  [[nodiscard]] recorder::RecordedModule& module() const { return *module_; }
  [[nodiscard]] const copy::ModuleCopy& copy() const { return module_->copy().copy(); }
  // Stands behind the copy.
  [[nodiscard]] const copy::UnwindBytes& unwind() const { return unwind_; }
  // Its copy is for this place from now on, and no longer for that of another process. Errors:
  // Limit; it is of no use any more then.
  Expected<void> move_to(uint64_t load_bias, uint64_t address);
  [[nodiscard]] bool is_broken() const { return is_broken_; }

 private:
  std::unique_ptr<const target::ModuleImage> image_;  // The module borrows it.
  std::unique_ptr<recorder::RecordedModule> module_;
  copy::UnwindBytes unwind_;
  uint64_t load_bias_ = 0;
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
  std::vector<IdRange> taken;  // By other modules of the process.
};

class ModuleFiles {
 public:
  explicit ModuleFiles(recorder::Loops loops) : loops_(loops) {}

  // Shared with all processes that have it, and for as long as they do. Errors: Io, when nothing
  // can be said of it.
  Expected<std::shared_ptr<const ModuleFile>> read(const target::ProcessModule& module);
  // The same. Errors: those of RecordedModule::make.
  Expected<std::shared_ptr<SharedModule>> analyse(const target::ProcessModule& module,
                                                  Wanted wanted);

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
  [[nodiscard]] uint32_t first_id(const Wanted& wanted) const;

  recorder::Loops loops_;
  std::map<Key, std::shared_ptr<const ModuleFile>> files_;
  std::list<Analysed> analysed_;  // The newest is the first.
  uint32_t next_id_ = 1;
};

}  // namespace clew::engine
