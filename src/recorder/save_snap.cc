// SPDX-License-Identifier: Apache-2.0
#include "recorder/save_snap.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"

namespace clew::recorder {

namespace {

// A link to nothing is there, too.
bool is_there(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0;
}

// Makes a file, since rights alone do not say whether that can be done: root has all in /proc. It
// has no name where the file system can do without. 0, or errno.
int try_to_write(const std::string& folder) {
  constexpr mode_t kOwnerOnly = 0600;
  const FileDescriptor nameless(open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kOwnerOnly));
  struct stat status {};
  if (stat(folder.c_str(), &status) != 0) return errno;
  if (status.st_nlink == 0) return ENOENT;  // It was removed, and we are still in it.
  if (nameless.valid()) return 0;
  const std::string path = fmt::format("{}/.clew-record-{}", folder, getpid());
  constexpr int kNew = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  const FileDescriptor named(open(path.c_str(), kNew, kOwnerOnly));
  if (!named.valid()) return errno;
  (void)unlink(path.c_str());
  return 0;
}

// Letters, digits, and what is no sign of a shell: processes choose their names, and ours are
// printed, and typed. Bytes of other alphabets stay.
bool is_plain(char c) {
  constexpr std::string_view kPlain = "._-+@=,%";
  return c < 0 || std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         kPlain.find(c) != std::string_view::npos;
}

std::string name_of(const Snap& snap) {
  std::string name(snap.command.empty() ? "" : file_of(snap.command.front()));
  while (name.ends_with(' '))
    name.pop_back();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !is_plain(c); }, '_');
  name.erase(0, std::min(name.find_first_not_of("-."), name.size()));
  return name.empty() ? "process" : name;
}

std::string path_of(const std::string& folder, const Snap& snap, unsigned number) {
  std::string path = name_of(snap);
  if (number > 0) path += fmt::format("-{}", snap.pid);
  if (number > 1) path += fmt::format("-{}", number - 1);
  path += ".snap";
  return folder == "." ? path : fmt::format("{}/{}", folder, path);
}

}  // namespace

Expected<void> check_snap_folder(const std::string& folder) {
  struct stat status {};
  const bool is_there = stat(folder.c_str(), &status) == 0;
  if (is_there && !S_ISDIR(status.st_mode)) {
    return fail(ErrorCode::Refused, fmt::format("{} is no folder for snaps", folder));
  }
  const int error = is_there ? try_to_write(folder) : errno;
  if (error == 0) return {};
  return fail(
      ErrorCode::Io,
      fmt::format("no snap can be written into {}: {}", folder == "." ? "this folder" : folder,
                  is_there && error == ENOENT ? "it takes no files" : error_text(error)));
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
