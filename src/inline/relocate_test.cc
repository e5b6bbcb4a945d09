// SPDX-License-Identifier: Apache-2.0
// Copies of windows must do what the originals do. Windows of installed binaries are run in a child
// process twice, in place and from a copy, from the same random registers, flags and memory.
#include "inline/relocate.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <Zydis/Zydis.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/ucontext.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "inline/decode.h"
#include "inline/image_text.h"
#include "inline/text_cases.h"
#include "inline/windows.h"

namespace clew::inline_ {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kOriginal = 2 * kPage;  // Where windows run in place, in the sandbox.
constexpr uint64_t kCopy = 8 * kPage;      // Where their copies run.
constexpr uint64_t kCodeSize = 16 * kPage;
constexpr uint64_t kDataSize = 4 * kPage;
constexpr uint8_t kInt3 = 0xcc;

// Everything that an instruction may change, but for memory.
struct Registers {
  std::array<int64_t, 16>
      general{};  // As in gregset_t: r8..r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp
  uint64_t flags = 0;
  std::array<uint8_t, 256> xmm{};
  std::array<uint8_t, 128> x87{};
  bool operator==(const Registers&) const = default;
};

struct Outcome {
  int signal = 0;
  uint64_t address = 0;  // Where it stopped.
  Registers registers;
};

// Runs code with chosen registers until it traps or faults. One per child process: the handlers
// need global state.
struct Machine {
  uint8_t* code = nullptr;
  uint8_t* data = nullptr;
  Registers wanted;
  uint64_t start = 0;
  Outcome outcome;
  mcontext_t home{};
  std::vector<uint8_t> home_fp;
  bool running = false;
};
Machine machine;

constexpr uint64_t kFlagsMask = 0x8d5;  // CF PF AF ZF SF OF

void load(mcontext_t& context, const Registers& registers) {
  for (size_t i = 0; i < registers.general.size(); ++i)
    context.gregs[i] = registers.general[i];
  context.gregs[REG_EFL] = static_cast<int64_t>(registers.flags | 0x202);
  std::memcpy(context.fpregs->_xmm, registers.xmm.data(), registers.xmm.size());
}

Registers store(const mcontext_t& context) {
  Registers registers;
  for (size_t i = 0; i < registers.general.size(); ++i)
    registers.general[i] = context.gregs[i];
  registers.flags = static_cast<uint64_t>(context.gregs[REG_EFL]) & kFlagsMask;
  std::memcpy(registers.xmm.data(), context.fpregs->_xmm, registers.xmm.size());
  std::memcpy(registers.x87.data(), context.fpregs->_st, registers.x87.size());
  return registers;
}

void on_signal(int number, siginfo_t*, void* raw) {
  auto& context = static_cast<ucontext_t*>(raw)->uc_mcontext;
  if (!machine.running) {
    machine.running = true;
    std::memcpy(&machine.home, &context, sizeof(context));
    machine.home_fp.resize(sizeof(*context.fpregs));
    std::memcpy(machine.home_fp.data(), context.fpregs, machine.home_fp.size());
    load(context, machine.wanted);
    context.gregs[REG_RIP] = static_cast<int64_t>(machine.start);
    return;
  }
  machine.running = false;
  machine.outcome = {number, static_cast<uint64_t>(context.gregs[REG_RIP]), store(context)};
  auto* fp = context.fpregs;
  std::memcpy(&context, &machine.home, sizeof(context));
  context.fpregs = fp;
  std::memcpy(fp, machine.home_fp.data(), machine.home_fp.size());
}

void set_up_machine() {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT;
  void* code = mmap(nullptr, kCodeSize, PROT_READ | PROT_WRITE | PROT_EXEC, kFlags, -1, 0);
  void* data = mmap(nullptr, kDataSize, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (code == MAP_FAILED || data == MAP_FAILED) _exit(3);
  machine.code = static_cast<uint8_t*>(code);
  machine.data = static_cast<uint8_t*>(data);
  static std::array<uint8_t, 65536> stack;
  const stack_t alternative = {.ss_sp = stack.data(), .ss_flags = 0, .ss_size = stack.size()};
  sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (const int number : {SIGTRAP, SIGSEGV, SIGBUS, SIGILL, SIGFPE}) {
    sigaction(number, &action, nullptr);
  }
}

Outcome run(uint64_t start, const Registers& registers) {
  machine.wanted = registers;
  machine.start = start;
  asm volatile("int3" ::: "memory");
  return machine.outcome;
}

uint64_t address_of(const uint8_t* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

// gregset_t order of the hardware registers rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8..r15.
constexpr std::array<int, 16> kContextIndex = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                               REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                               REG_R12, REG_R13, REG_R14, REG_R15};

class Differ {
 public:
  explicit Differ(uint64_t seed) : random_(seed) {
    ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  }

  // Moves the window into the sandbox: same instructions, with targets inside the sandbox.
  void transplant(const Window& window) {
    window_ = window;
    window_.address = address_of(machine.code) + kOriginal + 64;
    window_.window_class = WindowClass::OwnBytes;
    for (Displaced& displaced : window_.instructions)
      retarget(displaced);
  }

  // An empty string, or what differs.
  std::string compare() {
    const Registers registers = random_registers();
    std::array<uint8_t, kDataSize> before;
    fill_random(before);
    lay_out(before);
    const Outcome expected = run(window_.address, registers);
    std::array<uint8_t, kDataSize> expected_data;
    std::memcpy(expected_data.data(), machine.data, kDataSize);
    lay_out(before);
    const uint64_t destination = address_of(machine.code) + kCopy + (random_() & 255);
    const auto copy = relocate(window_, {}, {.destination = destination}, {});
    if (!copy) return copy.error().message;
    if (copy->bytes.size() > kPage) return "too long";
    std::memcpy(reinterpret_cast<void*>(destination), copy->bytes.data(), copy->bytes.size());
    // The copy stands alone: it must reach the instruction behind the window, not the window.
    std::memset(reinterpret_cast<void*>(window_.address), kInt3, window_.size_bytes);
    Outcome actual = run(destination, registers);
    actual.address = original_address(actual.address, destination, *copy);
    if (actual.signal != expected.signal) {
      return "signal " + std::to_string(actual.signal) + " for " + std::to_string(expected.signal);
    }
    // A call to nowhere faults before it pushes, its copy behind the push: the program dies anyhow.
    if (expected.signal == SIGSEGV && is_call_at(expected.address)) return "";
    if (expected.signal == SIGTRAP) ++completed_;
    if (actual.address != expected.address) return "stops elsewhere";
    if (actual.registers != expected.registers) return "registers";
    return std::memcmp(expected_data.data(), machine.data, kDataSize) == 0 ? "" : "memory";
  }

  [[nodiscard]] const Window& window() const { return window_; }
  // Comparisons in which the original ran to a trap behind the window.
  [[nodiscard]] unsigned completed() const { return completed_; }

 private:
  [[nodiscard]] bool is_call_at(uint64_t address) const {
    const Displaced& last = window_.instructions.back();
    const bool is_call = last.form == Form::IndirectCall || last.form == Form::RipIndirectCall;
    return is_call && window_.address + last.offset == address;
  }

  void retarget(Displaced& displaced) {
    uint8_t* bytes = window_.original.data() + displaced.offset;
    const uint64_t next = window_.address + displaced.offset + displaced.length;
    if (displaced.field_offset != 0) {
      displaced.target = address_of(machine.data) + 2048 + (random_() & 0x3f8);
      const auto field = static_cast<uint32_t>(displaced.target - next);
      std::memcpy(bytes + displaced.field_offset, &field, 4);
      return;
    }
    const bool branch = displaced.form == Form::Jump || displaced.form == Form::ConditionalJump ||
                        displaced.form == Form::CountJump || displaced.form == Form::Call;
    if (!branch) return;
    const auto decoded = decode_with_zydis({bytes, displaced.length});
    if (decoded->immediate_size == 4) {
      const auto field = static_cast<uint32_t>(64 + (random_() & 1023));
      std::memcpy(bytes + decoded->immediate_offset, &field, 4);
    }
    displaced.target =
        next + static_cast<uint64_t>(signed_field(
                   {bytes, displaced.length}, decoded->immediate_offset, decoded->immediate_size));
    const bool inside = displaced.target - window_.address < window_.size_bytes;
    if (inside) {  // A jump to the window's own first byte, say: send it behind the window.
      bytes[displaced.length - 1] = static_cast<uint8_t>(window_.size_bytes);
      displaced.target = next + window_.size_bytes;
    }
  }

  Registers random_registers() {
    Registers registers;
    for (int64_t& value : registers.general)
      value = random_general();
    registers.flags = random_() & kFlagsMask;
    for (uint8_t& byte : registers.xmm)
      byte = static_cast<uint8_t>(random_());
    registers.general[REG_RSP] = data_middle();
    for (const Displaced& displaced : window_.instructions)
      aim_operands(displaced, registers);
    return registers;
  }

  int64_t data_middle() {
    return static_cast<int64_t>(address_of(machine.data) + kDataSize / 2 + (random_() & 0xf8));
  }

  int64_t random_general() {
    switch (random_() & 3) {
      case 0:
        return static_cast<int64_t>(random_() & 15);
      case 1:
        return static_cast<int64_t>(random_());
      default:
        return data_middle();
    }
  }

  // Sets the base of a memory operand so that it falls into the data, and its index small.
  void aim_operands(const Displaced& displaced, Registers& registers) {
    ZydisDecodedInstruction instruction;
    std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder_, window_.original.data() + displaced.offset,
                                             displaced.length, &instruction, operands.data()))) {
      return;
    }
    for (unsigned i = 0; i < instruction.operand_count; ++i) {
      const ZydisDecodedOperand& operand = operands[i];
      if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) continue;
      set_register(registers, operand.mem.index, static_cast<int64_t>(random_() & 31));
      if (operand.mem.base != ZYDIS_REGISTER_RSP) {
        set_register(registers, operand.mem.base, data_middle() - operand.mem.disp.value);
      }
    }
  }

  static void set_register(Registers& registers, ZydisRegister reg, int64_t value) {
    const ZyanI8 id = ZydisRegisterGetId(reg);
    if (ZydisRegisterGetClass(reg) != ZYDIS_REGCLASS_GPR64 || id < 0) return;
    registers.general[static_cast<size_t>(kContextIndex[static_cast<size_t>(id)])] = value;
  }

  // Half of the time words that lead back into the sandbox, for indirect jumps and returns.
  void fill_random(std::array<uint8_t, kDataSize>& bytes) {
    const bool pointers = (random_() & 1) != 0;
    for (size_t i = 0; i < bytes.size(); i += 8) {
      const uint64_t word = pointers ? address_of(machine.code) + (random_() & 1023) : random_();
      std::memcpy(bytes.data() + i, &word, 8);
    }
  }

  void lay_out(const std::array<uint8_t, kDataSize>& data) {
    std::memset(machine.code, kInt3, kCodeSize);
    std::memcpy(reinterpret_cast<void*>(window_.address), window_.original.data(),
                window_.size_bytes);
    std::memcpy(machine.data, data.data(), kDataSize);
  }

  // Where a stop in the copy is in the original, by the boundaries.
  uint64_t original_address(uint64_t address, uint64_t destination, const Relocated& copy) const {
    if (address - destination > copy.bytes.size()) return address;
    for (const Boundary& boundary : copy.boundaries) {
      if (destination + boundary.copy_offset == address) {
        return window_.address + boundary.window_offset;
      }
    }
    return address;
  }

  std::mt19937_64 random_;
  ZydisDecoder decoder_{};
  Window window_;
  unsigned completed_ = 0;
};

