// SPDX-License-Identifier: Apache-2.0
// Names for addresses of code and data, in the kernel and in processes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "target/types.h"

namespace clew::target {

struct AddressSpace;
struct CodeFile;

struct SymbolPlace {
  std::string module;    // "vmlinux", "ext4", "libc.so.6": without folders.
  std::string function;  // Empty when only the module is known.
  uint64_t offset_bytes = 0;
};

// Where code is, whatever process has it.
struct CodePlace {
  const AddressSpace* space = nullptr;
  const CodeFile* file = nullptr;
  uint64_t address = 0;  // In the file's image.
  auto operator<=>(const CodePlace&) const = default;
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
  // Nothing for code that is in no file.
  [[nodiscard]] virtual std::optional<CodePlace> code_at(uint64_t pid, uint64_t address) const = 0;
  // Whether a handler of a signal returns to this address: its caller was interrupted there.
  [[nodiscard]] virtual bool is_signal_return(uint64_t pid, uint64_t address) const = 0;
  // What debug information says of the code at the address of a process: DebugInfo::calls_at.
  [[nodiscard]] virtual std::vector<SourceCall> source(uint64_t pid, uint64_t address) const = 0;
};

}  // namespace clew::target
