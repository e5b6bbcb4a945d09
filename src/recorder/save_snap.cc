// SPDX-License-Identifier: Apache-2.0
#include "recorder/save_snap.h"

#include <algorithm>
#include <cerrno>
#include <string_view>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_text.h"

namespace clew::recorder {

namespace {

// A link to nothing is there, too.
bool is_there(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0;
}

std::string path_of(const std::string& folder, const Snap& snap, unsigned number) {
  std::string path(snap.command.empty() ? "process" : file_of(snap.command.front()));
  if (number > 0) path += fmt::format("-{}", snap.pid);
  if (number > 1) path += fmt::format("-{}", number - 1);
  path += ".snap";
  // It may be another's, and is printed.
  std::replace_if(
      path.begin(), path.end(), [](char c) { return (c >= 0 && c < ' ') || c == 127; }, '_');
  return folder == "." ? path : fmt::format("{}/{}", folder, path);
}

}  // namespace

Expected<void> check_snap_folder(const std::string& folder) {
  struct stat status {};
  const bool is_there = stat(folder.c_str(), &status) == 0;
  if (is_there && !S_ISDIR(status.st_mode)) {
    return fail(ErrorCode::Refused, fmt::format("{} is no folder for snaps", folder));
  }
  if (is_there && access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return fail(ErrorCode::Io,
              fmt::format("no snap can be written into {}: {}",
                          folder == "." ? "this folder" : folder, error_text(errno)));
}

Expected<std::string> save_snap(const std::string& folder, const Snap& snap) {
  constexpr unsigned kNamesMax = 1000;
  for (unsigned i = 0;; ++i) {
    const std::string path = path_of(folder, snap, i);
    if (is_there(path) && i < kNamesMax) continue;
    const Expected<void> written = write_snap(path, snap);
    if (written) return path;
    if (is_there(path) && i < kNamesMax) continue;
    return tl::unexpected(written.error());
  }
}

}  // namespace clew::recorder