// Results depend on time, chance or the machine, or the instruction breaks the sandbox.
bool is_repeatable(const Window& window) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  for (const Displaced& displaced : window.instructions) {
    ZydisDecodedInstruction instruction;
    std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, window.original.data() + displaced.offset,
                                             displaced.length, &instruction, operands.data()))) {
      return false;
    }
    for (const ZydisMnemonic skipped :
         {ZYDIS_MNEMONIC_RDTSC,    ZYDIS_MNEMONIC_RDTSCP,  ZYDIS_MNEMONIC_RDRAND,
          ZYDIS_MNEMONIC_RDSEED,   ZYDIS_MNEMONIC_CPUID,   ZYDIS_MNEMONIC_POPFQ,
          ZYDIS_MNEMONIC_XGETBV,   ZYDIS_MNEMONIC_STD,     ZYDIS_MNEMONIC_XRSTOR,
          ZYDIS_MNEMONIC_FLDENV,   ZYDIS_MNEMONIC_FNSTENV, ZYDIS_MNEMONIC_RDPKRU,
          ZYDIS_MNEMONIC_WRPKRU,   ZYDIS_MNEMONIC_PUSHFQ,  ZYDIS_MNEMONIC_WRFSBASE,
          ZYDIS_MNEMONIC_WRGSBASE, ZYDIS_MNEMONIC_LDMXCSR, ZYDIS_MNEMONIC_FXSAVE,
          ZYDIS_MNEMONIC_XSAVE,    ZYDIS_MNEMONIC_XSAVEC}) {
      if (instruction.mnemonic == skipped) return false;
    }
    for (unsigned i = 0; i < instruction.operand_count; ++i) {
      const ZydisRegister segment = operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY
                                        ? operands[i].mem.segment
                                        : ZYDIS_REGISTER_NONE;
      const bool thread_local_store =
          (segment == ZYDIS_REGISTER_FS || segment == ZYDIS_REGISTER_GS) &&
          (operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
      if (thread_local_store) return false;
    }
  }
  return true;
}

