// SPDX-License-Identifier: Apache-2.0
// Tells which processes map which files as code: that is how probes are found of programs and
// libraries that come when tracing is on already. The kernel tells of each such mapping of each
// process by a perf event; a busy machine has thousands a second.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "kernel/bpf.h"
#include "kernel/catalogue.h"

namespace clew::kernel {

class MappingWatch {
 public:
  // Errors: Refused when the kernel does not let us see all processes.
  static Expected<MappingWatch> start();

  // They poll readable when there is something to read.
  [[nodiscard]] std::vector<int> descriptors() const;
  // Passes what was mapped since, oldest first on each CPU. Returns how many were lost.
  uint64_t read(const std::function<void(const MappedFile&)>& take);

 private:
  struct Cpu {
    FileDescriptor event;
    Mapping ring;
  };
  std::vector<Cpu> cpus_;
};

}  // namespace clew::kernel
