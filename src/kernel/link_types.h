// SPDX-License-Identifier: Apache-2.0
// The BTF of a linked program: a type for each of its functions, which is how the kernel's verifier
// knows what a global function may be called with (Documentation/bpf/btf.rst).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernel/bpf_object.h"

namespace clew::kernel {

class FunctionTypes {
 public:
  FunctionTypes();

  // The type of a function: (MachineWindow* not null, number, …) -> number, or of a main program.
  uint32_t add(const Function& function);
  [[nodiscard]] std::vector<uint8_t> finish() const;

 private:
  uint32_t text(const std::string& text);
  uint32_t put(const std::vector<uint32_t>& words);
  uint32_t prototype(uint32_t parameters, bool is_static);

  std::vector<uint32_t> types_;
  std::string texts_;
  uint32_t count_ = 0;
  uint32_t number_ = 0;
  uint32_t window_ = 0;
  std::map<uint32_t, uint32_t> prototypes_;  // By the number of parameters and linkage.
};

// Of memory that the kernel keeps with threads: a key, and a value of that size.
inline constexpr uint32_t kStorageKeyType = 1;
inline constexpr uint32_t kStorageValueType = 2;
std::vector<uint8_t> storage_types(size_t value_bytes);

}  // namespace clew::kernel