// The window's bytes without displacements: windows that look alike are run once.
std::string shape_of(const Window& window) {
  std::string shape(window.original.begin(), window.original.begin() + window.size_bytes);
  for (const Displaced& displaced : window.instructions) {
    const auto decoded =
        decode_with_zydis(std::span(window.original).subspan(displaced.offset, displaced.length));
    const auto blank = [&](unsigned offset, unsigned size) {
      if (size >= 4) shape.replace(displaced.offset + offset, size, size, '\0');
    };
    blank(decoded->displacement_offset, decoded->displacement_size);
    blank(decoded->immediate_offset, decoded->immediate_size);
  }
  return shape;
}

std::vector<Window> windows_of(const std::string& path, std::set<std::string>& seen) {
  std::vector<Window> windows;
  const auto image = target::ModuleImage::read(path);
  if (!image) return windows;
  const auto text = text_of(*image);
  if (!text) return windows;
  const ModuleCode code = analyse(*text);
  std::vector<Request> requests;
  for (const target::Function& function : image->functions()) {
    requests.push_back({RequestKind::Entry, function.address});
    requests.push_back({RequestKind::Exits, function.address});
  }
  for (Window& window : plan_windows(code, requests).windows) {
    if (seen.insert(shape_of(window)).second && is_repeatable(window)) {
      windows.push_back(std::move(window));
    }
  }
  return windows;
}

