// SPDX-License-Identifier: Apache-2.0
// Which file it is, as long as somebody holds it open. It is no proof of its content: a file system
// of a user's own may say what it likes, once no other file has its numbers any more.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace clew::target {

// Which file it is. Another that lives at the same time differs in device or inode; one that came
// later in its place, or was changed, in the times (the change time cannot be set back by
// utimensat).
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size_bytes = 0;
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;
  auto operator<=>(const FileIdentity&) const = default;
};

// Of what lies at a path now; nothing when nothing does.
std::optional<FileIdentity> identity_at(const std::string& path);

}  // namespace clew::target
