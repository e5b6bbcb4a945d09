// SPDX-License-Identifier: Apache-2.0
#include "ledger/folder.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/error_text.h"

namespace clew::ledger {
namespace {

constexpr size_t kRunningMost = 4096;  // Files that are looked at.
constexpr size_t kMarkBytesMax = size_t{1} << 20;
constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;
constexpr mode_t kFileModeOfRoot = S_IRUSR | S_IWUSR | S_IRGRP;
constexpr mode_t kFileMode = S_IRUSR | S_IWUSR;

mode_t file_mode() {
  return geteuid() == 0 ? kFileModeOfRoot : kFileMode;
}

mode_t folder_mode() {
  return geteuid() == 0 ? mode_t{S_IRWXU | S_IRGRP | S_IXGRP} : mode_t{S_IRWXU};
}

// A folder that we have just made, whatever umask(2) is. Where there is no such group, it is ours
// alone.
void set_readers(int descriptor, mode_t mode) {
  constexpr const char* kReaders = "adm";
  std::array<char, 4096> words{};
  group one{};
  group* found = nullptr;
  const bool is_root = geteuid() == 0;
  if (is_root) (void)getgrnam_r(kReaders, &one, words.data(), words.size(), &found);
  const bool is_theirs = found != nullptr && fchown(descriptor, 0, found->gr_gid) == 0;
  (void)fchmod(descriptor, is_theirs || !is_root ? mode : mode & ~mode_t{S_IRWXG});
}

// A file that we have just made is for those who may read the folder.
void set_readers_of(int file, int folder) {
  struct stat status {};
  if (fstat(folder, &status) == 0) (void)!fchown(file, static_cast<uid_t>(-1), status.st_gid);
  (void)fchmod(file, file_mode());
}

tl::unexpected<Error> system_said(const std::string& path, int error) {
  return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(error)));
}

Expected<void> check_is_ours(int descriptor, const std::string& path) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) return system_said(path, errno);
  const bool is_folder = S_ISDIR(status.st_mode);
  if (!is_folder && (!S_ISREG(status.st_mode) || status.st_nlink > 1))
    return fail(ErrorCode::Refused, fmt::format("{} is no file that has one name alone", path));
  if (status.st_uid == geteuid() && (status.st_mode & kOthersWrite) == 0) return {};
  return fail(ErrorCode::Refused, fmt::format("others may write {}", path));
}

Expected<FileDescriptor> open_folder(int at, const std::string& name, const std::string& path) {
  const bool is_made = mkdirat(at, name.c_str(), S_IRWXU) == 0;
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  FileDescriptor folder(openat(at, name.c_str(), kFlags));
  if (!folder.valid()) return system_said(path, errno);
  CLEW_TRY(check_is_ours(folder.get(), path));
  if (is_made) set_readers(folder.get(), folder_mode());
  return folder;
}

std::vector<std::string> names_in(int folder) {
  std::vector<std::string> names;
  const int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(fdopendir(copy), closedir);
  if (listing == nullptr) return names;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody else has this listing.
  while (const dirent* const entry = readdir(listing.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
    if (names.size() == kRunningMost) break;
  }
  return names;
}

struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

std::string read_mark(int descriptor) {
  std::string text(kMarkBytesMax, '\0');
  const ssize_t count = pread(descriptor, text.data(), text.size(), 0);
  text.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

// A session of our own process is never found dead: its lock would be given to us, and closing the
// file would take it away.
bool is_own(const std::string& session) {
  return session.ends_with(fmt::format("-{:x}", getpid()));
}

}  // namespace

RunningMark& RunningMark::operator=(RunningMark&& other) noexcept {
  if (this == &other) return *this;
  remove();
  folder_ = std::move(other.folder_);
  file_ = std::move(other.file_);
  name_ = std::move(other.name_);
  return *this;
}

void RunningMark::remove() {
  if (!file_.valid()) return;
  (void)unlinkat(folder_.get(), name_.c_str(), 0);
  file_.reset();
}

Expected<Folder> Folder::open(const std::string& path, uint64_t file_bytes_max) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::filesystem::create_directories(parent, error);
  FileDescriptor folder = CLEW_TRY(open_folder(AT_FDCWD, path, path));
  return Folder(path, std::move(folder), file_bytes_max);
}

