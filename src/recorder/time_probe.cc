// SPDX-License-Identifier: Apache-2.0
#include "recorder/time_probe.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <utility>

#include <sys/socket.h>

#include "abi/recorder.h"
#include "abi/stub.h"

namespace clew::recorder {

namespace {

using abi::Register;

// None of them needs a longer form as a base, and rdtsc writes none.
constexpr std::array kFree = {Register::R11, Register::Rcx, Register::Rsi, Register::Rdi,
                              Register::R8,  Register::R9,  Register::R10};
constexpr std::array kWritten = {Register::Rax, Register::Rdx};
constexpr uint8_t kRedZone = 128;

class TimeProbe {
 public:
  TimeProbe(const code::Live& live, uint32_t cursor, NoteOfTime note)
      : live_(live), cursor_(cursor), note_(note) {
    if (note.is_behind) live_.registers.add(Register::Rax);  // Also when nobody looks at it.
    const bool is_told =
        live.registers.has(Register::Rdi) && (!note_.flags || live.registers.has(*note_.flags));
    if (!is_told) note_.in_front = abi::Transfer::None;
  }

  std::vector<uint8_t> run() {
    const std::optional<Register> free = take_free();
    r_ = free.value_or(note_.flags == Register::Rcx ? Register::Rsi : Register::Rcx);
    keep(free.has_value());
    cursor_to(0x8b);  // mov R, gs:[cursor]
    put_values();
    put_words();
    cursor_to(0x89);  // mov gs:[cursor], R
    give_back();
    return std::move(bytes_);
  }

 private:
  static uint8_t high(Register r) { return static_cast<uint8_t>(r) >> 3; }
  static uint8_t low(Register r) { return static_cast<uint8_t>(r) & 7; }
  void put(std::initializer_list<uint8_t> bytes) { bytes_.insert(bytes_.end(), bytes); }
  void put_word(uint32_t word) {
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(word));
    std::memcpy(bytes_.data() + at, &word, sizeof(word));
  }

  std::optional<Register> take_free() {
    for (const Register r : kFree) {
      if (live_.registers.has(r)) continue;
      live_.registers.add(r);
      return r;
    }
    return std::nullopt;
  }

  // mov r64, r64
  void move(Register to, Register from) {
    put({static_cast<uint8_t>(0x48 | high(to) << 2 | high(from)), 0x8b,
         static_cast<uint8_t>(0xc0 | low(to) << 3 | low(from))});
  }
  void push(Register r) {
    if (pushed_count_ == 0) put({0x48, 0x8d, 0x64, 0x24, 0x80});  // lea rsp, [rsp - 128]
    put({static_cast<uint8_t>(0x50 | low(r))});
    pushed_[pushed_count_++] = r;
  }

  // What is live of rax and rdx, and the register of the cursor, where none was free for it.
  void keep(bool has_free) {
    if (!has_free) push(r_);
    for (size_t i = 0; i < kWritten.size(); ++i) {
      if (!live_.registers.has(kWritten[i])) continue;
      kept_[i] = take_free();
      kept_[i] ? move(*kept_[i], kWritten[i]) : push(kWritten[i]);
    }
  }

  void give_back() {
    for (size_t i = 0; i < kWritten.size(); ++i)
      if (kept_[i]) move(kWritten[i], *kept_[i]);
    if (pushed_count_ == 0) return;
    while (pushed_count_ != 0)
      put({static_cast<uint8_t>(0x58 | low(pushed_[--pushed_count_]))});
    put({0x48, 0x8d, 0xa4, 0x24});  // lea rsp, [rsp + 128]
    put_word(kRedZone);
  }

  void cursor_to(uint8_t opcode) {
    put({0x65, static_cast<uint8_t>(0x48 | high(r_) << 2), opcode,
         static_cast<uint8_t>(low(r_) << 3 | 4), 0x25});
    put_word(cursor_);
  }

  // eax: the first and the last word. rdx: the counter without its low bits.
  void put_values() {
    put({0x0f, 0x31});            // rdtsc
    put({0x48, 0xc1, 0xe2, 32});  // shl rdx, 32
    put({0x48, 0x09, 0xc2});      // or rdx, rax
    put({0x0f, 0xb7, 0xc0});      // movzx eax, ax
    put({0x0d});                  // or eax, …
    put_word(abi::extended_word(abi::ExtendedRecord::Time, abi::kTimeWords, 0));
    put({0x48, 0xc1, 0xea, abi::kTimeLowBits});  // shr rdx, 16
  }

