// SPDX-License-Identifier: Apache-2.0
// StaticProbeFiles: the USDT probes of ELF files, each file read once, with the functions that they
// are in. Private to providers/user*.cc.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "target/process.h"
#include "target/usdt.h"

namespace clew::kernel {

class StaticProbeFiles {
 public:
  // Empty when the module has none, or cannot be read.
  const std::vector<target::StaticProbe>& of(const target::ProcessModule& module);
  // The function of a probe of the module; empty when no symbol covers it.
  const std::string& function_of(const target::ProcessModule& module, size_t probe);

 private:
  struct File {
    std::vector<target::StaticProbe> probes;
    std::vector<std::string> functions;  // By probe; empty until the symbols are asked for.
  };
  using Key = std::tuple<uint32_t, uint32_t, uint64_t>;  // Device and inode.
  File& file_of(const target::ProcessModule& module);

  std::map<Key, File> files_;
};

}  // namespace clew::kernel
