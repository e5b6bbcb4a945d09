// SPDX-License-Identifier: Apache-2.0
// Every form of instruction that this machine's programs and libraries contain, relocated: original
// and copy must leave the same registers, flags and memory. A form is what tells encodings apart
// but for the values in it: prefixes with REX, VEX or EVEX, opcode map and opcode, what the group's
// reg field selects, and the kind of ModRM operand. Nothing is stored: the binaries are read when
// the test runs.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <Zydis/Zydis.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "code/decode.h"
#include "code/differ.h"
#include "code/displace.h"
#include "target/elf_file.h"

namespace clew::code {
namespace {

using Bytes = std::vector<uint8_t>;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kCollectMax(20);
constexpr unsigned kExamplesMax = 2;  // Of a form.
constexpr unsigned kRounds = 3;       // Random states of each example.
constexpr int kRunSecondsMax = 240;
constexpr size_t kDifferencesMax = 20;

// The kind of a ModRM operand: register, relative to rip, or memory by size of the displacement,
// with or without SIB, its base and its index.
void put_operand(const ZydisDecodedInstruction& instruction, std::string& form) {
  const auto& raw = instruction.raw;
  const bool rip = raw.modrm.mod == 0 && raw.modrm.rm == 5;
  const bool sib = raw.modrm.mod != 3 && raw.modrm.rm == 4;
  form += static_cast<char>(raw.modrm.mod << 1 | (rip ? 1 : 0));
  if (sib) form += static_cast<char>(1 | (raw.sib.base == 5) << 1 | (raw.sib.index == 4) << 2);
}

std::string form_of(const ZydisDecodedInstruction& instruction) {
  const auto& raw = instruction.raw;
  std::string form;
  const auto put = [&](unsigned value) { form += static_cast<char>(value); };
  for (unsigned i = 0; i < raw.prefix_count; ++i)
    put(raw.prefixes[i].value);
  put(instruction.encoding);
  put(instruction.opcode_map);
  put(instruction.opcode);
  put(instruction.mnemonic & 0xff);
  put(instruction.mnemonic >> 8);
  switch (instruction.encoding) {
    case ZYDIS_INSTRUCTION_ENCODING_VEX:
      put(raw.vex.size);
      put(static_cast<unsigned>(raw.vex.W | raw.vex.L << 1 | raw.vex.pp << 2));
      break;
    case ZYDIS_INSTRUCTION_ENCODING_EVEX:
      put(static_cast<unsigned>(raw.evex.W | raw.evex.L << 1 | raw.evex.L2 << 2 | raw.evex.pp << 3 |
                                raw.evex.b << 5 | raw.evex.z << 6 | (raw.evex.aaa != 0) << 7));
      break;
    case ZYDIS_INSTRUCTION_ENCODING_LEGACY:
    case ZYDIS_INSTRUCTION_ENCODING_3DNOW:
    case ZYDIS_INSTRUCTION_ENCODING_XOP:
    case ZYDIS_INSTRUCTION_ENCODING_MVEX:
      break;
  }
  if ((instruction.attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0) put_operand(instruction, form);
  return form;
}

class Collector {
 public:
  Collector() {
    ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisDecoderEnableMode(&decoder_, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
  }

  void add_file(const std::string& path) {
    const auto file = target::ElfFile::open(path);
    if (!file) return;
    bool any = false;
    for (const target::ElfSection& section : file->sections()) {
      const bool executable =
          section.header.sh_type == SHT_PROGBITS && (section.header.sh_flags & SHF_EXECINSTR) != 0;
      if (!executable) continue;
      const auto text = file->read(section);
      if (!text) continue;
      add_text(text->view());
      any = true;
    }
    if (any) ++files;
  }

  uint64_t files = 0;
  uint64_t instructions = 0;
  std::map<std::string, std::vector<Bytes>> examples;  // By form.

 private:
  void add_text(std::span<const uint8_t> text) {
    while (!text.empty()) {
      const auto decoded = decode(text);
      const size_t length = decoded ? decoded->length : 1;
      if (decoded) add(text.first(length), *decoded);
      text = text.subspan(length);
    }
  }

  // What stands before displacement and immediate decides the form: seen once, it needs no second
  // look. Longer heads than 8 bytes are always looked at.
  void add(std::span<const uint8_t> bytes, const Decoded& decoded) {
    ++instructions;
    size_t head = bytes.size();
    if (decoded.immediate_offset != 0) head = decoded.immediate_offset;
    if (decoded.displacement_offset != 0) head = decoded.displacement_offset;
    if (head <= 8) {
      uint64_t key = 0;
      for (size_t i = 0; i < head; ++i)
        key = key << 8 | bytes[i];
      if (!heads_[head].insert(key).second) return;
    }
    ZydisDecodedInstruction instruction;
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder_, nullptr, bytes.data(), bytes.size(),
                                                    &instruction))) {
      ADD_FAILURE() << "Zydis does not read what decode() read";
      return;
    }
    std::vector<Bytes>& known = examples[form_of(instruction)];
    if (known.size() < kExamplesMax) known.emplace_back(bytes.begin(), bytes.end());
  }

