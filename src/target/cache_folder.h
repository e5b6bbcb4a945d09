// SPDX-License-Identifier: Apache-2.0
// The folder of what analyses have found, for the next time. What lies there decides where bytes of
// processes are changed, so it is used only when nobody but its owner, who is this user, can have
// written it: the folder and its files belong to the effective user, and have no permission for
// anybody else. $HOME may be another user's (sudo -E): what lies there is then as good as none.
// What a file stands for is its reader's to check (read_log.h). Best effort: nothing here is an
// error.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_descriptor.h"

namespace clew::target {

class CacheFolder {
 public:
  static constexpr uint64_t kMaxBytes = uint64_t{512} << 20;  // Of all files together.

  explicit CacheFolder(std::string path, uint64_t bytes_max = kMaxBytes)
      : path_(std::move(path)), bytes_max_(bytes_max) {}

  struct File {
    FileDescriptor descriptor;
    uint64_t size_bytes = 0;
  };
  // For reading; it counts as used now. Nothing when there is none that is to be trusted.
  [[nodiscard]] std::optional<File> open(const std::string& name) const;
  // What `write` writes to the descriptor becomes the file, whole or not at all. Then those that
  // were not used for the longest time go, until the rest have room.
  void store(const std::string& name, const std::function<bool(int)>& write) const;

 private:
  [[nodiscard]] FileDescriptor open_folder() const;
  void trim(int folder) const;

  std::string path_;
  uint64_t bytes_max_;
};

// A file of blocks: size in bytes (8), checksum (8), content; packed. A block is written from and
// read into the array itself, so a large one is never in memory twice. The checksum is against
// damage, not against malice.
class BlockWriter {
 public:
  explicit BlockWriter(int fd) : fd_(fd) {}

  void write(std::span<const uint8_t> bytes);
  void add(std::span<const uint8_t> content);
  template <typename T>
  void add(const std::vector<T>& records) {
    static_assert(std::is_trivially_copyable_v<T>);
    add({reinterpret_cast<const uint8_t*>(records.data()), records.size() * sizeof(T)});
  }
  void add(std::string_view text) {
    add({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }
  [[nodiscard]] bool good() const { return good_; }

 private:
  int fd_;
  bool good_ = true;
};

class BlockReader {
 public:
  BlockReader(int fd, uint64_t size_bytes) : fd_(fd), remaining_(size_bytes) {}

  bool read_bytes(std::span<uint8_t> bytes);
  template <typename Container>
  bool read(Container& records) {
    using Record = typename Container::value_type;
    static_assert(std::is_trivially_copyable_v<Record>);
    const auto head = read_head(sizeof(Record));
    if (!head) return false;
    records.resize(head->size_bytes / sizeof(Record));
    return read_content({reinterpret_cast<uint8_t*>(records.data()), head->size_bytes}, *head);
  }
  [[nodiscard]] bool at_end() const { return remaining_ == 0; }

 private:
  struct Head {
    uint64_t size_bytes = 0;
    uint64_t checksum = 0;
  };
  std::optional<Head> read_head(uint64_t record_bytes);
  bool read_content(std::span<uint8_t> bytes, const Head& head);

  int fd_;
  uint64_t remaining_;
};

}  // namespace clew::target
