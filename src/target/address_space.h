// SPDX-License-Identifier: Apache-2.0
// Where code lies, or lay, in processes, so that addresses of a process can be looked up when it
// has ended: its executable mappings and their files, which are kept open. A process has one
// address space after the other (exec, or another process with its pid); an address is looked up in
// the newest that has it.
//
// Who hears of changes tells them (fork, exec, map); who does not calls look_at, which reads
// /proc. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "target/process.h"

namespace clew::target {

// A file, or the vDSO. Lives as long as the AddressSpaces.
struct CodeFile {
  std::string path;       // As the process knows it.
  std::string name;       // Without folders: what answers call it.
  std::string open_path;  // Opens the very file from here, as long as this lives; empty: none does.
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;
  uint64_t size_bytes = 0;
  FileDescriptor descriptor;
};

struct CodeRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t file_offset = 0;        // Of `begin`.
  uint64_t load_bias = 0;          // Run-time address minus the file's.
  const CodeFile* file = nullptr;  // Null for memory without a file that can be read as ELF.
  bool operator==(const CodeRange&) const = default;
};

struct AddressSpace {
  pid_t pid = 0;
  std::vector<CodeRange> ranges;  // By address, not overlapping.
  std::vector<CodeRange> former;  // Of files: what look_at() found gone, in the order of going.
  const CodeFile* program = nullptr;
  std::string program_name;  // What the user calls the main program.
  bool has_ended = false;

  // Of now, or else the last that was there. Null when none has the address.
  [[nodiscard]] const CodeRange* find(uint64_t address) const;
  [[nodiscard]] const std::string& name_of(const CodeFile& file) const {
    return &file == program ? program_name : file.name;
  }
};

class AddressSpaces {
 public:
  AddressSpaces();
  AddressSpaces(const AddressSpaces&) = delete;
  AddressSpaces& operator=(const AddressSpaces&) = delete;
  ~AddressSpaces();

  // Reads the process's mappings now. The space that it has is brought up to date, or a new one is
  // made when it has none or, by its program, another one runs. NotFound when it is gone.
  Expected<const AddressSpace*> look_at(pid_t pid);

  // What happened: pid has a copy of its parent's space, an empty one, one more mapping in the
  // place of what was there. A parent that is not known: the child is looked at.
  void fork(pid_t parent, pid_t child);
  void exec(pid_t pid);
  void map(pid_t pid, const Mapping& mapping);
  // The process ended: its spaces may be forgotten when there are too many.
  void end(pid_t pid);

  // Processes whose end was not told.
  [[nodiscard]] std::vector<pid_t> living() const;
  // The newest of the process; null when none is known.
  [[nodiscard]] const AddressSpace* find(pid_t pid) const;
  // The newest of the process that has the address.
  [[nodiscard]] const AddressSpace* find(pid_t pid, uint64_t address) const;

 private:
  using Space = std::unique_ptr<AddressSpace>;
  AddressSpace& add(pid_t pid);
  const CodeFile* file_of(pid_t pid, const Mapping& mapping, std::string_view executable);
  CodeRange range_of(pid_t pid, const Mapping& mapping, std::string_view executable);
  void name_program(AddressSpace& space, pid_t pid, std::string_view executable);

  struct KnownFile;
  std::vector<std::unique_ptr<KnownFile>> files_;
  std::map<pid_t, std::vector<Space>> spaces_;  // Oldest first.
  std::deque<pid_t> ended_;
};

// The vDSO's image, as this process has it; empty without one.
std::vector<uint8_t> read_vdso();

}  // namespace clew::target
