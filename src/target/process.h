// SPDX-License-Identifier: Apache-2.0
// What /proc says about processes: who they are, their threads, their memory map, the modules they
// have mapped, and the facts on which Clew refuses to touch one.
//
// Everything here is a snapshot that may be out of date when it is returned: a process can exit or
// exec at any moment, and its pid can be used again. `Incarnation` tells two holders of a pid
// apart. All text in /proc that a process can choose (comm, command line, paths) is hostile: it is
// parsed by position, never trusted for length, and may hold any byte but NUL.
//
// Functions are free of state and safe from any thread. Errors: NotFound when the process or thread
// is gone or never was, Io when the system said no (mostly EACCES: another user's process).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/error.h"

namespace clew::target {

class Pattern;

// One life of a pid: equal for two looks exactly when no other process has had the pid in between.
// (After exec it is still the same incarnation; compare the executable's path or the map for that.)
struct Incarnation {
  pid_t pid = 0;
  uint64_t start_ticks = 0;  // /proc/PID/stat field 22: clock ticks after boot.
  bool operator==(const Incarnation&) const = default;
};

// R running, S sleeping, D disk sleep, T stopped, t traced, Z zombie, X dead, I idle (proc(5)).
using ProcessState = char;

// Which life of a pid there is, and the state of its first thread: of /proc/PID/stat alone, so that
// no file or memory of the process can keep the reader waiting.
struct Life {
  Incarnation incarnation;
  ProcessState state = 'R';
};

Expected<Life> read_life(pid_t pid);

struct Process {
  Incarnation incarnation;
  pid_t parent_pid = 0;
  uid_t uid = 0;                       // Effective.
  std::string comm;                    // At most 15 bytes; chosen by the process.
  std::vector<std::string> arguments;  // The command line; empty for kernel threads and zombies.
  std::string executable;  // Where /proc/PID/exe leads; empty when it may not be read. A deleted
                           // file keeps the kernel's " (deleted)".
  ProcessState state = 'R';

  [[nodiscard]] pid_t pid() const { return incarnation.pid; }
};

Expected<Process> read_process(pid_t pid);

// The file name by which its program was started: the link's, when that was one (redis-server,
// which leads to redis-check-rdb; the shells of a busybox). Else the executable's, or comm where
// that may not be read.
std::string program_name(const Process& process);

// Every process that is there, by pid; kernel threads are left out. A process that goes while the
// list is made is left out too.
Expected<std::vector<Process>> list_processes();

// The same without those of the calling program: one that traces others is not what is looked for.
Expected<std::vector<Process>> list_others();

// Those whose comm, executable's file name, or first argument's file name matches the pattern
// (`*`, `?`, `[..]`). The calling process is left out. No match is an empty list; InvalidQuery for
// a broken pattern.
Expected<std::vector<Process>> find_processes(std::string_view pattern);

// Whether comm, the executable's file name, or the first argument's file name matches.
bool is_called(const Process& process, const Pattern& pattern);

// Whether it runs the program that calls this.
bool is_of_this_program(pid_t pid);

// Those that have mapped the code of a file whose name the pattern matches, as Catalog means it: of
// the program, what it was called, too. Processes of the calling program are left out: one that
// traces others has their arenas in its memory. Errors as above.
Expected<std::vector<pid_t>> find_processes_with(std::string_view module_pattern);

// The thread through which a process's memory can be seen: its first, or another one when that has
// ended.
pid_t memory_holder(pid_t pid);

// Thread ids, ascending; the first thread's is the pid.
Expected<std::vector<pid_t>> list_threads(pid_t pid);

// What decides whether Clew may and can instrument a process.
struct ProcessFacts {
  enum class Seccomp : uint8_t { Off, Strict, Filter };

  Incarnation incarnation;
  ProcessState state = 'R';
  uid_t uid = 0;              // Effective.
  uint64_t capabilities = 0;  // Effective, in its user namespace: bit n for capability n.
  pid_t tracer_pid = 0;       // Who ptraces it now; 0 = nobody.
  Seccomp seccomp = Seccomp::Off;
  bool is_32_bit = false;  // Its executable is an ELF32 file.
  bool no_new_privileges = false;
  bool has_shadow_stack = false;      // Returns are checked by the processor.
  std::vector<pid_t> namespace_pids;  // Its pid in each nested pid namespace, outermost first.
  std::string root;  // Where /proc/PID/root leads: "/" unless chrooted or contained.
};

Expected<ProcessFacts> read_facts(pid_t pid);
// How much of its memory the kernel keeps from being paged out (mlock(2), mlockall(2)).
Expected<uint64_t> read_locked_bytes(pid_t pid);
// The size of all its mappings that grow down (MAP_GROWSDOWN), the first stack among them.
Expected<uint64_t> read_growing_bytes(pid_t pid);
// Refused when its executable is an ELF32 file; what cannot be read is left to others.
Expected<void> check_is_64_bit(pid_t pid);

// One line of /proc/PID/maps.
struct Mapping {
  uint64_t start = 0;
  uint64_t end = 0;
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool shared = false;
  uint64_t file_offset = 0;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;
  std::string path;         // As the kernel shows it, without " (deleted)"; "[vdso]" and the like;
                            // empty for anonymous memory.
  bool is_deleted = false;  // The kernel appended " (deleted)".

  [[nodiscard]] uint64_t size_bytes() const { return end - start; }
  [[nodiscard]] bool contains(uint64_t address) const { return start <= address && address < end; }
};

// Whether a mapping is of the code of a file whose name the pattern matches, or by convention whose
// soname.
bool is_of_module(const Mapping& mapping, const Pattern& pattern);

// Ascending, not overlapping.
Expected<std::vector<Mapping>> read_memory_map(pid_t pid);
// The same from text. Fails at the first line that is not one the kernel writes.
Expected<std::vector<Mapping>> parse_memory_map(std::string_view text);

// A file that a process has mapped executable: one ELF object as the loader placed it.
struct ProcessModule {
  std::string path;        // As the process knows it, in its own root.
  std::string open_path;   // Opens the same file from here, also in a container or when it is
                           // deleted: below /proc/PID/root, /proc/PID/map_files or /proc/PID/exe.
  uint64_t load_bias = 0;  // Run-time address minus the file's virtual address, modulo 2^64.
  std::string build_id;    // Lower-case hex; empty when the file has none.
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;
  bool is_executable = false;  // The main program, not a library.
  bool is_deleted = false;
  std::vector<Mapping> executable_ranges;  // Ascending.
  std::string problem;  // Why the file cannot be read as ELF; empty when it can. The load bias and
                        // the build-id are then not known.

  [[nodiscard]] bool contains(uint64_t address) const;
};

// In order of address. The vdso is left out (it is the kernel's, and not a file). A file mapped
// twice at different biases gives two modules.
Expected<std::vector<ProcessModule>> read_modules(pid_t pid);

// Fills `bytes` from the process's memory at `address`; all or an error (Io). Needs the right to
// ptrace the process; does not stop it.
Expected<void> read_memory(pid_t pid, uint64_t address, std::span<uint8_t> bytes);

}  // namespace clew::target