std::string hex(const Window& window) {
  std::string text;
  for (unsigned i = 0; i < window.size_bytes; ++i) {
    static constexpr char kDigits[] = "0123456789abcdef";
    text += kDigits[window.original[i] >> 4];
    text += kDigits[window.original[i] & 15];
  }
  return text;
}

// In a child: every window from three random states. The exit status is the number of differences.
int run_all(const std::vector<Window>& windows) {
  set_up_machine();
  Differ differ(7);
  int differences = 0;
  for (const Window& window : windows) {
    for (unsigned round = 0; round < 3 && differences < 20; ++round) {
      differ.transplant(window);
      const std::string problem = differ.compare();
      if (problem.empty()) continue;
      ++differences;
      dprintf(STDERR_FILENO, "%s (%s): %s\n", hex(window).c_str(), hex(differ.window()).c_str(),
              problem.c_str());
    }
  }
  // Most windows must not merely fault.
  if (differ.completed() < windows.size()) {
    dprintf(STDERR_FILENO, "only %u runs were completed\n", differ.completed());
    return 1;
  }
  return differences;
}

TEST(Relocate, CopiesDoWhatWindowsOfInstalledBinariesDo) {
  std::set<std::string> seen;
  std::vector<Window> windows;
  for (const char* path :
       {"/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libstdc++.so.6",
        "/lib/x86_64-linux-gnu/libm.so.6", "/usr/bin/redis-server", "/usr/sbin/nginx"}) {
    for (Window& window : windows_of(path, seen))
      windows.push_back(std::move(window));
  }
  ASSERT_GT(windows.size(), 1000U);
  std::set<Form> forms;
  for (const Window& window : windows) {
    for (const Displaced& displaced : window.instructions)
      forms.insert(displaced.form);
  }
  EXPECT_GE(forms.size(), 8U);
  const pid_t child = fork();
  if (child == 0) _exit(run_all(windows));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "of " << windows.size() << " windows";
}

