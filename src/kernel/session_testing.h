// SPDX-License-Identifier: Apache-2.0
// For tests of D sessions: clauses written by hand, and a session that runs them. What needs a
// kernel that takes BPF programs skips loudly without one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "abi/machine/accessor.h"
#include "abi/machine/tables.h"
#include "abi/machine/window.h"
#include "isa/builder.h"
#include "kernel/bpf.h"
#include "kernel/machine_session.h"

namespace clew::kernel {

// A clause: calls of accessors with constants or the values of earlier ones, then its record.
class Clause {
 public:
  using Register = isa::Register;

  Clause() : fault_(b_.label()) {}

  isa::Builder& code() { return b_; }

  // r2… = constants, then the call; the result is in r0. A fault ends the clause.
  Clause& call(abi::MachineAccessor accessor, const std::vector<uint64_t>& arguments = {}) {
    auto to = static_cast<unsigned>(Register::R2);
    for (const uint64_t value : arguments)
      b_.load_constant(static_cast<Register>(to++), value);
    return call_loaded(accessor);
  }
  // The same with r2… as they are.
  Clause& call_loaded(abi::MachineAccessor accessor) {
    b_.load_window(Register::R1, 0).call(static_cast<abi::Accessor>(accessor));
    return check_fault();
  }
  Clause& check_fault() {
    const isa::Label fine = b_.label();
    b_.load_window(Register::R1, 0)
        .load(isa::Size::Double, Register::R1, Register::R1,
              static_cast<int32_t>(offsetof(abi::MachineWindowHeader, fault)))
        .jump_if(isa::Jump::Equal, Register::R1, 0, fine)
        .move(Register::R2, static_cast<int32_t>(b_.size()))
        .jump(fault_)
        .bind(fine);
    return *this;
  }
  Clause& builtin(abi::MachineBuiltin builtin) {
    return call(abi::MachineAccessor::BuiltinInteger, {static_cast<uint64_t>(builtin)});
  }
  // r0 = arg<index>
  Clause& argument(uint32_t index) {
    return builtin(
        static_cast<abi::MachineBuiltin>(static_cast<uint32_t>(abi::MachineBuiltin::Arg0) + index));
  }
  // Goes to `other` in all processes but this one.
  Clause& only_ours(isa::Label other) {
    builtin(abi::MachineBuiltin::Pid);
    b_.jump_if(isa::Jump::NotEqual, Register::R0, static_cast<int32_t>(getpid()), other);
    return *this;
  }
  // r0 becomes word `index` of the record.
  Clause& record(uint32_t index) { return put(word_offset(index)); }
  // r0 to the window.
  Clause& put(uint32_t offset) {
    b_.load_window(Register::R5, offset).store(isa::Size::Double, Register::R5, 0, Register::R0);
    return *this;
  }
  Clause& put(uint32_t offset, uint64_t value) {
    b_.load_constant(Register::R0, value);
    return put(offset);
  }
  // A text of at most 7 bytes, as a word of the window.
  Clause& text(uint32_t offset, const std::string& text) {
    uint64_t word = 0;
    for (size_t i = 0; i < text.size() && i < 8; ++i)
      word |= static_cast<uint64_t>(static_cast<uint8_t>(text[i])) << (8 * i);
    return put(offset, word);
  }
  Clause& commit(uint32_t words) {
    return call(abi::MachineAccessor::Commit, {sizeof(abi::MachineRecordHeader) + 8 * words});
  }

  isa::Program finish() {
    const isa::Label end = b_.label();
    b_.jump(end)
        .bind(fault_)
        .load_window(Register::R5, 0)
        .store(isa::Size::Double, Register::R5,
               static_cast<int32_t>(offsetof(abi::MachineWindowHeader, fault_pc)), Register::R2)
        .bind(end)
        .move(Register::R0, 0)
        .exit();
    return *b_.finish("clause");
  }

