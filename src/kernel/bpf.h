// SPDX-License-Identifier: Apache-2.0
// The kernel's bpf(2), as far as D sessions use it, and mappings of its maps. Without libbpf: what
// a session loads is no object file but made in memory, and attach points newer than Debian 12's
// libbpf are needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "isa/program.h"

namespace clew::kernel {

// Memory shared with the kernel; unmapped at the end.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  static Expected<Mapping> make(const FileDescriptor& file, size_t size_bytes, bool is_writable,
                                size_t offset_bytes = 0);
  [[nodiscard]] uint8_t* data() const { return data_; }
  [[nodiscard]] size_t size_bytes() const { return size_bytes_; }

 private:
  uint8_t* data_ = nullptr;
  size_t size_bytes_ = 0;
};

// An array of one element of `size_bytes`, which programs address directly and we can map.
Expected<FileDescriptor> create_array(const std::string& name, size_t size_bytes);
// The same, filled, which nobody can change: what a program loads from it is a constant to the
// verifier, which looks at no path that the constant rules out.
Expected<FileDescriptor> create_constants(const std::string& name, std::span<const uint8_t> bytes);
// A hash that forgets what was not used for long when it is full.
Expected<FileDescriptor> create_hash(const std::string& name, size_t key_bytes, size_t value_bytes,
                                     uint32_t entries);
// Memory that the kernel keeps with each thread, from when a program first asks for it.
Expected<FileDescriptor> create_thread_storage(const std::string& name, size_t value_bytes);
Expected<FileDescriptor> create_ring(const std::string& name, size_t size_bytes);

enum class ProgramType : uint8_t {
  RawTracepoint,
  TraceEvent,
  PerfEvent,
  SingleProbe,  // A kprobe or uprobe that is a perf event.
  UserProbeMulti,
  KernelProbeMulti,
  FunctionExit,     // Image::attach_type says of which,
  TypedTracepoint,  // and here: arguments that the verifier knows, which can be read directly.
};

// Code and types as the kernel takes them (link.h makes them).
struct Image {
  std::string name;
  ProgramType type = ProgramType::RawTracepoint;
  std::vector<isa::Instruction> code;
  std::vector<uint8_t> types;           // BTF
  std::vector<uint32_t> function_info;  // Pairs: instruction, type
  uint32_t attach_type = 0;  // Of what it is made for: its number among the kernel's types; or 0.
};

// Refused: the message has the verifier's reason in short; `log`, if not null, gets all its words.
Expected<FileDescriptor> load_image(const Image& image, std::string* log);

// Runs a RawTracepoint program here and now, with its context's first word. Its result. NotFound:
// this thread cannot run on `only_cpu`.
Expected<uint32_t> run_program(const FileDescriptor& program, uint64_t argument,
                               std::optional<uint64_t> only_cpu = std::nullopt);

// How often the kernel left a program out because it ran already on that CPU.
uint64_t recursion_misses(const FileDescriptor& program);

// errno's text for a failed bpf(2), with what it commonly means there.
std::string bpf_error(int error);

// bpf(2) itself; `attributes` is a struct of the kernel's layout. -errno when it fails.
int64_t call_bpf(int command, void* attributes, size_t size_bytes);

}  // namespace clew::kernel
