// SPDX-License-Identifier: Apache-2.0
// What a process looks like from outside, so that a test can say that a detach left nothing.
#pragma once

#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

namespace clew::live {

struct ProcessState {
  // Mappings that a program does not make while it only computes: everything but heap and stacks.
  std::set<std::string> mappings;
  // Of these, what Clew's own look like: memory of a memfd, executable memory without a file, and
  // memory below 2 GiB.
  std::set<std::string> strange_mappings;
  std::vector<std::string> descriptors;  // Targets of /proc/PID/fd, sorted.
  size_t thread_count = 0;               // Without those that are ending.
  std::string signals;                   // Pending, blocked, ignored, caught: of all threads.

  static ProcessState of(pid_t pid);
};

// Every file-backed executable mapping holds the bytes of its file.
void expect_text_equals_file(pid_t pid);

// Bytes of file-backed executable mappings that are not those of the file: 0 in a clean process.
size_t changed_text_bytes(pid_t pid);

// No mapping, descriptor or thread more, and signals as before. For a process that is at rest.
void expect_no_residue(const ProcessState& before, pid_t pid);

// The same for a process that works and so maps memory and opens files of its own.
void expect_no_strange_residue(const ProcessState& before, pid_t pid);

}  // namespace clew::live
