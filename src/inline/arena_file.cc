// SPDX-License-Identifier: Apache-2.0
#include "inline/arena_file.h"

#include <array>
#include <cerrno>
#include <optional>
#include <string>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error_text.h"
#include "inline/file_size_limit.h"
#include "inline/shared_parts.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020
#endif

namespace clew::inline_ {
namespace {

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

Expected<void> write_text(StoppedTarget& target, uint64_t address, const std::string& text) {
  return target.write(address, {reinterpret_cast<const uint8_t*>(text.c_str()), text.size() + 1});
}

Expected<RemoteDescriptor> create_file(StoppedTarget& target, std::string_view name) {
  const uint64_t text = CLEW_TRY(target.scratch());
  CLEW_TRY(write_text(target, text, std::string(name)));
  // The flag MFD_EXEC is needed where vm.memfd_noexec is set, and unknown to kernels before 6.3.
  const uint64_t flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const RemoteCall call = {.number = SYS_memfd_create, .arguments = {text, flags | MFD_EXEC}};
  const int64_t fd = CLEW_TRY(target.call(call));
  if (fd >= 0) return RemoteDescriptor(target, static_cast<uint64_t>(fd));
  return RemoteDescriptor(
      target, CLEW_TRY(target.checked_call(
                  "memfd_create", {.number = SYS_memfd_create, .arguments = {text, flags}})));
}

std::optional<struct stat> stat_of(const FileDescriptor& file) {
  struct stat info = {};
  if (!file.valid() || fstat(file.get(), &info) != 0) return std::nullopt;
  return info;
}

// The same file for reading and writing.
FileDescriptor open_again(const FileDescriptor& place) {
  return FileDescriptor(
      open(fmt::format("/proc/self/fd/{}", place.get()).c_str(), O_RDWR | O_CLOEXEC));
}

bool has_name(const FileDescriptor& file, std::string_view name) {
  std::array<char, 64> link{};
  const std::string path = fmt::format("/proc/self/fd/{}", file.get());
  const ssize_t length = readlink(path.c_str(), link.data(), link.size());
  return length > 0 && std::string_view(link.data(), static_cast<size_t>(length)) ==
                           fmt::format("/memfd:{} (deleted)", name);
}

bool is_new_file_of(const FileDescriptor& place, pid_t tid, std::string_view name) {
  const auto info = stat_of(place);
  const auto facts = target::read_facts(tid);
  return info && facts && S_ISREG(info->st_mode) && info->st_size == 0 && info->st_nlink == 0 &&
         info->st_uid == facts->uid && has_name(place, name);
}

bool is_unsealed(const FileDescriptor& file) {
  const int seals = fcntl(file.get(), F_GET_SEALS);
  return seals >= 0 && (seals & ~F_SEAL_EXEC) == 0;
}

FileDescriptor open_inode(const std::string& path, uint64_t inode) {
  const FileDescriptor place(open(path.c_str(), O_PATH | O_CLOEXEC));
  const auto info = stat_of(place);
  if (!info || !S_ISREG(info->st_mode) || info->st_ino != inode) return {};
  return open_again(place);
}

// Among the descriptors of a process.
FileDescriptor open_from(pid_t holder, uint64_t inode) {
  const std::string folder = fmt::format("/proc/{}/fd", holder);
  DIR* const listing = opendir(folder.c_str());
  if (listing == nullptr) return {};
  FileDescriptor found;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is our own.
  while (const dirent* entry = readdir(listing)) {
    found = open_inode(fmt::format("{}/{}", folder, entry->d_name), inode);
    if (found.valid()) break;
  }
  closedir(listing);
  return found;
}

}  // namespace

Expected<MappedFile> MappedFile::map(FileDescriptor file, uint64_t size) {
  const int flags = file.valid() ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* const at =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, file.get(), 0);
  if (at == MAP_FAILED) {
    return fail(ErrorCode::Io, fmt::format("mapping the arena: {}", error_text(errno)));
  }
  (void)madvise(at, size, MADV_DONTDUMP);
  (void)madvise(at, size, MADV_DONTFORK);  // Whoever maps an arena is taken for traced.
  MappedFile mapped;
  mapped.file_ = std::move(file);
  mapped.base_ = static_cast<uint8_t*>(at);
  mapped.size_ = size;
  return mapped;
}

