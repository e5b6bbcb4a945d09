// SPDX-License-Identifier: Apache-2.0
#include "kernel/lock_entries.h"

#include "abi/machine/tables.h"
#include "kernel/attach_functions.h"
#include "kernel/bpf.h"
#include "kernel/features.h"

namespace clew::kernel {
namespace {

constexpr uint32_t kEnteredThreadsMax = 16384;

bool is_of_lock(const Probe& probe) {
  return probe.kind == AttachKind::LockReturn || probe.kind == AttachKind::LockWait;
}

}  // namespace

Expected<void> LockEntries::prepare(const Probe& probe, Symbols& symbols) {
  if (!is_of_lock(probe) || entered_.valid()) return {};
  entered_ = CLEW_TRY(
      create_hash("d_entered", sizeof(uint64_t), sizeof(abi::MachineEntered), kEnteredThreadsMax));
  symbols["d_entered"] = {Symbol::Kind::Map, static_cast<uint32_t>(entered_.get())};
  return {};
}

Expected<void> LockEntries::attach(const Probe& probe, const Symbols& symbols,
                                   Attachments& attachments) {
  UserPlaces places{.path = probe.path, .pid = probe.pid, .is_return = false, .places = {}};
  if (!is_of_lock(probe)) return {};
  if (!places_.insert({probe.path, probe.pid, probe.offset_bytes}).second) return {};
  places.places.push_back({.offset_bytes = probe.offset_bytes,
                           .semaphore_offset_bytes = 0,
                           .cookie = probe.offset_bytes << abi::kMachineLockKindBits |
                                     static_cast<uint64_t>(probe.lock_kind)});
  if (!program_.valid()) {
    const LinkInput input{.name = "clew_d_lock",
                          .main = "d_main_lock_entry",
                          .type = features().has_user_probe_multi ? ProgramType::UserProbeMulti
                                                                  : ProgramType::SingleProbe,
                          .clauses = {},
                          .error_clauses = {},
                          .static_arguments = nullptr,
                          .loops = features().has_open_loops ? LoopKind::Open : LoopKind::Counted};
    const Image image = CLEW_TRY(link(input, {}, symbols));
    program_ = CLEW_TRY(load_image(image, nullptr));
  }
  (void)CLEW_TRY(features().has_user_probe_multi
                     ? attach_user(program_, places, attachments)
                     : attach_user_singly(program_, places, attachments));
  return {};
}

}  // namespace clew::kernel
