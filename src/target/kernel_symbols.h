// SPDX-License-Identifier: Apache-2.0
// The kernel's symbols, from the text of /proc/kallsyms: by name and by address. Whether variables
// are in it depends on the kernel (CONFIG_KALLSYMS_ALL); functions always are.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "target/symbolizer.h"

namespace clew::target {

// The module of what belongs to no module.
inline constexpr std::string_view kKernelModule = "vmlinux";

// A line: "ffffffff81000000 T _text", with "\t[module]" for a module's. Borrows the line's text.
struct KernelSymbolLine {
  uint64_t address = 0;  // 0: hidden from this user, or no place in memory.
  char type = 0;         // The letter of nm(1).
  std::string_view name;
  std::string_view module;
};

// Nothing when it is no such line.
std::optional<KernelSymbolLine> read_kernel_symbol(std::string_view line);

// Of each line that is one, in order.
void for_each_kernel_symbol(std::string_view kallsyms,
                            const std::function<void(const KernelSymbolLine&)>& take);

// All of /proc/kallsyms, some ten megabytes; empty when it cannot be read.
std::string read_kernel_symbols();

struct KernelSymbol {
  uint64_t address = 0;
  std::string module;  // "vmlinux", or the module that it is in.
};

// `module`: empty = any, the kernel's own first. Reads up to the symbol: tens of milliseconds when
// there is none. NotFound; Refused when this user may not see addresses.
Expected<KernelSymbol> find_kernel_symbol(std::string_view module, std::string_view name);

// The functions and variables of the kernel, by address.
class KernelSymbols {
 public:
  // Symbols whose address is hidden are left out. Of several names for one address a global one is
  // shown, else the first.
  static KernelSymbols parse(std::string_view kallsyms);
  [[nodiscard]] std::optional<SymbolPlace> find(uint64_t address) const;

 private:
  struct Symbol {
    uint64_t address = 0;
    bool is_global = false;
    std::string name;
    uint32_t module = 0;  // In modules_.
  };
  void add(const KernelSymbolLine& line);
  uint32_t module_index(std::string_view name);

  std::vector<Symbol> symbols_;
  std::vector<std::string> modules_;
};

}  // namespace clew::target
