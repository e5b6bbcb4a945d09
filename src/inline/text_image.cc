// SPDX-License-Identifier: Apache-2.0
// Reading, comparing and writing text by pages.
#include "inline/text_image.h"

#include <algorithm>

#include "base/assert.h"
#include "base/page.h"
#include "code/opcodes.h"

namespace clew::inline_ {
namespace {

constexpr size_t kRunPagesMax = 256;

uint64_t page_of(uint64_t address) {
  return address & ~(kPage - 1);
}

}  // namespace

TextImage::TextImage(std::span<const Range> ranges) {
  std::vector<uint64_t> addresses;
  for (const Range& range : ranges) {
    const uint64_t last = page_of(range.address + std::max(range.size, 1U) - 1);
    for (uint64_t page = page_of(range.address); page <= last; page += kPage)
      addresses.push_back(page);
  }
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  for (const uint64_t address : addresses)
    pages_.push_back({.address = address});
  bytes_.resize(pages_.size() * kPage);
}

void TextImage::load(const StoppedTarget& target) {
  for (size_t first = 0; first < pages_.size();) {
    size_t count = 1;
    while (count < kRunPagesMax && first + count < pages_.size() &&
           pages_[first + count].address == pages_[first].address + count * kPage) {
      ++count;
    }
    read_run(target, first, count);
    first += count;
  }
}

void TextImage::read_run(const StoppedTarget& target, size_t first, size_t count) {
  const auto whole = std::span(bytes_).subspan(first * kPage, count * kPage);
  if (target.read(pages_[first].address, whole)) {
    for (size_t i = 0; i < count; ++i)
      pages_[first + i].present = true;
    return;
  }
  if (count == 1) return;
  for (size_t i = 0; i < count; ++i)
    read_run(target, first + i, 1);
}

// Of the page of the address; pages_.size() when it is not here.
size_t TextImage::index_of(uint64_t address) const {
  const auto page =
      std::lower_bound(pages_.begin(), pages_.end(), page_of(address),
                       [](const Page& p, uint64_t wanted) { return p.address < wanted; });
  const bool found = page != pages_.end() && page->address == page_of(address) && page->present;
  return found ? static_cast<size_t>(page - pages_.begin()) : pages_.size();
}

const uint8_t* TextImage::byte_at(uint64_t address) const {
  const size_t page = index_of(address);
  return page == pages_.size() ? nullptr : bytes_.data() + page * kPage + address % kPage;
}

bool TextImage::equals(uint64_t address, std::span<const uint8_t> bytes) const {
  for (size_t i = 0; i < bytes.size(); ++i) {
    const uint8_t* const at = byte_at(address + i);
    if (at == nullptr || *at != bytes[i]) return false;
  }
  return true;
}

bool TextImage::is_mix_of(uint64_t address, std::span<const uint8_t> a,
                          std::span<const uint8_t> b) const {
  for (size_t i = 0; i < a.size(); ++i) {
    const uint8_t* const at = byte_at(address + i);
    if (at == nullptr || (*at != a[i] && *at != b[i] && *at != code::kInt3)) return false;
  }
  return true;
}

void TextImage::change_but_traps(uint64_t address, std::span<const uint8_t> file,
                                 std::span<const uint8_t> bytes) {
  const uint8_t* const first = byte_at(address);
  const bool is_trap = first != nullptr && *first == code::kInt3 && file[0] != code::kInt3;
  const size_t from = is_trap ? 1 : 0;
  change(address + from, bytes.subspan(from));
  changes_.back().spares_trap = from == 0 && file[0] != code::kInt3;
}

void TextImage::change(uint64_t address, std::span<const uint8_t> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    const size_t page = index_of(address + i);
    CLEW_ASSERT(page < pages_.size());
    bytes_[page * kPage + (address + i) % kPage] = bytes[i];
  }
  changes_.push_back({.address = address, .bytes = {bytes.begin(), bytes.end()}});
}

Expected<void> TextImage::flush(const StoppedTarget& target) const {
  const auto crosses = [](const Change& change) {
    return page_of(change.address) != page_of(change.address + change.bytes.size() - 1);
  };
  for (const bool crossing : {false, true}) {
    for (const Change& change : changes_) {
      if (crosses(change) != crossing) continue;
      uint8_t now = 0;
      const bool has_come = change.spares_trap && target.read(change.address, std::span(&now, 1)) &&
                            now == code::kInt3;
      const size_t from = has_come ? 1 : 0;
      CLEW_TRY(target.write(change.address + from, std::span(change.bytes).subspan(from)));
    }
  }
  return {};
}

}  // namespace clew::inline_
