// SPDX-License-Identifier: Apache-2.0
// The modules of a snap, read again from their files: they must be the ones that were recorded.
// Copies are made anew and compared. What is not there, or is another, is told, and its records
// are a gap.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recorder/guard_paths.h"
#include "recorder/recorded_module.h"
#include "recorder/snap.h"
#include "recorder/walk.h"
#include "target/module_file.h"
#include "target/module_image.h"
#include "target/types.h"

namespace clew::recorder {

struct ReadModule {
  const SnapModule* described = nullptr;
  std::unique_ptr<target::ModuleImage> image;
  std::optional<target::ModuleFile> file;
  std::unique_ptr<target::ModuleImage> bare;  // Of it, without a debug file: what was recorded.
  std::unique_ptr<RecordedModule> recorded;   // Null, and so the next one: runs as it is.
  std::unique_ptr<ModulePaths> paths;
  std::unique_ptr<GuardPaths> guards;  // Only where these record.
  std::optional<target::DebugInfo> debug;

  [[nodiscard]] std::string_view name() const;  // Without folders.
  // Of a program counter where it is recorded, in the copy but for guards: the file's instruction.
  [[nodiscard]] std::optional<uint64_t> recorded_at(uint64_t pc) const;
  // Of one in the module's own code.
  [[nodiscard]] std::optional<uint64_t> original_at(uint64_t pc) const;
};

class SnapModules {
 public:
  using Progress = std::function<void(std::string_view)>;

  // The snap is borrowed. `progress` may be empty.
  SnapModules(const Snap& snap, const Progress& progress);

  [[nodiscard]] std::vector<ReadModule>& all() { return modules_; }
  // Those that could not be used, and why.
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }
  // Those that are recorded, and their places in all().
  [[nodiscard]] const std::vector<WalkedModule>& walked() const { return walked_; }
  [[nodiscard]] ReadModule& walked(uint32_t number) { return modules_[numbers_[number]]; }
  // Guards record, in all of them.
  [[nodiscard]] bool has_guards() const;
  // In walked(): the one that records at that program counter.
  [[nodiscard]] std::optional<uint32_t> recorded_in(uint64_t pc) const;
  // Of a thread that stopped where a register has its cursor.
  [[nodiscard]] std::optional<uint64_t> cursor_in(const user_regs_struct& registers) const;

 private:
  std::vector<ReadModule> modules_;
  std::vector<std::string> problems_;
  std::vector<WalkedModule> walked_;
  std::vector<size_t> numbers_;
};

}  // namespace clew::recorder
