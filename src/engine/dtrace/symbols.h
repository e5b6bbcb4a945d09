// SPDX-License-Identifier: Apache-2.0
// Names for the addresses in D's output: the kernel's from /proc/kallsyms, those of processes from
// the files that they have mapped, or the maps that compilers at run time write. A process is
// looked at when its first address comes, if nobody did before; what is known of it stays, so that
// its names are there when it has ended.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "output/d/symbols.h"
#include "target/address_space.h"
#include "target/module_image.h"
#include "target/perf_map.h"

namespace clew::engine {

class LiveSymbols final : public output::d::Symbols {
 public:
  // Borrowed. `target`: the first process of -c and -p, 0 = none; pid 0 stands for it.
  // `names_processes`: else addresses of processes have no names (-x noresolve).
  LiveSymbols(target::AddressSpaces& spaces, pid_t target, bool names_processes)
      : spaces_(spaces), target_(target), names_processes_(names_processes) {}

  [[nodiscard]] std::optional<output::d::SymbolPlace> kernel(uint64_t address) const override;
  [[nodiscard]] std::optional<output::d::SymbolPlace> user(uint64_t pid,
                                                           uint64_t address) const override;

 private:
  [[nodiscard]] std::optional<output::d::SymbolPlace> in_file(pid_t process,
                                                              uint64_t address) const;
  [[nodiscard]] std::optional<output::d::SymbolPlace> in_made_code(pid_t process,
                                                                   uint64_t address) const;
  [[nodiscard]] const target::ModuleImage* image_of(const target::CodeFile& file,
                                                    const std::string& name) const;

  target::AddressSpaces& spaces_;
  pid_t target_;
  bool names_processes_;
  // What was read so far: questions fill these.
  mutable std::optional<output::d::KernelSymbols> kernel_;
  mutable std::map<const target::CodeFile*, std::unique_ptr<target::ModuleImage>> images_;
  mutable std::map<pid_t, target::PerfMap> made_code_;
};

}  // namespace clew::engine
