// SPDX-License-Identifier: Apache-2.0
// The table decoder must be Zydis, only faster.
#include "code/decode.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <elf.h>
#include <gtest/gtest.h>

namespace clew::code {
namespace {

std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The bytes of the executable segments of an ELF file.
std::vector<std::span<const uint8_t>> executable_segments(std::span<const uint8_t> file) {
  std::vector<std::span<const uint8_t>> segments;
  Elf64_Ehdr header;
  if (file.size() < sizeof(header)) return segments;
  std::memcpy(&header, file.data(), sizeof(header));
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, file.data() + header.e_phoff + i * sizeof(segment), sizeof(segment));
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    segments.push_back(file.subspan(segment.p_offset, segment.p_filesz));
  }
  return segments;
}

std::string hex(std::span<const uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes.first(std::min<size_t>(bytes.size(), kInstructionSizeMax))) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

bool same(const std::optional<Decoded>& a, const std::optional<Decoded>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->length == b->length && a->flow == b->flow && a->rip_relative == b->rip_relative &&
         a->displacement_offset == b->displacement_offset &&
         a->displacement_size == b->displacement_size &&
         a->immediate_offset == b->immediate_offset && a->immediate_size == b->immediate_size;
}

TEST(Decode, AgreesWithZydisOnEveryInstructionOfInstalledBinaries) {
  for (const char* path : {"/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libm.so.6",
                           "/lib/x86_64-linux-gnu/libstdc++.so.6", "/bin/bash"}) {
    const std::vector<uint8_t> file = read_file(path);
    for (std::span<const uint8_t> rest : executable_segments(file)) {
      unsigned differences = 0;
      while (!rest.empty() && differences < 5) {
        const auto expected = decode_with_zydis(rest);
        if (!same(decode(rest), expected)) {
          ADD_FAILURE() << path << ": " << hex(rest);
          ++differences;
        }
        rest = rest.subspan(expected ? expected->length : 1);
      }
    }
  }
}

TEST(Decode, AgreesWithZydisOnRandomBytes) {
  std::mt19937_64 random(1);
  unsigned differences = 0;
  for (unsigned round = 0; round < 2'000'000 && differences < 20; ++round) {
    std::array<uint8_t, 16> bytes;
    const std::array<uint64_t, 2> words = {random(), random()};
    std::memcpy(bytes.data(), words.data(), sizeof(bytes));
    // Steer half of the rounds to prefixes and the two-byte map.
    static constexpr uint8_t kStarts[] = {0x66, 0xf2, 0xf3, 0x48, 0x0f, 0x2e, 0x64, 0x41};
    if ((round & 1) != 0) bytes[0] = kStarts[(round >> 1) & 7];
    if ((round & 6) == 6) bytes[1] = 0x0f;
    if (same(decode(bytes), decode_with_zydis(bytes))) continue;
    ADD_FAILURE() << hex(bytes);
    ++differences;
  }
}

TEST(Decode, RefusesInstructionsThatRunOverTheEnd) {
  const std::vector<uint8_t> call = {0xe8, 0, 0, 0, 0};
  EXPECT_TRUE(decode(call));
  for (size_t size = 0; size < call.size(); ++size) {
    EXPECT_FALSE(decode(std::span(call).first(size))) << size;
  }
}

}  // namespace
}  // namespace clew::code
