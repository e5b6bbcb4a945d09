// SPDX-License-Identifier: Apache-2.0
// Files of what a node has counted and nobody has said is safe, where that is too much for its
// memory. They outlive the node: the next one with this folder sends what the one before left.
//
// A file has some partials, one behind the other: u32 size (little endian; with its highest bit the
// partial is not wanted any more), then a Spilled message with its CRC. It goes with the last one
// that is wanted. A process that is killed loses nothing of a
// file, a machine that stops may: nothing waits for the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file_descriptor.h"
#include "cluster/message.h"

namespace clew::cluster {

class SpillFolder;

class SpillFile {
 public:
  SpillFile(SpillFolder& folder, std::string path, uint64_t bytes)
      : folder_(folder), path_(std::move(path)), bytes_(bytes) {}
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;
  // The file stays, but for one that was removed.
  ~SpillFile() = default;

  // The table of the partial that begins there. Io: it is not as it was written.
  [[nodiscard]] Expected<Bytes> table_at(uint64_t offset) const;
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  // It is safe, or in another one: nobody who finds the file is to send it.
  void forget(uint64_t offset) const;
  void remove();

 private:
  SpillFolder& folder_;
  std::string path_;
  uint64_t bytes_;
};

// Where a partial is in a file.
struct SpilledAt {
  Pane pane = 0;
  uint64_t offset = 0;
};

// Whose partials they are.
struct SpillOwner {
  std::string tenant{};
  std::string node{};
  std::string query{};
  uint64_t revision = 0;
  Incarnation incarnation{};
  bool operator==(const SpillOwner&) const = default;
};

inline bool is_of(const SpillOwner& owner, const std::string& query, uint64_t revision) {
  return owner.query == query && owner.revision == revision;
}

// What a node that has gone has left in one file, of one query.
struct LeftFile {
  SpillOwner owner;
  std::shared_ptr<SpillFile> file;
  std::vector<SpilledAt> partials;
};

class SpillFolder {
 public:
  // The folder is made, if it is not there. Refused: another node has it. Io: the system says no.
  static Expected<std::unique_ptr<SpillFolder>> open(const std::string& path, uint64_t bytes_max);
  SpillFolder(std::string path, uint64_t bytes_max, FileDescriptor lock)
      : path_(std::move(path)), bytes_max_(bytes_max), lock_(std::move(lock)) {}

  // What is there now, oldest first; once, before anything is written. Files that are no such files
  // are left alone, and of one that ends early what is whole is given.
  Expected<std::vector<LeftFile>> take_left();

  // A new file with these partials, which are of one query. Limit: all files together would have
  // more than the folder may. Io: the system says no. Then there is no file.
  Expected<std::shared_ptr<SpillFile>> write(const std::vector<Spilled>& partials,
                                             std::vector<SpilledAt>& places);
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  // Files that take_left() could not read from their begin.
  [[nodiscard]] size_t unreadable() const { return unreadable_; }

 private:
  friend class SpillFile;

  std::string path_;
  uint64_t bytes_max_;
  FileDescriptor lock_;
  uint64_t bytes_ = 0;
  uint64_t number_ = 0;  // Of the next file.
  size_t unreadable_ = 0;
};

}  // namespace clew::cluster