Expected<MappedFile> MappedFile::without_file(uint64_t size) {
  return map(FileDescriptor(), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : file_(std::move(other.file_)),
      base_(std::exchange(other.base_, nullptr)),
      size_(other.size_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    if (base_ != nullptr) munmap(base_, size_);
    file_ = std::move(other.file_);
    base_ = std::exchange(other.base_, nullptr);
    size_ = other.size_;
  }
  return *this;
}

MappedFile::~MappedFile() {
  if (base_ != nullptr) munmap(base_, size_);
}

RemoteDescriptor& RemoteDescriptor::operator=(RemoteDescriptor&& other) noexcept {
  if (this != &other) {
    close();
    target_ = std::exchange(other.target_, nullptr);
    number_ = other.number_;
  }
  return *this;
}

void RemoteDescriptor::close() {
  if (target_ != nullptr) (void)target_->call({.number = SYS_close, .arguments = {number_}});
  target_ = nullptr;
}

Expected<SharedFile> make_shared_file(StoppedTarget& target, std::string_view name, uint64_t size) {
  RemoteDescriptor theirs = CLEW_TRY(create_file(target, name));
  FileDescriptor ours = CLEW_TRY(open_new_file(target.calling_thread(), theirs.number(), name));
  CLEW_TRY(FileSizeLimit().set_size(ours.get(), size));
  (void)fcntl(ours.get(), F_ADD_SEALS, kSizeSeals | F_SEAL_SEAL);
  return SharedFile{std::move(theirs), CLEW_TRY(MappedFile::map(std::move(ours), size))};
}

Expected<RemoteDescriptor> reopen_for_reading(StoppedTarget& target, const SharedFile& file) {
  const uint64_t text = CLEW_TRY(target.scratch());
  CLEW_TRY(write_text(target, text, fmt::format("/proc/thread-self/fd/{}", file.theirs.number())));
  const int64_t fd =
      CLEW_TRY(target.call({.number = SYS_open, .arguments = {text, O_RDONLY | O_CLOEXEC}}));
  if (fd >= 0) return RemoteDescriptor(target, static_cast<uint64_t>(fd));
  const FileDescriptor ours(
      open(fmt::format("/proc/self/fd/{}", file.ours.file()).c_str(), O_RDONLY | O_CLOEXEC));
  if (!ours.valid()) return fail(ErrorCode::Io, fmt::format("the arena: {}", error_text(errno)));
  return RemoteDescriptor(target, CLEW_TRY(hand_over(target, ours.get())));
}

Expected<FileDescriptor> open_new_file(pid_t tid, uint64_t descriptor, std::string_view name) {
  const std::string path = fmt::format("/proc/{}/fd/{}", tid, descriptor);
  const FileDescriptor place(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!place.valid()) {
    return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(errno)));
  }
  if (is_new_file_of(place, tid, name)) {
    FileDescriptor file = open_again(place);
    if (!file.valid()) {
      return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(errno)));
    }
    if (is_unsealed(file)) return file;
  }
  return fail(ErrorCode::Refused,
              fmt::format("{} is not the file that the thread has just made; does another process "
                          "share its descriptors? [shared-descriptors]",
                          path));
}

FileDescriptor open_file_of(pid_t pid, const target::Mapping& mapping,
                            std::span<const pid_t> holders) {
  // Needs CAP_CHECKPOINT_RESTORE.
  FileDescriptor file =
      open_inode(fmt::format("/proc/{}/map_files/{:x}-{:x}", target::memory_holder(pid),
                             mapping.start, mapping.end),
                 mapping.inode);
  for (size_t i = 0; !file.valid() && i < holders.size(); ++i)
    file = open_from(holders[i], mapping.inode);
  return file;
}

bool is_sealed_file_of(int file, pid_t pid) {
  const int seals = fcntl(file, F_GET_SEALS);
  const bool is_sealed = seals >= 0 && (seals & kSizeSeals) == kSizeSeals;
  struct stat info = {};
  struct statfs system = {};
  const auto facts = target::read_facts(pid);
  if (!is_sealed || !facts || fstat(file, &info) != 0) return false;
  // One of huge pages has seals, too, and may have no page for who looks at it.
  if (fstatfs(file, &system) != 0 || system.f_type != TMPFS_MAGIC) return false;
  return info.st_uid == facts->uid || info.st_uid == 0;
}

}  // namespace clew::inline_
