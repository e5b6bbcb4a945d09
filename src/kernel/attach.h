// SPDX-License-Identifier: Apache-2.0
// Binds a loaded program to an attach point.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "kernel/attachments.h"
#include "kernel/probe.h"

namespace clew::kernel {

// What a program gets as its cookie: the probe, and its place in the list of enablings.
constexpr uint64_t cookie_of(uint32_t probe, uint32_t enabling) {
  return uint64_t{probe} << 32 | enabling;
}

// A program that was loaded for the tracepoint (ProgramType::TypedTracepoint).
Expected<FileDescriptor> attach_typed_tracepoint(const FileDescriptor& program,
                                                 const std::string& tracepoint);

// `cookie` 0: none is set. Errors name the tracepoint.
Expected<FileDescriptor> attach_raw_tracepoint(const FileDescriptor& program,
                                               const std::string& tracepoint, uint64_t cookie);

// At a trace event, on all CPUs.
Expected<void> attach_trace_event(const FileDescriptor& program, const Probe& probe,
                                  uint64_t cookie, Attachments& attachments);

struct ClockPlace {
  const Probe& probe;
  std::optional<uint64_t> only_cpu;  // Instead of all.
};

// On every CPU that is online, or (Tick) on one. NotFound when the only one is not online.
Expected<void> attach_clock(const FileDescriptor& program, const ClockPlace& place, uint64_t cookie,
                            Attachments& attachments);

// Places of one file, for one process (0 = all).
struct UserPlace {
  uint64_t offset_bytes = 0;
  uint64_t semaphore_offset_bytes = 0;
  uint64_t cookie = 0;
};
struct UserPlaces {
  std::string path;
  int64_t pid = 0;
  bool is_return = false;
  std::vector<UserPlace> places;
};
// As few links as will do. Gives the cookies of the places that are left out: the kernel can run
// their instructions nowhere but where they are (or cannot decode them), so that no uprobe may be
// set there. Other errors name the file; nothing of it is attached then.
Expected<std::vector<uint64_t>> attach_user(const FileDescriptor& program, const UserPlaces& places,
                                            Attachments& attachments);

}  // namespace clew::kernel
