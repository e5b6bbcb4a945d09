// SPDX-License-Identifier: Apache-2.0
// The hidden half of lock probes (AttachKind::LockReturn, LockWait): a program at the entries of
// the functions that take locks, which keeps for each thread what it asked for. Internal to
// machine_session.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <tuple>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "kernel/attach.h"
#include "kernel/link.h"
#include "kernel/machine_session.h"

namespace clew::kernel {

class LockEntries {
 public:
  // Makes the map `d_entered`, if the probe needs it and it is not there yet.
  Expected<void> prepare(const Probe& probe, Symbols& symbols);
  // At the entry of the probe's function, if there is no program yet; before its other half is
  // attached.
  Expected<void> attach(const Probe& probe, const Symbols& symbols, Attachments& attachments);

 private:
  using Place = std::tuple<std::string, int64_t, uint64_t>;  // File, process, offset.

  FileDescriptor entered_;
  FileDescriptor program_;
  std::set<Place> places_;
};

}  // namespace clew::kernel
