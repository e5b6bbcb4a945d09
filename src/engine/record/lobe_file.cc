// SPDX-License-Identifier: Apache-2.0
#include "engine/record/lobe_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/recorder.h"
#include "base/assert.h"
#include "base/error_text.h"
#include "inline/arena_file.h"
#include "target/process.h"

namespace clew::engine {

namespace {

constexpr uint64_t kStride = uint64_t{1} << abi::kLobeStrideLog2;

tl::unexpected<Error> no_memory(const char* what) {
  return fail(ErrorCode::Io, fmt::format("memory for lobes: {}: {}", what, error_text(errno)));
}

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

uint64_t size_for(uint32_t slots) {
  return (uint64_t{slots} + 2) * kStride;
}

tl::unexpected<Error> cannot_adopt(pid_t pid) {
  return fail(ErrorCode::Refused,
              fmt::format("the memory in which process {} was recorded before cannot be had "
                          "[recorded]",
                          pid));
}

}  // namespace

// One stride more, to align the first in the process, and one for the note.
Expected<LobeFile> LobeFile::create(uint32_t slots) {
  FileDescriptor file(memfd_create("clew-lobes", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return no_memory("memfd_create");
  if (ftruncate(file.get(), static_cast<off_t>(size_for(slots))) != 0)
    return no_memory("ftruncate");
  if (fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) return no_memory("seals");
  return map(std::move(file), slots);
}

Expected<LobeFile> LobeFile::adopt(pid_t pid, uint32_t slots) {
  const auto maps = CLEW_TRY(target::read_memory_map(pid));
  const auto there = std::find_if(maps.begin(), maps.end(), [](const target::Mapping& map) {
    return map.path == "/memfd:clew-lobes";
  });
  if (there == maps.end() || there->file_offset != 0 ||
      there->end - there->start != size_for(slots))
    return cannot_adopt(pid);
  FileDescriptor file = inline_::open_file_of(pid, *there, {});
  struct stat status {};
  const bool is_it = file.valid() && fstat(file.get(), &status) == 0 &&
                     static_cast<uint64_t>(status.st_size) == size_for(slots) &&
                     inline_::is_sealed_file_of(file.get(), pid);
  if (!is_it) return cannot_adopt(pid);
  LobeFile lobes = CLEW_TRY(map(std::move(file), slots));
  lobes.place(there->start);
  return lobes;
}

Expected<LobeFile> LobeFile::map(FileDescriptor file, uint32_t slots) {
  const uint64_t size = size_for(slots);
  void* const view =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
  if (view == MAP_FAILED) return no_memory("mmap");
  return LobeFile(std::move(file), size, static_cast<uint8_t*>(view));
}

LobeFile::LobeFile(LobeFile&& other) noexcept
    : file_(std::move(other.file_)),
      size_bytes_(other.size_bytes_),
      view_(std::exchange(other.view_, nullptr)),
      address_(other.address_),
      first_lobe_(other.first_lobe_) {}

LobeFile::~LobeFile() {
  if (view_ != nullptr) (void)munmap(view_, size_bytes_);
}

void LobeFile::place(uint64_t address) {
  address_ = address;
  first_lobe_ = (address + kStride - 1) / kStride * kStride;
}

uint64_t LobeFile::offset_of(uint32_t slot) const {
  const uint64_t offset = first_lobe_ - address_ + slot * kStride;
  CLEW_ASSERT(offset + kStride <= size_bytes_);
  return offset;
}

uint32_t LobeFile::slot_count() const {
  return static_cast<uint32_t>(size_bytes_ / kStride - 2);
}

std::span<const uint8_t> LobeFile::note() const {
  return {view_ + offset_of(slot_count()), kStride};
}

// Its first bytes last: who is killed meanwhile leaves none.
bool LobeFile::write_note(std::span<const uint8_t> bytes) {
  constexpr size_t kMagicBytes = 8;
  uint8_t* const at = view_ + offset_of(slot_count());
  std::memset(at, 0, kMagicBytes);
  if (bytes.size() > kStride || bytes.size() < kMagicBytes) return false;
  std::memcpy(at + kMagicBytes, bytes.data() + kMagicBytes, bytes.size() - kMagicBytes);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  std::memcpy(at, bytes.data(), kMagicBytes);
  return true;
}

std::span<const uint32_t> LobeFile::words(uint32_t slot) const {
  return {reinterpret_cast<const uint32_t*>(view_ + offset_of(slot)), abi::kLobeWords};
}

bool LobeFile::has(uint32_t slot, uint64_t cursor) const {
  return cursor - lobe_of(slot) < abi::kLobeBytes && cursor % abi::kRecordBytes == 0;
}

// The first word last, over the zero behind the newest record.
uint64_t LobeFile::append(uint32_t slot, uint64_t cursor, std::span<const uint32_t> record) {
  CLEW_ASSERT(has(slot, cursor));
  auto* const words = reinterpret_cast<uint32_t*>(view_ + offset_of(slot));
  const uint64_t newest = (cursor - lobe_of(slot)) / abi::kRecordBytes;
  const auto put = [&](uint64_t number, uint32_t word) {
    __atomic_store_n(words + (newest + 1 + number) % abi::kLobeWords, word, __ATOMIC_RELEASE);
  };
  if (words[newest] == 0) return cursor;
  for (uint64_t i = record.size(); i-- > 1;)
    put(i, record[i]);
  put(record.size(), 0);
  put(0, record[0]);
  return lobe_of(slot) + (newest + record.size()) % abi::kLobeWords * abi::kRecordBytes;
}

std::optional<uint32_t> LobeFile::next_used(uint32_t slot) const {
  const uint32_t count = slot_count();
  if (slot >= count) return std::nullopt;
  const off_t data = lseek(file_.get(), static_cast<off_t>(offset_of(slot)), SEEK_DATA);
  if (data < 0) return std::nullopt;
  const uint64_t found = (static_cast<uint64_t>(data) - offset_of(0)) / kStride;
  return found < count ? std::optional(static_cast<uint32_t>(found)) : std::nullopt;
}

}  // namespace clew::engine
