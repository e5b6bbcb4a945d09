// SPDX-License-Identifier: Apache-2.0
#include "cluster/spill_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/error_text.h"
#include "collect/bytes.h"

namespace clew::cluster {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".spill";
constexpr uint32_t kGone = 0x8000'0000;
// A table of one pane is 512 MiB at most (session_frame.h), and has its message around it.
constexpr uint64_t kFrameMost = uint64_t{1} << 30;

tl::unexpected<Error> no_access(const std::string& what, const std::string& path) {
  return fail(ErrorCode::Io, fmt::format("cannot {} {}: {}", what, path, error_text(errno)));
}

Expected<void> write_whole(int descriptor, std::span<const std::byte> bytes,
                           const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return no_access("write", path);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

Expected<Bytes> read_part(int descriptor, uint64_t offset, uint64_t size, const std::string& path) {
  Bytes bytes(size);
  size_t done = 0;
  while (done < size) {
    const ssize_t count =
        pread(descriptor, &bytes[done], size - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return no_access("read", path);
    if (count == 0) return fail(ErrorCode::Io, fmt::format("{} ends early", path));
    done += static_cast<size_t>(count);
  }
  return bytes;
}

struct SpilledFrame {
  bool is_gone = false;
  uint64_t end = 0;
  Spilled partial{};
};

// The one that begins there.
Expected<SpilledFrame> frame_at(int descriptor, uint64_t offset, const std::string& path) {
  const Bytes head = CLEW_TRY(read_part(descriptor, offset, sizeof(uint32_t), path));
  const auto word = collect::Cursor(head).take<uint32_t>();
  const uint32_t size = word & ~kGone;
  const uint64_t begin = offset + sizeof word;
  struct stat found {};
  const bool is_there = fstat(descriptor, &found) == 0 && size <= kFrameMost &&
                        begin + size <= static_cast<uint64_t>(found.st_size);
  if (!is_there) return fail(ErrorCode::Io, fmt::format("{} ends early", path));
  const Bytes bytes = CLEW_TRY(read_part(descriptor, begin, size, path));
  return SpilledFrame{.is_gone = (word & kGone) != 0,
                      .end = begin + size,
                      .partial = CLEW_TRY(read_kept_as<Spilled>(bytes))};
}

// Up to its end, or to what is no partial of this query.
LeftFile read_left(const std::string& path, uint64_t& bytes) {
  LeftFile left;
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  auto frame = frame_at(file.get(), 0, path);
  for (uint64_t offset = 0; frame; frame = frame_at(file.get(), offset, path)) {
    const Spilled& partial = frame->partial;
    SpillOwner owner{.tenant = partial.tenant,
                     .node = partial.node,
                     .query = partial.query,
                     .revision = partial.revision,
                     .incarnation = partial.incarnation};
    if (offset == 0) left.owner = owner;
    const bool is_of_this = owner == left.owner;
    if (is_of_this && !frame->is_gone)
      left.partials.push_back({.pane = partial.pane, .offset = offset});
    bytes = offset = frame->end;
  }
  return left;
}

}  // namespace

// --- files ---------------------------------------------------------------------------------------

Expected<Bytes> SpillFile::table_at(uint64_t offset) const {
  const FileDescriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return no_access("open", path_);
  return CLEW_TRY(frame_at(file.get(), offset, path_)).partial.table;
}

void SpillFile::forget(uint64_t offset) const {
  const FileDescriptor file(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  const auto head = read_part(file.get(), offset, sizeof(uint32_t), path_);
  if (!head) return;
  const uint32_t word = collect::Cursor(*head).take<uint32_t>() | kGone;
  // Sent once more it would be known, as long as it is the same.
  (void)!pwrite(file.get(), &word, sizeof word, static_cast<off_t>(offset));
}

void SpillFile::remove() {
  (void)unlink(path_.c_str());
  folder_.bytes_ -= std::exchange(bytes_, 0);
}

// --- the folder ----------------------------------------------------------------------------------

Expected<std::unique_ptr<SpillFolder>> SpillFolder::open(const std::string& path,
                                                         uint64_t bytes_max) {
  std::error_code problem;
  fs::create_directories(path, problem);
  if (problem)
    return fail(ErrorCode::Io, fmt::format("cannot make {}: {}", path, problem.message()));
  FileDescriptor lock(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock.valid()) return no_access("open", path);
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(ErrorCode::Refused, fmt::format("another node has {}", path));
  return std::make_unique<SpillFolder>(path, bytes_max, std::move(lock));
}

Expected<std::vector<LeftFile>> SpillFolder::take_left() {
  std::vector<std::pair<uint64_t, fs::path>> files;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(path_, problem)) {
    const fs::path& path = entry.path();
    if (path.extension() != kEnding) continue;
    char* end = nullptr;
    const std::string stem = path.stem().string();
    const uint64_t number = std::strtoull(stem.c_str(), &end, 10);
    if (*end == '\0') files.emplace_back(number, path);
  }
  if (problem)
    return fail(ErrorCode::Io, fmt::format("cannot read {}: {}", path_, problem.message()));
  std::sort(files.begin(), files.end());
  std::vector<LeftFile> left;
  for (const auto& [number, path] : files) {
    number_ = std::max(number_, number + 1);
    uint64_t bytes = 0;
    LeftFile one = read_left(path, bytes);
    if (bytes == 0) {
      ++unreadable_;
      continue;
    }
    one.file = std::make_shared<SpillFile>(*this, path, bytes);
    bytes_ += bytes;
    if (one.partials.empty()) {
      one.file->remove();
    } else {
      left.push_back(std::move(one));
    }
  }
  return left;
}

Expected<std::shared_ptr<SpillFile>> SpillFolder::write(const std::vector<Spilled>& partials,
                                                        std::vector<SpilledAt>& places) {
  Bytes all;
  places.clear();
  for (const Spilled& partial : partials) {
    places.push_back({.pane = partial.pane, .offset = all.size()});
    const Bytes frame = to_bytes(partial);
    collect::append(all, static_cast<uint32_t>(frame.size()));
    collect::append(all, std::span<const std::byte>(frame));
  }
  if (bytes_ + all.size() > bytes_max_) {
    return fail(ErrorCode::Limit,
                fmt::format("{} has {} MiB, and may not have more", path_, bytes_ >> 20));
  }
  const std::string path = fmt::format("{}/{}{}", path_, number_, kEnding);
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid()) return no_access("write", path);
  ++number_;
  if (const auto written = write_whole(file.get(), all, path); !written) {
    (void)unlink(path.c_str());
    return tl::unexpected(written.error());
  }
  bytes_ += all.size();
  return std::make_shared<SpillFile>(*this, path, all.size());
}

}  // namespace clew::cluster
