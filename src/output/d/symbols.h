// SPDX-License-Identifier: Apache-2.0
// Names for addresses, as D's output shows them: "vmlinux`vfs_read+0x12". Kernel names come from
// the text of /proc/kallsyms; those of processes are the engine's to find.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "query/d/functions.h"

namespace clew::output::d {

struct SymbolPlace {
  std::string module;    // "vmlinux", "ext4", "libc.so.6": without folders.
  std::string function;  // Empty when only the module is known.
  uint64_t offset_bytes = 0;
};

class Symbols {
 public:
  Symbols() = default;
  Symbols(const Symbols&) = delete;
  Symbols& operator=(const Symbols&) = delete;
  virtual ~Symbols() = default;
  // Nothing when the address lies in no module.
  [[nodiscard]] virtual std::optional<SymbolPlace> kernel(uint64_t address) const = 0;
  [[nodiscard]] virtual std::optional<SymbolPlace> user(uint64_t pid, uint64_t address) const = 0;
};

// The functions and variables of the kernel, sorted by address.
class KernelSymbols {
 public:
  // Lines that are no symbols, and symbols whose address is hidden (0), are left out.
  static KernelSymbols parse(std::string_view kallsyms);
  [[nodiscard]] std::optional<SymbolPlace> find(uint64_t address) const;

 private:
  struct Symbol {
    uint64_t address = 0;
    bool is_global = false;
    std::string name;
    uint32_t module = 0;  // In modules_.
  };
  void add_line(std::string_view line);
  uint32_t module_index(std::string_view name);

  std::vector<Symbol> symbols_;
  std::vector<std::string> modules_;
};

// Kernel names only.
class KernelOnlySymbols final : public Symbols {
 public:
  explicit KernelOnlySymbols(KernelSymbols symbols) : symbols_(std::move(symbols)) {}
  [[nodiscard]] std::optional<SymbolPlace> kernel(uint64_t address) const override {
    return symbols_.find(address);
  }
  [[nodiscard]] std::optional<SymbolPlace> user(uint64_t, uint64_t) const override { return {}; }

 private:
  KernelSymbols symbols_;
};

// How much of a place is shown.
enum class PlaceDetail : uint8_t {
  Offset,  // m`f+0x1
  Symbol,  // m`f
  Module,  // m
};

// What sym(), mod(), uaddr() and their kin show of an address.
PlaceDetail detail_of(query::d::Action action);

// "0x…" when nothing is known; "module`0x…" when no function is.
std::string place_text(const std::optional<SymbolPlace>& place, uint64_t address,
                       PlaceDetail detail);

}  // namespace clew::output::d
