// SPDX-License-Identifier: Apache-2.0
#include "guarded_memory.h"

#include <algorithm>
#include <cstring>

#include <sys/mman.h>

#include "base/assert.h"

namespace clew::accessors {
namespace {

constexpr size_t kPage = 4096;
constexpr uint8_t kPaint = 0xA5;

constexpr size_t up_to_multiple(size_t size, size_t of) {
  return (size + of - 1) / of * of;
}

}  // namespace

GuardedMemory::GuardedMemory(size_t size, uint64_t address)
    : pages_size_(up_to_multiple(size, kPage)), size_(up_to_multiple(size, 8)) {
  CLEW_ASSERT(address == 0 || size_ == pages_size_);
  const int where = address == 0 ? 0 : MAP_FIXED_NOREPLACE;
  void* const wanted = reinterpret_cast<void*>(address == 0 ? 0 : address - kPage);
  void* const all = mmap(wanted, pages_size_ + 2 * kPage, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | where, -1, 0);
  CLEW_ASSERT(all != MAP_FAILED);
  pages_ = static_cast<uint8_t*>(all) + kPage;
  first_ = pages_ + (pages_size_ - size_);
  CLEW_ASSERT(mprotect(pages_, pages_size_, PROT_READ | PROT_WRITE) == 0);
  paint();
}

GuardedMemory::~GuardedMemory() {
  munmap(pages_ - kPage, pages_size_ + 2 * kPage);
}

void GuardedMemory::forbid_writes(size_t offset, size_t size) const {
  CLEW_ASSERT(mprotect(pages_ + offset, size, PROT_READ) == 0);
}

void GuardedMemory::forbid_writes() const {
  forbid_writes(0, pages_size_);
}

void GuardedMemory::clear() const {
  CLEW_ASSERT(madvise(pages_, pages_size_, MADV_DONTNEED) == 0);
  paint();
}

void GuardedMemory::paint() const {
  std::memset(pages_, kPaint, static_cast<size_t>(first_ - pages_));
}

bool GuardedMemory::has_paint() const {
  return std::all_of(pages_, first_, [](uint8_t byte) { return byte == kPaint; });
}

}  // namespace clew::accessors
