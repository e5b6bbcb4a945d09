// SPDX-License-Identifier: Apache-2.0
// What the verifier accepts is harmless, whoever wrote it. Bodies are mutated; mutants that are
// still accepted run in a forked child that may make no system call but those of memory and exit. A
// signal, a timeout, a changed register, control word or stack word is a hole in the verifier. The
// facts of rule R7 are compared with what the CPU computes.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/region.h"
#include "machine.h"
#include "mutants.h"
#include "native/print.h"
#include "trial.h"
#include "verify/instruction.h"
#include "verify/range.h"

namespace clew::native {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr uint64_t kControlMark = 0x5A5A'A5A5'1234'8765;

std::unique_ptr<Machine> small_machine(PointKind point = PointKind::Entry) {
  auto made = Machine::make({.point = point, .window_size_log2 = 12, .fuel = 20'000});
  EXPECT_TRUE(made.has_value());
  return std::move(*made);
}

// Runs the mutant with several inputs; false when something outside its window changed.
bool is_contained(Machine& on, const Mutant& mutant, uint64_t seed) {
  std::mt19937_64 random(seed);
  on.install_bytes(mutant.bytes, mutant.clobbers);
  for (uint32_t input = 0; input < 4; ++input) {
    for (uint8_t& byte : on.window())
      byte = static_cast<uint8_t>(random());
    RunArguments arguments = {};
    for (uint64_t& word : arguments.stack)
      word = random();
    const auto stack_before = arguments.stack;
    abi::SlotControl& control = on.slot();
    control.owner = kControlMark;
    for (uint64_t& word : control.reserved)
      word = kControlMark;
    const abi::SlotControl control_before = control;
    const RegisterFile before = random_registers(random);
    const RegisterFile after = on.run(before, arguments);
    const bool same_control = std::memcmp(&control, &control_before, sizeof(control)) == 0;
    if (after != before || arguments.stack != stack_before || !same_control) return false;
  }
  return true;
}

void expect_contained_at(PointKind point) {
  const auto on = small_machine(point);
  const std::vector<Code> codes = originals(*on);
  ASSERT_GT(codes.size(), 3U);
  const std::vector<Mutant> mutants = accepted_mutants(*on, codes, 30'000);
  ASSERT_GT(mutants.size(), 1500U);
  // Where the child is, for the message when it dies.
  auto* const progress = static_cast<volatile uint32_t*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(static_cast<void*>(const_cast<uint32_t*>(progress)), MAP_FAILED);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(120);
    if (!forbid_system_calls()) _exit(2);
    for (uint32_t i = 0; i < mutants.size(); ++i) {
      *progress = i;
      if (!is_contained(*on, mutants[i], i)) _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  const Mutant& last = mutants[*progress];
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
      << "status " << status << ", mutant " << *progress << " of " << mutants.size() << "\n"
      << print({.bytes = last.bytes, .calls = {}, .clobbers = last.clobbers, .guarded = false});
  munmap(const_cast<uint32_t*>(progress), 4096);
}

TEST(Soundness, AcceptedMutantsStayInTheirWindow) {
  for (const PointKind point : {PointKind::Entry, PointKind::Exit, PointKind::Offset}) {
    SCOPED_TRACE(static_cast<int>(point));
    expect_contained_at(point);
  }
}

// ---------------------------------------------------------------------------------------------
// Rule R7 against the CPU.

constexpr std::array<uint8_t, 4> kRegisters = {0, 1, 2, 3};  // rax rcx rdx rbx

// Random arithmetic on four registers that were loaded from the window, each kind of instruction
// that writes a register.
class Arithmetic {
 public:
  Arithmetic(uint64_t seed, const Machine& on, abi::RegisterSet clobbers)
      : random_(seed),
        window_(on.environment().window_address),
        address_(on.policy(clobbers).address),
        accessor_(on.accessor_entries()[static_cast<size_t>(abi::Accessor::ModuloSigned)]) {}

  Bytes make(uint32_t steps) {
    Bytes out;
    for (const uint8_t r : kRegisters)
      put_window(out, 0x8B, r, window_ + 1024 + 8U * r);
    for (uint32_t i = 0; i < steps; ++i)
      random_() % 2 == 0 ? put_step(out) : put_other_step(out);
    for (const uint8_t r : kRegisters)
      put_window(out, 0x89, r, window_ + 2048 + 8U * r);
    return out;
  }

 private:
  static void put_window(Bytes& out, uint8_t opcode, uint8_t r, uint32_t displacement) {
    out.insert(out.end(), {0x65, 0x48, opcode, static_cast<uint8_t>(r << 3 | 4), 0x25});
    put32(out, displacement);
  }
  static void put32(Bytes& out, uint32_t value) {
    for (uint32_t i = 0; i < 4; ++i)
      out.push_back(static_cast<uint8_t>(value >> (8 * i)));
  }
  uint8_t pick() { return kRegisters[random_() % kRegisters.size()]; }
  uint32_t value() { return static_cast<uint32_t>(random_()) >> (random_() % 32); }

  void put_step(Bytes& out) {
    const uint8_t a = pick();
    const uint8_t b = pick();
    const bool wide = random_() % 2 == 0;
    const auto pair = static_cast<uint8_t>(0xC0U | b << 3 | a);     // rm = a, reg = b
    const auto swapped = static_cast<uint8_t>(0xC0U | a << 3 | b);  // reg = a, rm = b
    if (wide) out.push_back(0x48);
    switch (random_() % 12) {
      case 0:
        out.insert(out.end(), {0x89, pair});
        return;
      case 1: {
        constexpr std::array<uint8_t, 5> kAlu = {0x01, 0x09, 0x21, 0x29, 0x31};
        out.insert(out.end(), {kAlu[random_() % kAlu.size()], pair});
        return;
      }
      case 2:
      case 3: {
        constexpr std::array<uint8_t, 5> kExtensions = {0, 1, 4, 5, 6};
        const uint8_t extension = kExtensions[random_() % kExtensions.size()];
        out.insert(out.end(), {0x81, static_cast<uint8_t>(0xC0U | extension << 3 | a)});
        return put32(out, value());
      }
      case 4: {
        out.insert(out.end(), {0x81, static_cast<uint8_t>(0xE0U | a)});  // and
        return put32(out, value());
      }
      case 5:
      case 6: {
        constexpr std::array<uint8_t, 5> kShifts = {0, 1, 4, 5, 7};
        const uint8_t extension = kShifts[random_() % kShifts.size()];
        out.insert(out.end(), {0xC1, static_cast<uint8_t>(0xC0U | extension << 3 | a),
                               static_cast<uint8_t>(random_() % 70)});
        return;
      }
      case 7:
        out.insert(out.end(), {0x69, swapped});
        return put32(out, value());
      case 8:
        if (wide) out.pop_back();
        out.insert(out.end(), {0x0F, static_cast<uint8_t>(0xB6U + random_() % 2), swapped});
        return;
      case 9:
        out.insert(out.end(), {0x0F, 0x44, swapped});  // cmovz
        return;
      case 10:
        if (!wide) out.push_back(0x48);
        out.insert(out.end(), {0x8D, static_cast<uint8_t>(0x80U | a << 3 | b)});  // lea
        return put32(out, value());
      default:
        out.insert(out.end(), {0xF7, static_cast<uint8_t>(0xD8U | a)});  // neg
        return;
    }
  }

  // The rest, each with its own sizes.
  void put_other_step(Bytes& out) {
    const uint8_t a = pick();
    const uint8_t b = pick();
    const uint8_t rex = random_() % 2 == 0 ? 0x48 : 0x40;
    const bool wide = rex == 0x48;
    const auto pair = static_cast<uint8_t>(0xC0U | b << 3 | a);
    const auto put = [&](std::initializer_list<uint8_t> bytes) {
      const bool none = *bytes.begin() == 0x40;  // Stands for no REX.
      out.insert(out.end(), bytes.begin() + (none ? 1 : 0), bytes.end());
    };
    switch (random_() % 15) {
      case 0:  // movsx
        return put({rex, 0x0F, static_cast<uint8_t>(0xBE + random_() % 2), pair});
      case 1:  // movsxd
        return put({0x48, 0x63, pair});
      case 2:  // bswap
        return put({rex, 0x0F, static_cast<uint8_t>(0xC8 | a)});
      case 3:  // bsr
        return put({0x48, 0x0F, 0xBD, pair});
      case 4:  // imul
        return put({rex, 0x0F, 0xAF, pair});
      case 5: {  // Shifts by cl.
        constexpr std::array<uint8_t, 5> kShifts = {0, 1, 4, 5, 7};
        const auto extension = kShifts[random_() % kShifts.size()];
        return put({rex, 0xD3, static_cast<uint8_t>(0xC0U | extension << 3 | a)});
      }
      case 6: {  // Operations and imul with an immediate of one byte.
        constexpr std::array<uint8_t, 5> kExtensions = {0, 1, 4, 5, 6};
        const auto extension = kExtensions[random_() % kExtensions.size()];
        if (random_() % 4 == 0)
          put({rex, 0x6B, pair});
        else
          put({rex, 0x83, static_cast<uint8_t>(0xC0U | extension << 3 | a)});
        return out.push_back(static_cast<uint8_t>(random_()));
      }
      case 7:  // mov of an immediate of 8 bytes, of 4, and of 4 with their sign.
        put({rex, static_cast<uint8_t>(0xB8 | a)});
        put32(out, value());
        if (wide) put32(out, value());
        return;
      case 8:
        put({0x48, 0xC7, static_cast<uint8_t>(0xC0 | a)});
        return put32(out, static_cast<uint32_t>(random_()));
      case 9:  // cmov of every condition; the flags are those of whatever was before.
        return put({rex, 0x0F, static_cast<uint8_t>(0x40 + random_() % 16), pair});
      case 10:
        return put_load(out, a);
      case 11:
        return put_atomic(out, a, wide);
      case 12:
        return random_() % 2 == 0 ? put({0x0F, 0x31}) : put({0x0F, 0x01, 0xF9});
      case 13:  // movq from xmm0 to xmm7
        return put({0x66, 0x48, 0x0F, 0x7E, static_cast<uint8_t>(0xC0 | random_() % 8 << 3 | a)});
      default:
        put({0xE8});
        return put32(out, static_cast<uint32_t>(accessor_ - (address_ + out.size() + 4)));
    }
  }

  // Loads of 1, 2 and 4 bytes with and without a sign, and operations with a word of memory.
  void put_load(Bytes& out, uint8_t a) {
    constexpr std::array<uint8_t, 5> kAlu = {0x03, 0x0B, 0x23, 0x2B, 0x33};
    out.push_back(0x65);
    switch (random_() % 4) {
      case 0:
        out.insert(out.end(), {0x0F, static_cast<uint8_t>(0xB6 + random_() % 2)});
        break;
      case 1:
        out.insert(out.end(), {0x48, 0x0F, static_cast<uint8_t>(0xBE + random_() % 2)});
        break;
      case 2:
        out.push_back(0x8B);
        break;
      default:
        if (random_() % 2 == 0) out.push_back(0x48);
        out.push_back(kAlu[random_() % kAlu.size()]);
        break;
    }
    put_place(out, a);
  }

  // xadd, cmpxchg and xchg, which write registers besides memory.
  void put_atomic(Bytes& out, uint8_t a, bool wide) {
    const uint64_t which = random_() % 3;
    if (which != 2) out.push_back(0xF0);
    out.push_back(0x65);
    if (wide) out.push_back(0x48);
    if (which == 0) out.insert(out.end(), {0x0F, 0xC1});
    if (which == 1) out.insert(out.end(), {0x0F, 0xB1});
    if (which == 2) out.push_back(0x87);
    put_place(out, a);
  }

  // gs:[a word of random bytes]
  void put_place(Bytes& out, uint8_t reg) {
    out.insert(out.end(), {static_cast<uint8_t>(reg << 3 | 4), 0x25});
    put32(out, window_ + 1024 + 8 * static_cast<uint32_t>(random_() % 16));
  }

  std::mt19937_64 random_;
  uint32_t window_;
  uint64_t address_;
  uint64_t accessor_;
};

// What is known of the registers behind the last instruction.
verify::Ranges ranges_of(const Bytes& bytes) {
  verify::Ranges ranges;
  for (size_t at = 0; at < bytes.size();) {
    const auto read = verify::decode(std::span(bytes).subspan(at));
    EXPECT_TRUE(read.has_value());
    if (!read) break;
    ranges.apply(*read);
    at += read->length_bytes;
  }
  return ranges;
}

TEST(Soundness, ComputedValuesLieInTheirRanges) {
  const auto on = small_machine();
  const auto clobbers = abi::RegisterSet(0x000F);
  std::mt19937_64 random(3);
  uint32_t bounded = 0;
  for (uint64_t seed = 0; seed < 12000; ++seed) {
    const Bytes bytes = Arithmetic(seed, *on, clobbers).make(10);
    const auto verified = verify::check(bytes, on->policy(clobbers));
    ASSERT_TRUE(verified.has_value()) << verified.error().message;
    const verify::Ranges ranges = ranges_of(bytes);
    on->install_bytes(bytes, clobbers);
    for (uint32_t input = 0; input < 8; ++input) {
      for (uint32_t word = 0; word < 16; ++word) {
        const uint64_t value = random() >> (random() % 64);
        std::memcpy(on->window().data() + 1024 + 8 * word, &value, 8);
      }
      RunArguments arguments = {};
      for (uint64_t& vector : arguments.vectors)
        vector = random();
      on->run(random_registers(random), arguments);
      for (const uint8_t r : kRegisters) {
        uint64_t value = 0;
        std::memcpy(&value, on->window().data() + 2048 + 8U * r, 8);
        const verify::Range& range = ranges.of(static_cast<abi::Register>(r));
        if (range != verify::Range{}) ++bounded;
        ASSERT_TRUE(range.contains(value))
            << "seed " << seed << " register " << unsigned{r} << " value " << value << " range "
            << range.low << ".." << range.high << " zero bits " << range.zero_bits << "\n"
            << print({.bytes = bytes, .calls = {}, .clobbers = clobbers, .guarded = false});
      }
    }
  }
  EXPECT_GT(bounded, 40'000U);
}

}  // namespace
}  // namespace clew::native
