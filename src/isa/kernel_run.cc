// SPDX-License-Identifier: Apache-2.0
// Loading and running by bpf(2).
#include "isa/kernel_run.h"

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "isa/builder.h"

namespace clew::isa {
namespace {

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

KernelRun run_loaded(const FileDescriptor& program, const std::vector<uint8_t>& data) {
  KernelRun run;
  run.data.resize(data.size());
  bpf_attr attributes{};
  attributes.test.prog_fd = static_cast<uint32_t>(program.get());
  attributes.test.data_in = address_of(data.data());
  attributes.test.data_size_in = static_cast<uint32_t>(data.size());
  attributes.test.data_out = address_of(run.data.data());
  attributes.test.data_size_out = static_cast<uint32_t>(data.size());
  attributes.test.repeat = 1;
  if (bpf(BPF_PROG_TEST_RUN, attributes) < 0) run.problem = error_text(errno);
  run.result = attributes.test.retval;
  return run;
}

// An XDP program gets the pointer to its data from its context, and must compare it with the end of
// the packet; branches are relative and all below.
std::vector<Instruction> as_xdp(const Program& program, size_t data_size) {
  Builder b;
  const Label in_packet = b.label();
  b.load(Size::Word, Register::R8, Register::R1, offsetof(xdp_md, data))
      .load(Size::Word, Register::R2, Register::R1, offsetof(xdp_md, data_end))
      .move(Register::R3, Register::R8)
      .alu(Alu::Add, Register::R3, static_cast<int32_t>(data_size))
      .jump_if(Jump::LessOrEqual, Register::R3, Register::R2, in_packet)
      .move(Register::R0, 0)
      .exit()
      .bind(in_packet);
  std::vector<Instruction> code = b.finish("prologue")->code;
  code.insert(code.end(), program.code.begin() + 2, program.code.end());
  return code;
}

}  // namespace

KernelRun run_in_kernel(const Program& program, const std::vector<uint8_t>& data) {
  const Loaded loaded = load(as_xdp(program, data.size()));
  if (loaded.error != 0) return {.problem = error_text(loaded.error) + ": " + loaded.log};
  return run_loaded(loaded.program, data);
}

// Sign-extending moves came with Linux 6.6, as did all of the fourth version of the instruction
// set.
std::string why_not_in_kernel() {
  Builder b;
  b.move(Register::R0, 1).move_signed(Register::R0, Register::R0, 8).exit();
  const Loaded loaded = load(b.finish("trial")->code);
  if (loaded.error == EINVAL) return "this kernel lacks the fourth version of the instruction set";
  if (loaded.error != 0) return fmt::format("loading a program: {}", error_text(loaded.error));
  const KernelRun run = run_loaded(loaded.program, std::vector<uint8_t>(64));
  return run.problem.empty() ? "" : "running a program: " + run.problem;
}

}  // namespace clew::isa
