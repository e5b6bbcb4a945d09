// SPDX-License-Identifier: Apache-2.0
#include "target/cache_folder.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace clew::target {

namespace {

constexpr uint64_t kBlockMaxBytes = uint64_t{4} << 30;
constexpr mode_t kForOthers = S_IRWXG | S_IRWXO;

bool is_ours_alone(const struct stat& status) {
  return status.st_uid == geteuid() && (status.st_mode & kForOthers) == 0;
}

// Words are mixed by multiplication, so that every bit of the input reaches the result. Four lanes,
// since one waits for its own multiplication.
uint64_t checksum(std::span<const uint8_t> bytes) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;
  uint64_t lanes[4] = {bytes.size(), 1, 2, 3};
  const auto mix = [](uint64_t lane, uint64_t word) {
    lane = (lane ^ word) * kOdd;
    return lane ^ (lane >> 29);
  };
  size_t at = 0;
  for (; at + 32 <= bytes.size(); at += 32) {
    uint64_t words[4];
    std::memcpy(words, bytes.data() + at, sizeof(words));
    for (size_t i = 0; i < 4; ++i) {
      lanes[i] = mix(lanes[i], words[i]);
    }
  }
  for (; at < bytes.size(); ++at) {
    lanes[at % 4] = mix(lanes[at % 4], bytes[at]);
  }
  return mix(mix(mix(mix(0, lanes[0]), lanes[1]), lanes[2]), lanes[3]);
}

struct StoredFile {
  std::string name;
  uint64_t size_bytes = 0;
  timespec used{};
};

std::vector<StoredFile> files_in(const std::string& path, int folder) {
  std::vector<StoredFile> files;
  std::error_code error;
  for (std::filesystem::directory_iterator at(path, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename();
    struct stat status {};
    if (fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(status.st_mode)) continue;
    files.push_back({name, static_cast<uint64_t>(status.st_size), status.st_mtim});
  }
  return files;
}

}  // namespace

FileDescriptor CacheFolder::open_folder() const {
  FileDescriptor folder(
      ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!folder.valid() || fstat(folder.get(), &status) != 0 || status.st_uid != geteuid()) return {};
  // Others may have put files there; those are not ours, and each is looked at.
  const bool is_closed = is_ours_alone(status) || fchmod(folder.get(), S_IRWXU) == 0;
  return is_closed ? std::move(folder) : FileDescriptor();
}

std::optional<CacheFolder::File> CacheFolder::open(const std::string& name) const {
  const FileDescriptor folder = open_folder();
  if (!folder.valid()) return std::nullopt;
  File file;
  file.descriptor = FileDescriptor(
      openat(folder.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  const bool is_trusted = file.descriptor.valid() && fstat(file.descriptor.get(), &status) == 0 &&
                          S_ISREG(status.st_mode) && is_ours_alone(status);
  if (!is_trusted) return std::nullopt;
  (void)futimens(file.descriptor.get(), nullptr);
  file.size_bytes = static_cast<uint64_t>(status.st_size);
  return file;
}

void CacheFolder::store(const std::string& name, const std::function<bool(int)>& write) const {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
  (void)mkdir(path_.c_str(), S_IRWXU);
  const FileDescriptor folder = open_folder();
  if (!folder.valid()) return;
  const std::string temporary = fmt::format("{}.{}.tmp", name, getpid());
  (void)unlinkat(folder.get(), temporary.c_str(), 0);  // Of a process with this pid, killed.
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  const FileDescriptor file(openat(folder.get(), temporary.c_str(), kFlags, S_IRUSR | S_IWUSR));
  if (!file.valid()) return;
  const bool written = write(file.get()) &&
                       renameat(folder.get(), temporary.c_str(), folder.get(), name.c_str()) == 0;
  if (!written) (void)unlinkat(folder.get(), temporary.c_str(), 0);
  trim(folder.get());
}

void CacheFolder::trim(int folder) const {
  std::vector<StoredFile> files = files_in(path_, folder);
  std::sort(files.begin(), files.end(), [](const StoredFile& a, const StoredFile& b) {
    return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec > b.used.tv_sec
                                          : a.used.tv_nsec > b.used.tv_nsec;
  });
  uint64_t kept = 0;
  for (const StoredFile& file : files) {
    kept += file.size_bytes;
    if (kept > bytes_max_) (void)unlinkat(folder, file.name.c_str(), 0);
  }
}

void BlockWriter::write(std::span<const uint8_t> bytes) {
  while (good_ && !bytes.empty()) {
    const ssize_t count = ::write(fd_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    good_ = count > 0;
    if (good_) bytes = bytes.subspan(static_cast<size_t>(count));
  }
}

void BlockWriter::add(std::span<const uint8_t> content) {
  const std::array<uint64_t, 2> header = {content.size(), checksum(content)};
  write({reinterpret_cast<const uint8_t*>(header.data()), sizeof(header)});
  write(content);
}

bool BlockReader::read_bytes(std::span<uint8_t> bytes) {
  if (bytes.size() > remaining_) return false;
  remaining_ -= bytes.size();
  while (!bytes.empty()) {
    const ssize_t count = ::read(fd_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return true;
}

std::optional<BlockReader::Head> BlockReader::read_head(uint64_t record_bytes) {
  std::array<uint64_t, 2> header{};
  if (!read_bytes({reinterpret_cast<uint8_t*>(header.data()), sizeof(header)})) return std::nullopt;
  const Head head{.size_bytes = header[0], .checksum = header[1]};
  const bool fits = head.size_bytes <= std::min(remaining_, kBlockMaxBytes);
  if (!fits || head.size_bytes % record_bytes != 0) return std::nullopt;
  return head;
}

bool BlockReader::read_content(std::span<uint8_t> bytes, const Head& head) {
  return read_bytes(bytes) && checksum(bytes) == head.checksum;
}

}  // namespace clew::target