  static constexpr uint32_t word_offset(uint32_t index) {
    return abi::kMachineRecordOffset + static_cast<uint32_t>(sizeof(abi::MachineRecordHeader)) +
           8 * index;
  }

 private:
  isa::Builder b_;
  isa::Label fault_;
};

inline Probe begin_probe() {
  Probe p;
  p.id = kBeginProbe;
  p.provider = "dtrace";
  p.name = "BEGIN";
  return p;
}
inline Probe end_probe() {
  Probe p = begin_probe();
  p.id = kEndProbe;
  p.name = "END";
  return p;
}
inline Probe syscall_probe(uint32_t number, bool is_return = false) {
  Probe p;
  p.id = 100 + 2 * number + (is_return ? 1 : 0);
  p.provider = "syscall";
  p.module = "vmlinux";
  p.function = "call" + std::to_string(number);
  p.name = is_return ? "return" : "entry";
  p.kind = is_return ? AttachKind::SyscallReturn : AttachKind::SyscallEntry;
  p.number = number;
  return p;
}

struct Record {
  abi::MachineRecordHeader header{};
  std::vector<uint8_t> bytes;  // With the header.

  [[nodiscard]] uint64_t word(uint32_t index) const {
    uint64_t value = 0;
    const size_t offset = sizeof(abi::MachineRecordHeader) + 8 * size_t{index};
    if (offset + 8 <= bytes.size()) std::memcpy(&value, bytes.data() + offset, 8);
    return value;
  }
  [[nodiscard]] std::string text(uint32_t index) const {
    const size_t offset = sizeof(abi::MachineRecordHeader) + 8 * size_t{index};
    const auto* begin = reinterpret_cast<const char*>(bytes.data() + offset);
    return {begin, strnlen(begin, bytes.size() - offset)};
  }
};

// Where tests keep what they put into windows; literals and this-> variables are not used.
inline constexpr uint32_t kTestRoom = 0x6000;

class SessionTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto array = create_array("trial", 8);
    if (!array) GTEST_SKIP() << "NOT TESTED IN THE KERNEL: " << array.error().message;
  }

  static MachinePrograms programs_of(std::vector<isa::Program> clauses) {
    MachinePrograms programs;
    programs.clauses = std::move(clauses);
    programs.scratch_begin.assign(programs.clauses.size(), 0x8000);
    programs.principal_bytes = 1U << 20;
    programs.aggregation_bytes = 1U << 20;
    programs.local_begin = abi::kMachineLocalOffset;
    return programs;
  }

  void load(MachinePrograms programs, std::vector<MachineEnabling> enablings) {
    Expected<MachineSession> session =
        MachineSession::load(std::move(programs), std::move(enablings), &log_);
    ASSERT_TRUE(session) << session.error().message << '\n'
                         << log_.substr(log_.size() - std::min<size_t>(log_.size(), 12000));
    session_ = std::make_unique<MachineSession>(std::move(*session));
  }

  // Loads, fires BEGIN with these clauses, and reads.
  void run(std::vector<isa::Program> clauses) { run(programs_of(std::move(clauses))); }
  void run(MachinePrograms programs) {
    std::vector<uint32_t> all;
    for (uint32_t i = 0; i < programs.clauses.size(); ++i) {
      const auto& errors = programs.error_clauses;
      if (std::find(errors.begin(), errors.end(), i) == errors.end()) all.push_back(i);
    }
    load(std::move(programs), {{begin_probe(), all}});
    if (session_ == nullptr) return;
    const Expected<void> begun = session_->begin();
    ASSERT_TRUE(begun) << begun.error().message;
    read();
  }

  void read() {
    session_->read([this](std::span<const uint8_t> bytes) {
      Record record;
      record.bytes.assign(bytes.begin(), bytes.end());
      std::memcpy(&record.header, bytes.data(), sizeof record.header);
      records_.push_back(std::move(record));
    });
  }

  std::string log_;
  std::unique_ptr<MachineSession> session_;
  std::vector<Record> records_;
};

}  // namespace clew::kernel
