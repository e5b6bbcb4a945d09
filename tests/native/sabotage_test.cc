// SPDX-License-Identifier: Apache-2.0
// A translator that goes wrong is caught. Every body of many programs is spoilt in every place
// where one kind of mistake can be made; the verifier must refuse each single one.
#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "abi/calling.h"
#include "abi/region.h"
#include "isa/assembler.h"
#include "isa/random_program.h"
#include "machine.h"
#include "native/print.h"
#include "verify/instruction.h"

namespace clew::native {
namespace {

using Bytes = std::vector<uint8_t>;

struct Body {
  Bytes bytes;
  verify::Policy policy;
  std::vector<verify::DeclaredFact> facts = {};
};

struct Place {
  size_t offset;
  verify::Instruction read;
};

std::vector<Place> places(const Bytes& bytes) {
  std::vector<Place> out;
  for (size_t at = 0; at < bytes.size();) {
    const auto read = verify::decode(std::span(bytes).subspan(at));
    EXPECT_TRUE(read.has_value());
    if (!read) break;
    out.push_back({at, *read});
    at += read->length_bytes;
  }
  return out;
}

bool is_memory(const verify::Operand& operand) {
  return operand.kind == verify::Operand::Kind::Memory;
}

bool writes_memory(const verify::Instruction& i) {
  return is_memory(i.first) && i.operation != verify::Operation::Compare;
}

void put32(Bytes& bytes, size_t at, uint32_t value) {
  std::memcpy(&bytes[at], &value, 4);
}

// A gs operand's displacement is the last thing before the immediate, if there is one.
size_t displacement_at(const Bytes& bytes, const Place& place) {
  const auto displacement = static_cast<uint32_t>(place.read.memory.displacement);
  for (size_t at = place.offset + place.read.length_bytes - 4; at > place.offset; --at) {
    uint32_t value = 0;
    std::memcpy(&value, &bytes[at], 4);
    if (value == displacement) return at;
  }
  ADD_FAILURE() << "no displacement";
  return place.offset;
}

// With masks, and with comparisons.
class Sabotage : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    auto made = Machine::make({.point = PointKind::Entry,
                               .window_size_log2 = 13,
                               .fuel = 10'000,
                               .branch_guards = GetParam()});
    ASSERT_TRUE(made.has_value());
    machine_ = std::move(*made);
    for (uint64_t seed = 1; seed <= 60; ++seed) {
      add(isa::random_program({.seed = seed, .steps = 25}));
    }
    const char* const texts[] = {
        "mov %r3, 40\nagain:\nlddw window %r4, 0x400\nldxdw %r2, [%r4]\nadd %r2, %r3\n"
        "stxdw [%r4], %r2\nsub %r3, 1\njne %r3, 0, again\nmov %r0, 0\nexit",
        "mov %r6, 9\na:\nmov %r7, 9\nb:\nmov %r1, %r7\nmov %r2, 3\ncall modulo_unsigned\n"
        "lddw window %r4, 0x400\nldxdw %r2, [%r4]\nadd %r2, %r0\nstxdw [%r4], %r2\nsub %r7, 1\n"
        "jne %r7, 0, b\nsub %r6, 1\njne %r6, 0, a\nmov %r0, 0\nexit",
        "ldxdw %r2, [%r1]\nstxw [%r2+4], %r2\nstb [%r2+200], 1\nmov %r0, 0\nexit",
        "ldxdw %r2, [%r1]\nldxdw %r3, [%r1+8]\nlock add [%r2], %r3\nlock fetch xor [%r2+8], %r3\n"
        "mov %r0, 0\nexit",
        // A list of pointers in the window is walked.
        "lddw window %r2, 0x400\nagain:\nldxdw %r3, [%r2+8]\nstxdw [%r2+16], %r3\n"
        "ldxdw %r2, [%r2]\njne %r2, 0, again\nmov %r0, 0\nexit",
    };
    for (const char* text : texts) {
      const auto program = isa::assemble(text);
      ASSERT_TRUE(program.has_value()) << program.error().message;
      add(*program);
    }
    ASSERT_GT(bodies_.size(), 30U);
  }

