// SPDX-License-Identifier: Apache-2.0
// What does the load without a fault cost by itself (src/inline/vdso_load.h)? It is written into
// this process's own vDSO. Prints one line for each way, as read_cost does; nothing where the
// machine has no place for it.
//
//     vdso-load    8 bytes
//     vdso-no      8 bytes that cannot be read
//     vdso-text    a text of 100 bytes, word by word up to its end
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "inline/vdso_load.h"

namespace {

constexpr int kBursts = 101;
constexpr int kReads = 2000;
constexpr size_t kTextBytes = 100;

using Clock = std::chrono::steady_clock;

uint64_t place = 0;
alignas(8) uint64_t word = 1;
alignas(8) std::array<char, 128> text{};

bool write_at(int memory, uint64_t address, std::span<const uint8_t> bytes) {
  return pwrite(memory, bytes.data(), bytes.size(), static_cast<off_t>(address)) ==
         static_cast<ssize_t>(bytes.size());
}

bool write_load() {
  const auto& places = clew::inline_::load_places_here();
  const int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  if (!places || memory < 0) return false;
  const uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
  place = vdso + places->load;
  return write_at(memory, vdso + places->landing, clew::inline_::kLandingCode) &&
         write_at(memory, place, clew::inline_::kLoadCode);
}

// As runtime/load.h does it, without the frame for unwinders.
[[gnu::always_inline]] inline bool try_load(uint64_t address, uint64_t& value) {
  bool failed = false;
  asm volatile("call *%[place]"
               : "=a"(value), "=@ccc"(failed), "+D"(address)
               : [place] "r"(place)
               : "rsi", "rdx", "memory");
  return !failed;
}

[[gnu::noinline]] uint64_t load(uint64_t address) {
  uint64_t value = 0;
  return try_load(address, value) ? value : 0;
}

uint64_t load_word() {
  return load(reinterpret_cast<uint64_t>(&word));
}
uint64_t load_nothing() {
  return load(8);
}
uint64_t load_text() {
  uint64_t length = 0;
  for (uint64_t value = 0;; length += 8) {
    if (!try_load(reinterpret_cast<uint64_t>(text.data()) + length, value)) return length;
    const auto* const bytes = reinterpret_cast<const char*>(&value);
    const size_t kept = strnlen(bytes, sizeof value);
    if (kept < sizeof value) return length + kept;
  }
}

void measure(const char* name, uint64_t (*read)()) {
  std::vector<double> ns;
  for (int burst = 0; burst < kBursts; ++burst) {
    const auto begin = Clock::now();
    volatile uint64_t sum = 0;
    for (int i = 0; i < kReads; ++i)
      sum = sum + read();
    const std::chrono::duration<double, std::nano> time = Clock::now() - begin;
    ns.push_back(time.count() / kReads);
  }
  std::sort(ns.begin(), ns.end());
  std::printf("%s %.2f %.2f %.2f\n", name, ns[kBursts / 2], ns[kBursts / 10], ns[kBursts * 9 / 10]);
}

}  // namespace

int main() {
  if (!write_load()) return 0;
  std::memset(text.data(), 'x', kTextBytes);
  measure("vdso-load", load_word);
  measure("vdso-no", load_nothing);
  measure("vdso-text", load_text);
  return 0;
}
