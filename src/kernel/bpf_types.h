// SPDX-License-Identifier: Apache-2.0
// What D sessions need to know of the kernel's own types (/sys/kernel/btf/vmlinux): where fields of
// its structs are, and how many arguments a tracepoint has. The types that a D program names are
// read elsewhere (providers).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace clew::kernel {

class KernelTypes {
 public:
  // Errors: Refused when the kernel has no types to show.
  static Expected<KernelTypes> read();
  KernelTypes(KernelTypes&&) noexcept;
  KernelTypes& operator=(KernelTypes&&) noexcept;
  ~KernelTypes();

  // Offset in bytes of `path` ("se.sum_exec_runtime") in a struct, unnamed members looked through.
  // NotFound.
  [[nodiscard]] Expected<uint64_t> offset_of(std::string_view record, std::string_view path) const;
  // NotFound when the kernel's core has no such tracepoint (one of a module is none of its).
  [[nodiscard]] Expected<uint32_t> tracepoint_arguments(std::string_view tracepoint) const;

  // Its number among the types, for programs that know its arguments. NotFound.
  [[nodiscard]] Expected<uint32_t> tracepoint(std::string_view name) const;

  // A function of the kernel's core. NotFound.
  struct FunctionType {
    uint32_t id = 0;
    uint32_t arguments = 0;
    bool has_result = false;
  };
  [[nodiscard]] Expected<FunctionType> function(std::string_view name) const;

 private:
  struct Data;
  explicit KernelTypes(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data_;
};

}  // namespace clew::kernel