  void add(const isa::Program& program) {
    const auto code = translate(program, machine_->environment(), {});
    if (!code) return;  // It reads a field that entry points lack.
    Body body = {.bytes = code->bytes, .policy = machine_->policy(code->clobbers)};
    for (const DeclaredFact& fact : code->facts)
      body.facts.push_back({fact.offset_bytes, fact.in, fact.high});
    body.policy.facts = body.facts;
    ASSERT_TRUE(relocate(*code, body.policy.address, machine_->accessor_entries(), body.bytes));
    ASSERT_TRUE(verify::check(body.bytes, body.policy).has_value());
    bodies_.push_back(std::move(body));
  }

  // Applies `spoil` at every instruction where it can be applied; each result must be refused.
  uint32_t expect_all_refused(const std::function<bool(Body& body, const Place& place)>& spoil) {
    uint32_t tried = 0;
    for (const Body& body : bodies_) {
      for (const Place& place : places(body.bytes)) {
        Body spoilt = body;
        spoilt.policy.facts = spoilt.facts;
        if (!spoil(spoilt, place)) continue;
        ++tried;
        EXPECT_FALSE(verify::check(spoilt.bytes, spoilt.policy).has_value())
            << "byte " << place.offset << "\n"
            << print({.bytes = spoilt.bytes, .calls = {}, .clobbers = {}, .guarded = false});
      }
    }
    return tried;
  }

  std::unique_ptr<Machine> machine_;
  std::vector<Body> bodies_;
};

TEST_P(Sabotage, AWrongDisplacementIsCaught) {
  const uint32_t tried = expect_all_refused([](Body& body, const Place& place) {
    const verify::Memory& memory = place.read.memory;
    const auto window = body.policy.window_address;
    const bool in_window = memory.gs && static_cast<uint32_t>(memory.displacement) >= window;
    if (!in_window) return false;
    const uint32_t end = window + (1U << body.policy.window_size_log2) + abi::kWindowSlackBytes;
    put32(body.bytes, displacement_at(body.bytes, place), end);
    return true;
  });
  EXPECT_GT(tried, 300U);
}

TEST_P(Sabotage, AStoreToTheSlotIsCaught) {
  const uint32_t tried = expect_all_refused([](Body& body, const Place& place) {
    if (!place.read.memory.gs || !writes_memory(place.read)) return false;
    put32(body.bytes, displacement_at(body.bytes, place), body.policy.slot_address + 8);
    return true;
  });
  EXPECT_GT(tried, 200U);
}