  void put_words() {
    go((abi::kTimeWords + 1) * abi::kRecordBytes);
    if (high(r_) != 0) put({0x41});
    put({0xc7, low(r_)});  // mov dword [R], 0
    put_word(0);
    store(Register::Rax);
    put_note();
    put({0x48, 0xc1, 0xca, abi::kTimeMiddleBits});  // ror rdx, 31
    put({0x48, 0x0f, 0xba, 0xea, 31});              // bts rdx, 31
    store(Register::Rdx);
    put({0x48, 0xc1, 0xea, 64 - abi::kTimeMiddleBits});  // shr rdx, 33
    put({0x0f, 0xba, 0xea, 31});                         // bts edx, 31
    store(Register::Rdx);
    store(Register::Rax);
    go((abi::kTimeWords - 1) * abi::kRecordBytes);
  }

  void put_note() {
    if (note_.in_front != abi::Transfer::None) {
      store(Register::Rdi);
      keep_bits(abi::kExtendedBit | abi::descriptor_of(UINT32_MAX));  // Like no record of a DAG.
      if (note_.flags) put_peeking(*note_.flags);
      set_bits(abi::note_in_front(note_.in_front, 0));
    } else if (note_.is_behind) {
      store_result();
      set_bits(abi::note_behind(0));
    } else {
      go(-static_cast<int>(abi::kRecordBytes));
      if (high(r_) != 0) put({0x41});
      put({0xc7, low(r_)});  // mov dword [R], …
      put_word(abi::note_in_front(abi::Transfer::None, 0));
    }
  }

  // Of rax as it was, which is in a register or on the stack.
  void store_result() {
    if (kept_[0]) return store(*kept_[0]);
    const auto* const pushed = std::find(pushed_.begin(), pushed_.end(), Register::Rax);
    const auto above = static_cast<size_t>(pushed_.begin() + pushed_count_ - 1 - pushed);
    const auto offset = static_cast<uint8_t>(above * sizeof(uint64_t));
    put({0x48, 0x87, 0x44, 0x24, offset});  // xchg [rsp + …], rax
    store(Register::Rax);
    put({0x48, 0x87, 0x44, 0x24, offset});
  }

  // The byte above the descriptor.
  void put_peeking(Register flags) {
    static_assert(abi::kDescriptorBits == 24 && abi::kNoteOfPeeking == 1U << 24);
    if (high(flags) != 0) put({0x41});
    put({0xf6, static_cast<uint8_t>(0xc0 | low(flags)), MSG_PEEK});  // test flags8, MSG_PEEK
    if (high(r_) != 0) put({0x41});
    put({0x0f, 0x95, static_cast<uint8_t>(0x40 | low(r_)), 3});  // setnz [R + 3]
  }

  void keep_bits(uint32_t bits) {
    if (high(r_) != 0) put({0x41});
    put({0x81, static_cast<uint8_t>(4 << 3 | low(r_))});  // and dword [R], …
    put_word(bits);
  }
  void set_bits(uint32_t bits) {
    if (high(r_) != 0) put({0x41});
    put({0x81, static_cast<uint8_t>(1 << 3 | low(r_))});  // or dword [R], …
    put_word(bits);
  }

  // add R16, …
  void go(int bytes) {
    put({0x66});
    if (high(r_) != 0) put({0x41});
    put({0x83, static_cast<uint8_t>(0xc0 | low(r_)), static_cast<uint8_t>(bytes)});
  }

  // The word in front of the one that was written last.
  void store(Register word) {
    go(-static_cast<int>(abi::kRecordBytes));
    const auto rex = static_cast<uint8_t>(0x40 | high(word) << 2 | high(r_));
    if (rex != 0x40) put({rex});
    put({0x89, static_cast<uint8_t>(low(word) << 3 | low(r_))});  // mov [R], …
  }

  code::Live live_;
  uint32_t cursor_;
  NoteOfTime note_;
  Register r_ = Register::R11;
  std::array<std::optional<Register>, kWritten.size()> kept_{};
  std::array<Register, kWritten.size() + 1> pushed_{};
  size_t pushed_count_ = 0;
  std::vector<uint8_t> bytes_;
};

}  // namespace

std::vector<uint8_t> time_probe(const code::Live& live, uint32_t cursor, NoteOfTime note) {
  return live.flags == 0 ? TimeProbe(live, cursor, note).run() : std::vector<uint8_t>();
}

}  // namespace clew::recorder
