// SPDX-License-Identifier: Apache-2.0
// The address of a kernel symbol by name, from /proc/kallsyms. Whether variables are in it depends
// on the kernel (CONFIG_KALLSYMS_ALL); functions always are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace clew::target {

struct KernelSymbol {
  uint64_t address = 0;
  std::string module;  // "vmlinux", or the module that it is in.
};

// `module`: empty = any, the kernel's own first. Reads up to the symbol: tens of milliseconds when
// there is none. NotFound; Refused when this user may not see addresses.
Expected<KernelSymbol> find_kernel_symbol(std::string_view module, std::string_view name);

// All lines of it, some ten megabytes; empty when it cannot be read.
std::string read_kernel_symbols();

// One line of it: "ffffffff81000000 T _text", with "\t[module]" for a module's. The symbol if it is
// the one that is looked for.
std::optional<KernelSymbol> parse_kernel_symbol(std::string_view line, std::string_view module,
                                                std::string_view name);

}  // namespace clew::target
