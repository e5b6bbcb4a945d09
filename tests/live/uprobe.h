// SPDX-License-Identifier: Apache-2.0
// The kernel's performance events as other observers use them: uprobes above all.
#pragma once

#include <cstdint>
#include <vector>

#include <linux/perf_event.h>
#include <sys/types.h>

#include "base/file_descriptor.h"

namespace clew::live {

struct Watched {
  pid_t pid = -1;  // -1: all.
  int processor = -1;
};
FileDescriptor open_event(perf_event_attr& attributes, const Watched& what);

// A uprobe of the kernel, as perf and bpftrace make them. It counts for itself.
class Uprobe {
 public:
  enum class Kind : uint8_t { Entry, Return };
  enum class Where : uint8_t { AllOfTheFile, ThisProcess };
  Uprobe(pid_t pid, uint64_t address, Kind kind = Kind::Entry, Where where = Where::AllOfTheFile);
  [[nodiscard]] bool is_there() const { return !events_.empty(); }
  [[nodiscard]] uint64_t hits() const;
  void remove() { events_.clear(); }

 private:
  std::vector<FileDescriptor> events_;
};

#define NEED_UPROBE(probe) \
  if (!(probe).is_there()) GTEST_SKIP() << "NOT TESTED: no uprobes for us on this machine"

}  // namespace clew::live
