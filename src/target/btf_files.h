// SPDX-License-Identifier: Apache-2.0
// BtfFiles: the types of the running kernel and of its modules, each read when it is first asked
// for. What could not be read is not tried again.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "target/btf.h"

namespace clew::target {

class BtfFiles {
 public:
  // Both stay where they are while the BtfFiles live. Errors as those of Btf::of_kernel() and
  // Btf::of_module().
  Expected<const Btf*> kernel();
  Expected<const Btf*> module(std::string_view name);  // "vmlinux": the kernel.

 private:
  std::optional<Expected<Btf>> kernel_;
  std::map<std::string, Expected<Btf>, std::less<>> modules_;
};

}  // namespace clew::target
