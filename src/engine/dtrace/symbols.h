// SPDX-License-Identifier: Apache-2.0
// Names for the addresses in D's output: the kernel's from /proc/kallsyms, those of processes from
// their modules. A process is looked at when its first address comes, and remembered: its names are
// there when it has ended.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "output/d/symbols.h"
#include "target/catalog.h"

namespace clew::engine {

class LiveSymbols final : public output::d::Symbols {
 public:
  [[nodiscard]] std::optional<output::d::SymbolPlace> kernel(uint64_t address) const override;
  [[nodiscard]] std::optional<output::d::SymbolPlace> user(uint64_t pid,
                                                           uint64_t address) const override;

  // Looks at a process now, while it is there.
  void keep(uint64_t pid) const { (void)catalog_of(pid); }

 private:
  [[nodiscard]] target::Catalog* catalog_of(uint64_t pid) const;

  // What was read so far: questions fill these.
  mutable std::optional<output::d::KernelSymbols> kernel_;
  mutable std::map<uint64_t, std::unique_ptr<target::Catalog>> processes_;
};

}  // namespace clew::engine