Expected<FileDescriptor> Folder::open_file() {
  const std::string path = fmt::format("{}/{}", path_, kSessionsFile);
  // Also of a pipe that somebody put there nobody is waited for.
  constexpr int kFlags = O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  FileDescriptor file(openat(descriptor_.get(), kSessionsFile, kFlags));
  if (!file.valid() && errno == ENOENT) {
    file = FileDescriptor(
        openat(descriptor_.get(), kSessionsFile, kFlags | O_CREAT | O_EXCL, kFileMode));
    if (file.valid()) set_readers_of(file.get(), descriptor_.get());
    // Another one was faster.
    if (!file.valid() && errno == EEXIST)
      file = FileDescriptor(openat(descriptor_.get(), kSessionsFile, kFlags));
  }
  if (!file.valid()) return system_said(path, errno);
  CLEW_TRY(check_is_ours(file.get(), path));
  return file;
}

// By one at a time. Where another does it now, or keeps us from it, the file grows a little more.
void Folder::rotate(uint64_t line_bytes) {
  if (flock(descriptor_.get(), LOCK_EX | LOCK_NB) != 0) return;
  struct stat status {};
  const bool is_full =
      fstatat(descriptor_.get(), kSessionsFile, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      static_cast<uint64_t>(status.st_size) + line_bytes > file_bytes_max_;
  if (is_full) (void)renameat(descriptor_.get(), kSessionsFile, descriptor_.get(), kOlderFile);
  (void)flock(descriptor_.get(), LOCK_UN);
}

Expected<void> Folder::append(std::string_view line) {
  FileDescriptor file = CLEW_TRY(open_file());
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return system_said(path_, errno);
  if (status.st_size != 0 &&
      static_cast<uint64_t>(status.st_size) + line.size() > file_bytes_max_) {
    rotate(line.size());
    file = CLEW_TRY(open_file());
    if (fstat(file.get(), &status) != 0) return system_said(path_, errno);
  }
  // Behind a line of which the disk took a part.
  char last = '\n';
  if (status.st_size != 0) (void)pread(file.get(), &last, 1, status.st_size - 1);
  const std::string text = (last == '\n' ? "" : "\n") + std::string(line);
  const ssize_t count = write(file.get(), text.data(), text.size());
  const std::string path = fmt::format("{}/{}", path_, kSessionsFile);
  if (count < 0) return system_said(path, errno);
  if (static_cast<size_t>(count) != text.size()) return system_said(path, ENOSPC);
  return {};
}

Expected<FileDescriptor> Folder::open_running() {
  return open_folder(descriptor_.get(), kRunningFolder,
                     fmt::format("{}/{}", path_, kRunningFolder));
}

Expected<RunningMark> Folder::mark_running(const std::string& session, std::string_view line) {
  FileDescriptor folder = CLEW_TRY(open_running());
  const std::string path = fmt::format("{}/{}/{}", path_, kRunningFolder, session);
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  // Who looks at it before it has its lock takes it for that of a killed one: it gets its name with
  // the lock.
  const std::string temporary = "." + session;
  FileDescriptor file(openat(folder.get(), temporary.c_str(), kFlags, kFileMode));
  if (!file.valid()) return system_said(path, errno);
  set_readers_of(file.get(), folder.get());
  struct flock lock = whole_file();
  const ssize_t count = write(file.get(), line.data(), line.size());
  const int problem = count < 0 ? errno : ENOSPC;
  const bool is_written = static_cast<size_t>(count) == line.size();
  if (is_written && fcntl(file.get(), F_SETLK, &lock) == 0 &&
      renameat(folder.get(), temporary.c_str(), folder.get(), session.c_str()) == 0)
    return RunningMark(std::move(folder), std::move(file), session);
  const int error = is_written ? errno : problem;
  (void)unlinkat(folder.get(), temporary.c_str(), 0);
  return system_said(path, error);
}

std::vector<std::string> Folder::take_killed() {
  std::vector<std::string> lines;
  const auto folder = open_running();
  if (!folder) return lines;
  for (const std::string& name : names_in(folder->get())) {
    if (is_own(name)) continue;
    constexpr int kFlags = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    const FileDescriptor file(openat(folder->get(), name.c_str(), kFlags));
    if (!file.valid() || !check_is_ours(file.get(), name)) continue;
    struct flock lock = whole_file();
    if (fcntl(file.get(), F_SETLK, &lock) != 0) continue;
    std::string line = read_mark(file.get());
    // Who takes the name away has taken it.
    if (unlinkat(folder->get(), name.c_str(), 0) == 0) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace clew::ledger