  ZydisDecoder decoder_{};
  std::array<std::unordered_set<uint64_t>, 9> heads_;
};

// The smallest first: many programs, if there is no time for all.
std::vector<std::string> files_below(std::initializer_list<const char*> folders) {
  std::vector<std::pair<uintmax_t, std::string>> found;
  std::error_code error;
  for (const char* folder : folders) {
    for (std::filesystem::recursive_directory_iterator at(folder, error), end; at != end;
         at.increment(error)) {
      if (error) break;
      if (at->is_symlink(error) || !at->is_regular_file(error)) continue;
      found.emplace_back(at->file_size(error), at->path().string());
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  for (auto& [size, path] : found)
    paths.push_back(std::move(path));
  return paths;
}

Collector collect(const std::vector<std::string>& paths) {
  Collector collector;
  const auto end = Clock::now() + kCollectMax;
  size_t done = 0;
  while (done < paths.size() && Clock::now() < end)
    collector.add_file(paths[done++]);
  fmt::print("{} of {} files looked at: {} with code, {} instructions, {} forms\n", done,
             paths.size(), collector.files, collector.instructions, collector.examples.size());
  return collector;
}

bool falls_through(Form form) {
  switch (form) {
    case Form::Plain:
    case Form::RipRelative:
    case Form::ConditionalJump:
    case Form::CountJump:
      return true;
    case Form::Jump:
    case Form::Call:
    case Form::IndirectCall:
    case Form::RipIndirectCall:
    case Form::Return:
    case Form::IndirectJump:
      return false;
  }
  return false;
}

// A window of this one instruction, or why there is none.
tl::expected<Window, std::string> window_of(const Bytes& instruction) {
  constexpr uint64_t kAddress = 0x10000;
  Bytes bytes = instruction;
  bytes.resize(bytes.size() + 32, 0x90);
  ModuleText text;
  text.sections.push_back({kAddress, bytes, true});
  const ModuleCode code = analyse(text);
  const auto read = code.at(kAddress);
  if (!read) return tl::unexpected<std::string>("not decoded");
  const auto displaced = displace(code, *read, kAddress);
  if (!displaced) return tl::unexpected("no window: " + std::string(name(displaced.error())));
  Window window;
  window.address = kAddress;
  window.size_bytes = displaced->length;
  window.falls_through = falls_through(displaced->form);
  window.instructions = {*displaced};
  std::copy(instruction.begin(), instruction.end(), window.original.begin());
  if (!is_repeatable(window)) return tl::unexpected<std::string>("not repeatable");
  return window;
}

struct Example {
  size_t form = 0;  // Number.
  Window window;
};

// What the child found, in memory that it shares.
struct ReportOfForms {
  size_t at = 0;  // The example under work, for the message when the child dies.
  size_t runs = 0;
  size_t differences = 0;
  std::array<size_t, 65> by_signal{};
  std::array<bool, 1 << 20> completed{};  // By form: ran to a trap behind it or at its target.
  std::array<bool, 1 << 20> known{};      // Likewise: the processor has this instruction.
};

void run_all(const std::vector<Example>& examples, ReportOfForms& report) {
  alarm(kRunSecondsMax);
  Differ differ(11);
  for (const Example& example : examples) {
    for (unsigned round = 0; round < kRounds; ++round) {
      differ.transplant(example.window);
      const Comparison comparison = differ.compare();
      ++report.runs;
      ++report.by_signal[static_cast<size_t>(comparison.signal)];
      if (comparison.signal == SIGTRAP) report.completed[example.form] = true;
      if (comparison.signal != SIGILL) report.known[example.form] = true;
      if (comparison.problem.empty()) continue;
      if (++report.differences > kDifferencesMax) _exit(1);
      dprintf(STDERR_FILENO, "%s (%s): %s\n", hex(example.window).c_str(),
              hex(differ.window()).c_str(), comparison.problem.c_str());
    }
    ++report.at;
  }
}

// Shared with the child that runs the examples.
class SharedReport {
 public:
  SharedReport() {
    void* start = mmap(nullptr, sizeof(ReportOfForms), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(start, MAP_FAILED);
    report_ = static_cast<ReportOfForms*>(start);
  }
  SharedReport(const SharedReport&) = delete;
  SharedReport& operator=(const SharedReport&) = delete;
  ~SharedReport() { munmap(report_, sizeof(ReportOfForms)); }
  ReportOfForms* operator->() { return report_; }
  ReportOfForms& operator*() { return *report_; }

 private:
  ReportOfForms* report_;
};

void expect_alike(const std::vector<Example>& examples, SharedReport& report) {
  const pid_t child = fork();
  if (child == 0) {
    run_all(examples, *report);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "at " << hex(examples[std::min(report->at, examples.size() - 1)].window);
  EXPECT_EQ(report->differences, 0U);
}

// What the linear sweep meets in data, at least: prefixes that have no effect, in every order.
TEST(RelocateForms, PrefixesInUnusualOrderAreUnderstood) {
  const Bytes alike[] = {
      {0x40, 0x49, 0xe1, 0x10},              // REX REX loope
      {0x48, 0x36, 0xe1, 0x10},              // REX ss loope
      {0x3e, 0x3e, 0x3e, 0x3e, 0x75, 0x10},  // A jne of two bytes that has six
      {0x3e, 0x0f, 0x85, 0x10, 0, 0, 0},     // and one of six that has seven.
      {0x40, 0x48, 0x8b, 0x05, 0, 0, 0, 0},  // REX REX mov rax, [rip]
  };
  const Bytes refused[] = {
      {0x4a, 0x66, 0x77, 0x10},                    // REX 66 ja
      {0x48, 0x67, 0x48, 0x8b, 0x05, 0, 0, 0, 0},  // REX 67 REX mov rax, [eip]
      {0x41, 0x40, 0xff, 0xd4},                    // REX.B REX call rsp: only the last counts.
      {0x41, 0x3e, 0xff, 0xd4},                    // REX.B ds call rsp: that REX is void.
      {0xc5, 0x64, 0x85, 0xf5, 0x76, 0xb2, 0xad},  // jknzd, which one CPU had.
  };
  std::vector<Example> examples;
  for (const Bytes& bytes : alike) {
    const auto window = window_of(bytes);
    ASSERT_TRUE(window) << testing::PrintToString(bytes) << window.error();
    examples.push_back({examples.size(), *window});
  }
  for (const Bytes& bytes : refused) {
    EXPECT_FALSE(window_of(bytes)) << testing::PrintToString(bytes);
  }
  SharedReport report;
  expect_alike(examples, report);
  for (size_t form = 0; form < examples.size(); ++form)
    EXPECT_TRUE(report->completed[form]) << hex(examples[form].window);
}

TEST(RelocateForms, CopiesOfEveryFormOfThisMachinesBinariesDoWhatTheOriginalsDo) {
  const Collector collector = collect(files_below({"/usr/bin", "/usr/lib/x86_64-linux-gnu"}));
  ASSERT_GT(collector.examples.size(), 2000U);
  std::vector<Example> examples;
  std::map<std::string, size_t> excluded;
  size_t forms = 0;
  for (const auto& [form, instructions] : collector.examples) {
    const size_t before = examples.size();
    std::string reason;
    for (const Bytes& instruction : instructions) {
      auto window = window_of(instruction);
      if (window) examples.push_back({forms, std::move(*window)});
      if (!window) reason = window.error();
    }
    if (examples.size() == before) ++excluded[reason];
    if (examples.size() != before) ++forms;
  }
  for (const auto& [reason, count] : excluded)
    fmt::print("{} forms left out: {}\n", count, reason);
  SharedReport report;
  ASSERT_LE(forms, report->completed.size());
  expect_alike(examples, report);
  const auto completed =
      static_cast<size_t>(std::count(report->completed.begin(), report->completed.end(), true));
  const auto known =
      static_cast<size_t>(std::count(report->known.begin(), report->known.end(), true));
  fmt::print(
      "{} forms, of which this processor has {}, in {} examples, {} runs of each side; {} "
      "forms ran to their end; signals:",
      forms, known, examples.size(), report->runs, completed);
  for (size_t signal = 1; signal < report->by_signal.size(); ++signal) {
    const size_t count = report->by_signal[signal];
    if (count != 0) fmt::print(" {} {}", count, strsignal(static_cast<int>(signal)));
  }
  fmt::print("\n");
  EXPECT_GT(known, 2000U);
  EXPECT_GT(completed * 10, known * 9);  // What merely faults shows little.
}

}  // namespace
}  // namespace clew::code
