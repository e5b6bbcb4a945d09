// SPDX-License-Identifier: Apache-2.0
// Stacks that probes in processes walk: the tables for that (abi/machine/unwind.h), which the
// processes of a session share, and the names of what they found.
#pragma once

#include <memory>
#include <span>

#include <sys/types.h>

#include "aggregate/value.h"
#include "base/error.h"
#include "base/file_descriptor.h"
#include "inline/attachment.h"
#include "kernel/bpf.h"
#include "kernel/user_stacks.h"
#include "output/kept_stacks.h"
#include "output/stack_names.h"
#include "target/address_space.h"
#include "target/live_symbolizer.h"

namespace clew::engine {

class ProcessStacks {
 public:
  // `keeps_all`: for kept().
  explicit ProcessStacks(bool keeps_all) : keeps_all_(keeps_all) {}

  // Reads the files of the process, which takes as long as they are large, and gives it the tables.
  // Before its probes are armed.
  Expected<void> share(inline_::Attachment& attachment);
  // The process has other code than before.
  void look_at(pid_t pid) {
    if (tables_) tables_->look_at(pid);
  }
  // The child has all of its parent's.
  void add_child(pid_t parent, pid_t child) {
    if (tables_) spaces_.fork(parent, child);
  }
  // Once in a while: what was read beside.
  void update() {
    if (tables_) tables_->update();
  }

  aggregate::Stack named(std::span<const uint64_t> words) {
    return keeps_all_ ? kept_.named_now(words, names_) : names_.named(words);
  }
  // What was known of all that were named.
  [[nodiscard]] const output::KeptStacks& kept() const { return kept_; }

 private:
  Expected<std::span<uint8_t>> make_memory(size_t size_bytes);

  FileDescriptor file_;
  kernel::Mapping memory_;
  target::AddressSpaces spaces_;
  target::LiveSymbolizer symbols_{spaces_, 0, true};
  output::StackNames names_{symbols_};
  bool keeps_all_;
  output::KeptStacks kept_;
  std::unique_ptr<kernel::UserStacks> tables_;  // Last: it has threads that use the rest.
};

}  // namespace clew::engine
