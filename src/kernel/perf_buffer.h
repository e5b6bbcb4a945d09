// SPDX-License-Identifier: Apache-2.0
// One event of perf_event_open(2) on one CPU, and the buffer into which the kernel writes its
// records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include <linux/perf_event.h>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "kernel/bpf.h"

namespace clew::kernel {

class PerfBuffer {
 public:
  // Of all processes. `data_bytes`: a power of 2, pages. Errors: NotFound where the CPU is offline;
  // Refused, with what `what` names.
  static Expected<PerfBuffer> open(perf_event_attr attributes, int cpu, size_t data_bytes,
                                   std::string_view what);

  [[nodiscard]] int descriptor() const { return event_.get(); }
  // A record without its header.
  using Take = std::function<void(const perf_event_header&, std::span<const uint8_t>)>;
  // All that wait. False when the buffer cannot be followed: what waited is lost.
  [[nodiscard]] bool read(const Take& take) const;

 private:
  PerfBuffer(FileDescriptor event, Mapping memory, size_t data_bytes)
      : event_(std::move(event)), memory_(std::move(memory)), data_bytes_(data_bytes) {}

  FileDescriptor event_;
  Mapping memory_;
  size_t data_bytes_;
};

}  // namespace clew::kernel
