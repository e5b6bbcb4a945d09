// SPDX-License-Identifier: Apache-2.0
// Names of addresses while things run: the kernel's from /proc/kallsyms, those of processes from
// the files that they have mapped, or the maps that compilers at run time write. A process is
// looked at when its first address comes, if nobody did before; what is known of it stays, so that
// its names are there when it has ended.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "target/address_space.h"
#include "target/kernel_symbols.h"
#include "target/module_image.h"
#include "target/perf_map.h"
#include "target/symbolizer.h"

namespace clew::target {

class LiveSymbolizer final : public Symbolizer {
 public:
  // Borrowed. `target`: the first process of -c and -p, 0 = none.
  // `names_processes`: else addresses of processes have no names (-x noresolve).
  LiveSymbolizer(AddressSpaces& spaces, pid_t target, bool names_processes)
      : spaces_(spaces), target_(target), names_processes_(names_processes) {}

  [[nodiscard]] std::optional<SymbolPlace> kernel(uint64_t address) const override;
  [[nodiscard]] std::optional<SymbolPlace> user(uint64_t pid, uint64_t address) const override;
  [[nodiscard]] std::optional<CodePlace> code_at(uint64_t pid, uint64_t address) const override;
  [[nodiscard]] bool is_signal_return(uint64_t pid, uint64_t address) const override;
  [[nodiscard]] std::vector<SourceCall> source(uint64_t pid, uint64_t address) const override;

 private:
  [[nodiscard]] pid_t process_of(uint64_t pid) const;
  [[nodiscard]] std::optional<CodePlace> find(pid_t process, uint64_t address) const;
  [[nodiscard]] std::optional<SymbolPlace> in_file(pid_t process, uint64_t address) const;
  [[nodiscard]] std::optional<SymbolPlace> in_made_code(pid_t process, uint64_t address) const;
  [[nodiscard]] DebugInfo* debug_of(const CodeFile& file, const std::string& name) const;
  [[nodiscard]] const ModuleImage* image_of(const CodeFile& file, const std::string& name) const;

  AddressSpaces& spaces_;
  pid_t target_;
  bool names_processes_;
  // What was read so far: questions fill these.
  mutable std::optional<KernelSymbols> kernel_;
  mutable std::map<const CodeFile*, std::unique_ptr<ModuleImage>> images_;
  mutable std::map<const CodeFile*, std::optional<DebugInfo>> debug_;
  mutable std::map<pid_t, PerfMap> made_code_;
};

}  // namespace clew::target