// Research note, section 3, tests 6 and 7: every shape of RIP-relative operand, and get-pc code.
CLEW_TEXT_CASE(shapes_case, R"(
  shape_0: lea 65536(%rip), %rax
  ret
  shape_1: cmpb $7, 65536(%rip)
  ret
  shape_2: push 65536(%rip)
  ret
  shape_3: jmp *65536(%rip)
  shape_4: call *65536(%rip)
  ret
  shape_5: vmovups 65536(%rip), %zmm1
  ret
  shape_6: imul $1000, 65536(%rip), %r9
  ret
  shape_7: lock cmpxchg %rcx, 65536(%rip)
  ret
  shape_8: call 1f
  1: pop %rax
  ret
  shape_9: movw $4660, 65536(%rip)
  ret
  shape_10: jrcxz 2f
  mov %rcx, %rax
  2: ret
  shape_11: loopne 3f
  mov %rcx, %rax
  3: ret
  shape_12: mov %rdx, %rcx
  call *%r12
  ret
  shape_13: shldq $3, %rax, 65536(%rip)
  ret
  shape_14: vpternlogd $150, 65536(%rip){1to8}, %ymm1, %ymm2
  ret
)");

TEST(Relocate, CopiesOfHandwrittenShapesDoWhatTheOriginalsDo) {
  TextCase text(shapes_case, shapes_case_end);
  const ModuleCode instructions = analyse(text.text);
  std::vector<Request> requests;
  const uint8_t* start = shapes_case;
  for (const uint8_t* next = start; next < shapes_case_end;) {
    const Instruction instruction = *instructions.at(at(next));
    requests.push_back({RequestKind::Offset, at(next)});
    next += instruction.length;
    if (instruction.flow != Flow::Return && instruction.flow != Flow::IndirectJump) continue;
    text.function(start, next);
    start = next;
  }
  const ModuleCode code = analyse(text.text);
  std::vector<Window> windows;
  for (const Request& request : requests) {
    // One at a time: merged windows would hide what each can do.
    const Plan plan = plan_windows(code, {&request, 1});
    windows.insert(windows.end(), plan.windows.begin(), plan.windows.end());
  }
  EXPECT_GE(windows.size(), 14U);
  const pid_t child = fork();
  if (child == 0) _exit(run_all(windows));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace clew::inline_
