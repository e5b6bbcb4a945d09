// SPDX-License-Identifier: Apache-2.0
// For tests: puts the windows of a plan into this process's own text, with a probe at each point
// that counts for its request and changes all flags, which are dead at entries and exits.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <sys/mman.h>

#include "code/near_text.h"
#include "code/relocate.h"
#include "code/windows.h"

namespace clew::code {

class ProbedText {
 public:
  // Makes the pages of `text` writable for good.
  explicit ProbedText(std::span<const uint8_t> text) {
    const uint64_t first = reinterpret_cast<uint64_t>(text.data()) & ~(kPage - 1);
    const uint64_t end = reinterpret_cast<uint64_t>(text.data() + text.size());
    constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
    constexpr int kAll = PROT_READ | PROT_WRITE | PROT_EXEC;
    words_ = static_cast<uint32_t*>(
        mmap(nullptr, kPage, PROT_READ | PROT_WRITE, kFlags | MAP_32BIT, -1, 0));
    copies_ = static_cast<uint8_t*>(map_near(first, kCodeSize));
    ready_ = words_ != MAP_FAILED && copies_ != MAP_FAILED &&
             mprotect(reinterpret_cast<void*>(first), end - first, kAll) == 0;
  }
  ProbedText(const ProbedText&) = delete;
  ProbedText& operator=(const ProbedText&) = delete;
  ~ProbedText() {
    remove();
    munmap(words_, kPage);
    munmap(copies_, kCodeSize);
  }

  // An empty string, or what went wrong.
  std::string install(const Plan& plan) {
    if (!ready_) return "no memory near the text";
    std::fill(words_, words_ + kRequestsMax, 0);
    size_t used = 0;
    for (uint32_t i = 0; i < plan.windows.size(); ++i) {
      const auto copy = relocate(plan.windows[i], plan.points_of(i),
                                 {.destination = reinterpret_cast<uint64_t>(copies_ + used)},
                                 [this](std::span<const Point> points, uint64_t,
                                        std::vector<uint8_t>& code) { return emit(points, code); });
      if (!copy) return copy.error().message;
      if (used + copy->bytes.size() > kCodeSize) return "no room for the copies";
      std::memcpy(copies_ + used, copy->bytes.data(), copy->bytes.size());
      used += copy->bytes.size();
      for (const Patch& patch : copy->patches) {
        if (!write(patch)) return "other bytes than were planned with";
      }
    }
    return "";
  }

  void remove() {
    for (const Patch& patch : patches_)
      std::memcpy(reinterpret_cast<uint8_t*>(patch.address), patch.original.data(),
                  patch.size_bytes);
    patches_.clear();
  }

  static constexpr size_t kRequestsMax = 1024;
  // How often points of the request were passed since install().
  [[nodiscard]] uint32_t count_of(size_t request) const { return words_[request]; }

 private:
  static constexpr uint64_t kPage = 4096;
  static constexpr size_t kCodeSize = 64 * kPage;

  // addl $1, [word of the request]
  Expected<void> emit(std::span<const Point> points, std::vector<uint8_t>& code) {
    for (const Point& point : points) {
      const auto word =
          static_cast<uint32_t>(reinterpret_cast<uint64_t>(words_ + point.request % kRequestsMax));
      code.insert(code.end(), {0x83, 0x04, 0x25});
      for (unsigned shift = 0; shift < 32; shift += 8)
        code.push_back(static_cast<uint8_t>(word >> shift));
      code.push_back(1);
    }
    return {};
  }

  bool write(const Patch& patch) {
    auto* const text = reinterpret_cast<uint8_t*>(patch.address);
    if (!std::equal(text, text + patch.size_bytes, patch.original.begin())) return false;
    std::memcpy(text, patch.replacement.data(), patch.size_bytes);
    patches_.push_back(patch);
    return true;
  }

  bool ready_ = false;
  uint32_t* words_ = nullptr;
  uint8_t* copies_ = nullptr;
  std::vector<Patch> patches_;
};

}  // namespace clew::code
