// SPDX-License-Identifier: Apache-2.0
// The folder of the ledger: a file of lines that grows at its end, the one before it, and a small
// file for each session that runs, which its process keeps locked.
//
//     sessions.jsonl      a line is one write(2) at the end, so those of several Clews are whole
//     sessions.jsonl.1    what was there before it had kFileBytesMax
//     running/SESSION     the line by which it began; locked (fcntl(2)) until its process is gone
//
// The kernel lets go of a lock when its process ends, however that happens: who finds a file there
// that is not locked knows that its session was killed, whatever pids are used for since.
//
// Nothing that others can write is trusted: folder and files are those of the user that we are, are
// not reached by symbolic links, and no other name leads to them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file_descriptor.h"

namespace clew::ledger {

inline constexpr const char* kSessionsFile = "sessions.jsonl";
inline constexpr const char* kOlderFile = "sessions.jsonl.1";
inline constexpr const char* kRunningFolder = "running";
inline constexpr uint64_t kFileBytesMax = uint64_t{16} << 20;

// The mark of a session that runs. It is taken away with the object, or by the kernel's lock left
// to be found.
class RunningMark {
 public:
  RunningMark() = default;
  RunningMark(FileDescriptor folder, FileDescriptor file, std::string name)
      : folder_(std::move(folder)), file_(std::move(file)), name_(std::move(name)) {}
  RunningMark(RunningMark&&) noexcept = default;
  RunningMark& operator=(RunningMark&& other) noexcept;
  RunningMark(const RunningMark&) = delete;
  RunningMark& operator=(const RunningMark&) = delete;
  ~RunningMark() { remove(); }

  void remove();

 private:
  FileDescriptor folder_;
  FileDescriptor file_;
  std::string name_;
};

class Folder {
 public:
  // Makes it where it is missing: for root as Debian's logs are, readable for the group adm, else
  // for its user alone. Errors: Io, Refused; they name the path.
  static Expected<Folder> open(const std::string& path, uint64_t file_bytes_max = kFileBytesMax);

  // `line` ends by a newline. Errors: Io; a full disk may have taken a part of it, which no reader
  // takes for a line.
  Expected<void> append(std::string_view line);
  // `line`: what is found if it is killed.
  Expected<RunningMark> mark_running(const std::string& session, std::string_view line);
  // The lines of sessions whose processes are gone, and which nobody has taken yet.
  std::vector<std::string> take_killed();

 private:
  Folder(std::string path, FileDescriptor descriptor, uint64_t file_bytes_max)
      : path_(std::move(path)),
        descriptor_(std::move(descriptor)),
        file_bytes_max_(file_bytes_max) {}

  Expected<FileDescriptor> open_file();
  Expected<FileDescriptor> open_running();
  void rotate(uint64_t line_bytes);

  std::string path_;
  FileDescriptor descriptor_;
  uint64_t file_bytes_max_;
};

}  // namespace clew::ledger
