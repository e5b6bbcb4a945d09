// SPDX-License-Identifier: Apache-2.0
// Names for addresses of code and data, in the kernel and in processes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace clew::target {

struct SymbolPlace {
  std::string module;    // "vmlinux", "ext4", "libc.so.6": without folders.
  std::string function;  // Empty when only the module is known.
  uint64_t offset_bytes = 0;
};

class Symbolizer {
 public:
  // For user(): the first process of -c and -p, whatever its pid is. Pid 0 is the idle thread's.
  static constexpr uint64_t kTarget = ~uint64_t{0};

  Symbolizer() = default;
  Symbolizer(const Symbolizer&) = delete;
  Symbolizer& operator=(const Symbolizer&) = delete;
  virtual ~Symbolizer() = default;
  // Nothing when the address lies in no module.
  [[nodiscard]] virtual std::optional<SymbolPlace> kernel(uint64_t address) const = 0;
  [[nodiscard]] virtual std::optional<SymbolPlace> user(uint64_t pid, uint64_t address) const = 0;
};

}  // namespace clew::target
