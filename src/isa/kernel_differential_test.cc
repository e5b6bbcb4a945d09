// SPDX-License-Identifier: Apache-2.0
// The interpreter against the kernel's own BPF: random programs as XDP programs under
// BPF_PROG_TEST_RUN, their data area in the packet. Needs the right to load programs.
#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "isa/builder.h"
#include "isa/interpreter.h"
#include "isa/print.h"
#include "isa/random_program.h"

namespace clew::isa {
namespace {

constexpr uint64_t kPrograms = 400;
constexpr uint32_t kDataSize = 256;
constexpr uint32_t kDataOffset = 1024;
constexpr uint32_t kWindowSize = 2048;

int64_t bpf(bpf_cmd command, bpf_attr& attributes) {
  return syscall(SYS_bpf, command, &attributes, sizeof attributes);
}

uint64_t address_of(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

struct Loaded {
  FileDescriptor program;
  int error = 0;  // errno when it is refused, and what the kernel's verifier says.
  std::string log;
};

Loaded load(const std::vector<Instruction>& code) {
  Loaded loaded;
  loaded.log.resize(1 << 20);
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_XDP;
  attributes.insns = address_of(code.data());
  attributes.insn_cnt = static_cast<uint32_t>(code.size());
  attributes.license = address_of("Apache-2.0");
  attributes.log_buf = address_of(loaded.log.data());
  attributes.log_size = static_cast<uint32_t>(loaded.log.size());
  attributes.log_level = 1;
  const int64_t result = bpf(BPF_PROG_LOAD, attributes);
  loaded.log.resize(std::strlen(loaded.log.c_str()));
  if (result < 0) loaded.error = errno;
  loaded.program = FileDescriptor(static_cast<int>(result));
  return loaded;
}

struct KernelRun {
  int error = 0;
  uint32_t result = 0;
  std::vector<uint8_t> data;
};

KernelRun run_in_kernel(const FileDescriptor& program, const std::vector<uint8_t>& data) {
  KernelRun run;
  run.data.resize(data.size());
  bpf_attr attributes{};
  attributes.test.prog_fd = static_cast<uint32_t>(program.get());
  attributes.test.data_in = address_of(data.data());
  attributes.test.data_size_in = static_cast<uint32_t>(data.size());
  attributes.test.data_out = address_of(run.data.data());
  attributes.test.data_size_out = static_cast<uint32_t>(data.size());
  attributes.test.repeat = 1;
  if (bpf(BPF_PROG_TEST_RUN, attributes) < 0) run.error = errno;
  run.result = attributes.test.retval;
  return run;
}

// The program starts with `lddw window %r8, kDataOffset`. An XDP program gets the same pointer from
// its context, and must compare it with the end of the packet; branches are relative and all below.
std::vector<Instruction> as_xdp(const Program& program) {
  Builder b;
  const Label in_packet = b.label();
  b.load(Size::Word, Register::R8, Register::R1, offsetof(xdp_md, data))
      .load(Size::Word, Register::R2, Register::R1, offsetof(xdp_md, data_end))
      .move(Register::R3, Register::R8)
      .alu(Alu::Add, Register::R3, kDataSize)
      .jump_if(Jump::LessOrEqual, Register::R3, Register::R2, in_packet)
      .move(Register::R0, 0)
      .exit()
      .bind(in_packet);
  std::vector<Instruction> code = b.finish("prologue")->code;
  code.insert(code.end(), program.code.begin() + 2, program.code.end());
  return code;
}

// Why programs cannot be run here, or nothing. Sign-extending moves came with Linux 6.6, as did all
// of the fourth version of the instruction set.
std::string why_not() {
  Builder b;
  b.move(Register::R0, 1).move_signed(Register::R0, Register::R0, 8).exit();
  const Loaded loaded = load(b.finish("trial")->code);
  if (loaded.error == EINVAL) return "this kernel lacks the fourth version of the instruction set";
  if (loaded.error != 0) return fmt::format("loading a program: {}", error_text(loaded.error));
  const KernelRun run = run_in_kernel(loaded.program, std::vector<uint8_t>(kDataSize));
  return run.error == 0 ? "" : fmt::format("running a program: {}", error_text(run.error));
}

std::vector<uint8_t> random_data(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<uint8_t> data(kDataSize);
  for (uint8_t& byte : data)
    byte = static_cast<uint8_t>(random());
  return data;
}

TEST(KernelDifferential, TheKernelComputesTheSame) {
  const std::string reason = why_not();
  if (!reason.empty()) GTEST_SKIP() << "NOT COMPARED WITH THE KERNEL: " << reason;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    const Program program = random_program({.seed = seed,
                                            .steps = 60,
                                            .data_offset = kDataOffset,
                                            .data_size_bytes = kDataSize,
                                            .context = false,
                                            .accessors = false,
                                            .kernel_rules = true});
    const std::vector<uint8_t> data = random_data(seed);
    std::vector<uint8_t> window(kWindowSize);
    std::copy(data.begin(), data.end(), window.begin() + kDataOffset);
    const Expected<Outcome> ours = interpret(program, {.window = window});
    ASSERT_TRUE(ours) << seed << ": " << ours.error().message;

    const Loaded loaded = load(as_xdp(program));
    ASSERT_EQ(loaded.error, 0) << seed << ": " << loaded.log << print(program);
    const KernelRun theirs = run_in_kernel(loaded.program, data);
    ASSERT_EQ(theirs.error, 0) << seed;
    const auto our_data = window.begin() + kDataOffset;
    EXPECT_EQ(static_cast<uint32_t>(ours->result), theirs.result) << seed << '\n' << print(program);
    EXPECT_EQ(std::vector<uint8_t>(our_data, our_data + kDataSize), theirs.data) << seed;
  }
}

}  // namespace
}  // namespace clew::isa
