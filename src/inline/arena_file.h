// SPDX-License-Identifier: Apache-2.0
// The two files behind an arena (abi/arena.h): how the target makes them, how the tracer opens them
// and finds them again, and the tracer's mapping of one.
//
// The number of a descriptor says little: a process that shares the target's descriptors and not
// its memory runs while the target stands still, and may put another file there. So a file is
// looked at through O_PATH, which does nothing to it, and opened for writing when it can be ours.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "inline/stopped_target.h"
#include "target/process.h"

namespace clew::inline_ {

inline constexpr std::string_view kArenaName = "clew-arena";  // And that of the code file.
inline constexpr std::string_view kSlotsFileName = "clew-arena-slots";

// The tracer's mapping of all of a file, or a copy of something without a file.
class MappedFile {
 public:
  MappedFile() = default;
  static Expected<MappedFile> map(FileDescriptor file, uint64_t size);
  static Expected<MappedFile> without_file(uint64_t size);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  [[nodiscard]] int file() const { return file_.get(); }
  [[nodiscard]] bool has_file() const { return file_.valid(); }
  [[nodiscard]] uint8_t* base() const { return base_; }
  [[nodiscard]] uint64_t size() const { return size_; }

 private:
  FileDescriptor file_;
  uint8_t* base_ = nullptr;
  uint64_t size_ = 0;
};

// A descriptor of the target, which closes it again. Must not outlive the stop.
class RemoteDescriptor {
 public:
  RemoteDescriptor(StoppedTarget& target, uint64_t number) : target_(&target), number_(number) {}
  RemoteDescriptor(RemoteDescriptor&& other) noexcept
      : target_(std::exchange(other.target_, nullptr)), number_(other.number_) {}
  RemoteDescriptor& operator=(RemoteDescriptor&& other) noexcept;
  ~RemoteDescriptor() { close(); }
  void close();

  [[nodiscard]] uint64_t number() const { return number_; }

 private:
  StoppedTarget* target_;
  uint64_t number_;
};

struct SharedFile {
  RemoteDescriptor theirs;
  MappedFile ours;
};

// A new file of this size and name, sealed against any other size.
Expected<SharedFile> make_shared_file(StoppedTarget& target, std::string_view name, uint64_t size);

// What the target maps through the new descriptor of the file, it can never make writable. The
// target opens it in its /proc; where it has none, it gets the descriptor from us.
Expected<RemoteDescriptor> reopen_for_reading(StoppedTarget& target, const SharedFile& file);

// The memfd that the thread has just made, for reading and writing: empty, without a name in any
// folder, not sealed, of the thread's user. Whatever else has the number is refused and untouched.
Expected<FileDescriptor> open_new_file(pid_t tid, uint64_t descriptor, std::string_view name);

// The file behind a mapping of a process, for reading and writing: through the process, or through
// one of the holders, which may have a descriptor of it. None when we may not.
FileDescriptor open_file_of(pid_t pid, const target::Mapping& mapping,
                            std::span<const pid_t> holders);

// May we map it? A file that can shrink would be a SIGBUS for us whenever its owner likes; and it
// must be the target's own: made by it, or by root before it gave its rights away.
bool is_sealed_file_of(int file, pid_t pid);

}  // namespace clew::inline_
