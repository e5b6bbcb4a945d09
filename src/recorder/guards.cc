// SPDX-License-Identifier: Apache-2.0
#include "recorder/guards.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "abi/recorder.h"

namespace clew::recorder {

namespace {

constexpr std::array<std::string_view, 2> kCallbacks = {"__sanitizer_cov_trace_pc_guard",
                                                        "__sanitizer_cov_trace_pc"};

// What clew/guards.h has: a nop of five bytes, and a return.
constexpr std::array<uint8_t, 6> kBody = {0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3};
constexpr std::array<uint8_t, 4> kEndBranch = {0xf3, 0x0f, 0x1e, 0xfa};

bool is_named_as_callback(const target::Function& function) {
  return std::any_of(
      function.names.begin(), function.names.end(), [](const target::FunctionName& name) {
        return std::find(kCallbacks.begin(), kCallbacks.end(), name.linkage) != kCallbacks.end();
      });
}

// Another one does something, which would be left out.
bool has_our_body(const target::ModuleImage& image, uint64_t address) {
  for (const target::Section& section : image.sections()) {
    if (!section.executable || !section.contains(address)) continue;
    const auto bytes = image.bytes(section);
    if (!bytes || address - section.address > bytes->size()) return false;
    std::span<const uint8_t> rest = bytes->subspan(address - section.address);
    const auto begins_with = [&rest](std::span<const uint8_t> wanted) {
      return rest.size() >= wanted.size() && std::equal(wanted.begin(), wanted.end(), rest.begin());
    };
    if (begins_with(kEndBranch)) rest = rest.subspan(kEndBranch.size());
    return begins_with(kBody);
  }
  return false;
}

class GuardBytes {
 public:
  void put(std::initializer_list<uint8_t> bytes) { bytes_.insert(bytes_.end(), bytes); }
  void put_word(uint32_t word) {
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(word));
    std::memcpy(bytes_.data() + at, &word, sizeof(word));
  }
  // Returns where a displacement of one byte ends.
  size_t put_open(uint8_t opcode) {
    put({opcode, 0});
    return bytes_.size();
  }
  void lead_here(size_t open) { bytes_[open - 1] = static_cast<uint8_t>(bytes_.size() - open); }
  std::vector<uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<uint8_t> bytes_;
};

}  // namespace

bool Guards::are_in(const target::ModuleImage& image) {
  return std::any_of(image.functions().begin(), image.functions().end(), is_named_as_callback);
}

Expected<Guards> Guards::of(const target::ModuleImage& image) {
  Guards guards;
  for (const target::Function& function : image.functions()) {
    if (!is_named_as_callback(function)) continue;
    if (!has_our_body(image, function.address)) {
      return fail(ErrorCode::Refused,
                  fmt::format("{}: its {} is not the one of clew/guards.h [guards]",
                              std::string(image.name()), std::string(function.name)));
    }
    guards.callbacks_.push_back(function.address);
  }
  if (guards.callbacks_.empty()) {
    return fail(ErrorCode::NotFound,
                fmt::format("{} has no guards: its symbols have no {} [guards]",
                            std::string(image.name()), kCallbacks.front()));
  }
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;
  for (const target::Section& section : image.sections()) {
    if (!section.executable) continue;
    begin = std::min(begin, section.address);
    end = std::max(end, section.end());
  }
  guards.text_ = {begin, end - begin};
  return guards;
}

bool Guards::calls(uint64_t function) const {
  return std::find(callbacks_.begin(), callbacks_.end(), function) != callbacks_.end();
}

uint32_t Guards::ids() const {
  const uint64_t ids = (text_.size_bytes >> abi::kPathBits) + 1;
  return static_cast<uint32_t>(std::min<uint64_t>(ids, abi::kDagIdMax));
}

std::vector<uint8_t> Guards::probe(uint64_t load_bias, uint32_t first_id, uint32_t cursor) const {
  GuardBytes bytes;
  bytes.put({0x8b, 0x04, 0x24});  // mov eax, [rsp]
  bytes.put({0x2d});              // sub eax, text
  bytes.put_word(static_cast<uint32_t>(load_bias + text_.address));
  bytes.put({0x3d});  // cmp eax, size
  bytes.put_word(static_cast<uint32_t>(text_.size_bytes));
  const size_t out = bytes.put_open(0x73);  // jae out
  bytes.put({0x05});                        // add eax, first record
  bytes.put_word(abi::dag_record(first_id));
  bytes.put({0x41, 0x89, 0xe2});        // mov r10d, esp
  bytes.put({0x41, 0xc1, 0xe2, 0x05});  // shl r10d, 5
  bytes.put({0x41, 0xc1, 0xea, 0x08});  // shr r10d, 8
  bytes.put({0x41, 0x81, 0xca});        // or r10d, Frame
  bytes.put_word(abi::kFrameWord);
  bytes.put({0x49, 0xc1, 0xe2, 0x20});                    // shl r10, 32
  bytes.put({0x4c, 0x09, 0xd0});                          // or rax, r10
  bytes.put({0x65, 0x4c, 0x8b, 0x1c, 0x25});              // mov r11, gs:[cursor]
  bytes.put_word(cursor);                                 //
  bytes.put({0x66, 0x41, 0x83, 0xc3, 0x04});              // add r11w, 4
  bytes.put({0x41, 0xc7, 0x43, 0x08, 0x00, 0x00, 0x00});  // mov dword [r11 + 8], 0
  bytes.put({0x00});                                      //
  bytes.put({0x49, 0x89, 0x03});                          // mov [r11], rax
  bytes.put({0x66, 0x41, 0x83, 0xc3, 0x04});              // add r11w, 4
  bytes.put({0x65, 0x4c, 0x89, 0x1c, 0x25});              // mov gs:[cursor], r11
  bytes.put_word(cursor);
  bytes.lead_here(out);
  return bytes.take();
}

}  // namespace clew::recorder