TEST_P(Sabotage, AMissingMaskIsCaught) {
  const uint32_t tried = expect_all_refused([](Body& body, const Place& place) {
    // The mask of a pointer in r10, which nothing else bounds: `and r10d, imm32`.
    const auto mask = (1U << body.policy.window_size_log2) - 1;
    const bool masks = place.read.operation == verify::Operation::And && place.read.has_immediate &&
                       place.read.first.in == abi::Register::R10 &&
                       (place.read.immediate | 7U) == mask;
    if (!masks) return false;
    put32(body.bytes, place.offset + place.read.length_bytes - 4, 0xFFFF'FFFF);
    return true;
  });
  EXPECT_GE(tried, 3U);
}

TEST_P(Sabotage, ALooseComparisonIsCaught) {
  const uint32_t tried = expect_all_refused([](Body& body, const Place& place) {
    const auto limit = (1U << body.policy.window_size_log2) - 1;
    const bool bounds = place.read.operation == verify::Operation::Compare &&
                        place.read.size_bytes == 8 && place.read.has_immediate &&
                        place.read.immediate == limit;
    if (!bounds) return false;
    put32(body.bytes, place.offset + place.read.length_bytes - 4, 0x7FFF'FFFF);
    return true;
  });
  EXPECT_EQ(tried > 0, GetParam());
}

// Each fact that the code rests on, a little lower than the truth.
TEST_P(Sabotage, AFalseFactIsCaught) {
  uint32_t tried = 0;
  for (const Body& body : bodies_) {
    for (size_t i = 0; i < body.facts.size(); ++i) {
      if (body.facts[i].high == 0) continue;
      Body spoilt = body;
      --spoilt.facts[i].high;
      spoilt.policy.facts = spoilt.facts;
      ++tried;
      EXPECT_FALSE(verify::check(spoilt.bytes, spoilt.policy).has_value())
          << "fact at byte " << spoilt.facts[i].offset_bytes;
    }
  }
  EXPECT_GT(tried, 0U);
}

TEST_P(Sabotage, AnUnsavedRegisterIsCaught) {
  const uint32_t tried = expect_all_refused([](Body& body, const Place& place) {
    const bool writes = place.read.first.kind == verify::Operand::Kind::Register &&
                        place.read.operation != verify::Operation::Compare &&
                        place.read.operation != verify::Operation::Test &&
                        place.read.first.in != abi::Register::R10;
    if (!writes) return false;
    const auto without = static_cast<uint16_t>(body.policy.clobbers.bits() &
                                               ~(1U << static_cast<unsigned>(place.read.first.in)));
    body.policy.clobbers = abi::RegisterSet(without);
    return true;
  });
  EXPECT_GT(tried, 300U);
}

TEST_P(Sabotage, ACheapOrMissingChargeIsCaught) {
  const auto is_charge = [](const Place& place) {
    return place.read.operation == verify::Operation::Subtract && place.read.has_immediate &&
           place.read.first.in == abi::kFuelRegister && place.read.length_bytes == 7;
  };
  const uint32_t cheap = expect_all_refused([&](Body& body, const Place& place) {
    if (!is_charge(place)) return false;
    put32(body.bytes, place.offset + 3, static_cast<uint32_t>(place.read.immediate) - 1);
    return true;
  });
  EXPECT_GE(cheap, 3U);
  const uint32_t missing = expect_all_refused([&](Body& body, const Place& place) {
    if (!is_charge(place)) return false;
    const Bytes other = {0x49, 0x81, 0xC2, 0, 0, 0, 0};  // add r10, 0
    std::copy(other.begin(), other.end(),
              body.bytes.begin() + static_cast<ptrdiff_t>(place.offset));
    return true;
  });
  EXPECT_EQ(missing, cheap);
}

TEST_P(Sabotage, AWrongCallOrBranchTargetIsCaught) {
  const uint32_t calls = expect_all_refused([](Body& body, const Place& place) {
    if (place.read.operation != verify::Operation::Call) return false;
    put32(body.bytes, place.offset + 1, static_cast<uint32_t>(place.read.branch) + 1);
    return true;
  });
  EXPECT_GT(calls, 5U);
  const uint32_t branches = expect_all_refused([](Body& body, const Place& place) {
    const bool near = place.read.operation == verify::Operation::Jump ||
                      place.read.operation == verify::Operation::JumpIf;
    if (!near || place.read.length_bytes != 2) return false;
    body.bytes[place.offset + 1] = 0xFF;  // Into the branch itself.
    return true;
  });
  EXPECT_GT(branches, 30U);
}

TEST_P(Sabotage, AMisalignedLockIsCaught) {
  const uint32_t tried = expect_all_refused([](Body& body, const Place& place) {
    const bool locks = place.read.lock || place.read.operation == verify::Operation::Exchange;
    if (!locks) return false;
    const size_t at = displacement_at(body.bytes, place);
    put32(body.bytes, at, static_cast<uint32_t>(place.read.memory.displacement) + 2);
    return true;
  });
  EXPECT_GT(tried, 10U);
}

INSTANTIATE_TEST_SUITE_P(Guards, Sabotage, testing::Bool());

}  // namespace
}  // namespace clew::native
