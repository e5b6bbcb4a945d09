// SPDX-License-Identifier: Apache-2.0
#include "recorder/script_memory.h"

#include <algorithm>

namespace clew::recorder {

bool ScriptMemory::read(uint64_t address, std::span<uint8_t> bytes) {
  if (bytes.size() > bytes_left_ || reads_left_ == 0 || address > UINT64_MAX - bytes.size())
    return false;
  bytes_left_ -= bytes.size();
  --reads_left_;
  while (!bytes.empty()) {
    const Page* const page = page_of(address / kPageBytes);
    if (page == nullptr) return false;
    const size_t offset = address % kPageBytes;
    const size_t size = std::min(bytes.size(), kPageBytes - offset);
    std::memcpy(bytes.data(), page->data() + offset, size);
    bytes = bytes.subspan(size);
    address += size;
  }
  return true;
}

const ScriptMemory::Page* ScriptMemory::page_of(uint64_t number) {
  const auto known = pages_.find(number);
  if (known != pages_.end()) return known->second.get();
  if (pages_.size() == kPagesMax) return nullptr;
  auto page = std::make_unique<Page>();
  if (!read_(number * kPageBytes, *page)) page = nullptr;
  return pages_.emplace(number, std::move(page)).first->second.get();
}

}  // namespace clew::recorder
