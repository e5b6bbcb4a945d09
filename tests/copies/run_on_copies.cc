// SPDX-License-Identifier: Apache-2.0
// Test support: runs a command with the functions of its modules on copies, without any probe.
//
//     run_on_copies [--report FILE] [--without NAME] [--insert BYTES] COMMAND [ARGUMENT...]
//
// The exit status is the command's; a signal that kills it kills this, too. FILE is there when the
// command begins, whole: a line with its process, and one for each module: its path, functions
// copied, entries that lead there, bytes. When it has ended, FILE also gets the processor's time of
// the command and what it waited for, in seconds.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "copy/check.h"
#include "copy/prove_module.h"
#include "copy/unwind.h"
#include "inline/answers.h"
#include "inline/attachment.h"
#include "recorder/entries.h"
#include "target/frame_tables.h"

namespace {

using namespace clew;

struct Options {
  std::string report;
  // Beginnings of file names. The loader calls itself by its own ways, the C library and the
  // unwinder look at return addresses.
  std::vector<std::string> without = {"ld-linux", "libc.so", "libgcc_s"};
  // So many bytes that do nothing are inserted in front of each block, and on both ways behind each
  // conditional jump.
  size_t inserted_bytes = 0;
  std::vector<std::string> command;
};

[[noreturn]] void give_up(std::string_view what) {
  fmt::print(stderr, "run_on_copies: {}\n", what);
  std::exit(125);  // NOLINT(concurrency-mt-unsafe): one thread.
}

template <typename T>
T expect(Expected<T> result, std::string_view what) {
  if (!result) give_up(fmt::format("{}: {}", what, result.error().message));
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

Options parse(int count, char** arguments) {
  Options options;
  int i = 1;
  for (; i + 1 < count; i += 2) {
    const std::string_view name = arguments[i];
    if (name == "--report") {
      options.report = arguments[i + 1];
    } else if (name == "--without") {
      options.without.emplace_back(arguments[i + 1]);
    } else if (name == "--insert") {
      options.inserted_bytes = std::stoul(arguments[i + 1]);
    } else {
      break;
    }
  }
  options.command.assign(arguments + i, arguments + count);
  if (options.command.empty()) give_up("no command");
  return options;
}

bool is_left_out(const Options& options, std::string_view path) {
  const std::string_view file = path.substr(path.rfind('/') + 1);
  for (const std::string& prefix : options.without) {
    if (file.starts_with(prefix)) return true;
  }
  return false;
}

copy::Insertions insertions_of(const copy::Facts& facts, const copy::ModuleProof& proof,
                               size_t size) {
  copy::Insertions insertions;
  if (size == 0) return insertions;
  const std::vector<uint8_t> nops(size, 0x90);
  for (const copy::Proved& proved : proof.proved) {
    for (const code::Block& block : proved.blocks.blocks()) {
      insertions.before.emplace(block.begin, nops);
      if (facts.code.at(block.last)->flow != code::Flow::Conditional) continue;
      insertions.taken.emplace(block.last, nops);
      insertions.passed.emplace(block.last, nops);
    }
  }
  return insertions;
}

struct Target {
  inline_::Attachment& attachment;
  std::optional<inline_::Answers> answers;
};

std::string copy_module(Target& target, const target::ProcessModule& module,
                        const Options& options) {
  const auto image = target::ModuleImage::read(module.open_path);
  if (!image) return fmt::format("{}: {}\n", module.path, image.error().message);
  const auto facts = expect(copy::Facts::of(*image), module.path);
  const copy::ModuleProof proof = copy::prove_module(*facts);
  if (proof.proved.empty()) return "";
  const uint64_t behind = image->sections().back().end() + 0x10000;
  const copy::Insertions insertions = insertions_of(*facts, proof, options.inserted_bytes);
  copy::ModuleCopy written =
      expect(copy::write_copy(*facts, proof.proved, insertions, behind), module.path);
  copy::CheckedCopy checked =
      expect(copy::check(*facts, proof.proved, insertions, std::move(written)), module.path);
  const auto frames = expect(target::read_frame_tables(module.open_path), module.path);
  copy::UnwindBytes unwind = expect(
      copy::write_unwind({frames, insertions, checked.copy(), image->is_position_independent()}),
      module.path);
  const uint64_t copied = unwind.address - checked.copy().address;
  const uint64_t in_front = (copied + unwind.bytes.size() + 63) / 64 * 64;
  const uint64_t size = in_front + 64 * checked.copy().functions.size();
  const inline_::CopyRoom room =
      expect(target.attachment.take_copy_room(module.executable_ranges.front().start,
                                              module.executable_ranges.back().end, size,
                                              checked.copy().address % 64),
             module.path);
  const uint64_t shift = room.address - checked.copy().address;
  expect(checked.move_to(module.load_bias, shift), module.path);
  expect(unwind.move_to(module.load_bias, shift), module.path);
  const auto plan = expect(recorder::plan_entries(*facts, checked.copy(), {}), module.path);
  auto entries = expect(
      recorder::write_entries(plan, {}, {module.load_bias, room.address, room.address + in_front}),
      module.path);
  std::vector<uint8_t> bytes = checked.copy().bytes;
  bytes.resize(copied);
  bytes.insert(bytes.end(), unwind.bytes.begin(), unwind.bytes.end());
  bytes.resize(in_front);
  bytes.insert(bytes.end(), entries.bytes.begin(), entries.bytes.end());
  if (target.answers && !unwind.bytes.empty()) {
    const inline_::Answer answer = {.begin = room.address,
                                    .size_bytes = checked.copy().code_size,
                                    .original = module.executable_ranges.front().start,
                                    .header = unwind.address + unwind.header,
                                    .header_bytes = unwind.bytes.size() - unwind.header};
    expect(target.answers->add(target.attachment, answer), module.path);
  }
  expect(target.attachment.write_copies(room, bytes), module.path);
  expect(target.attachment.lead_to_copies(std::move(entries.windows),
                                          inline_::Attachment::Leads::ToCopies),
         module.path);
  return fmt::format("{} functions={} entries={} bytes={} of={} at={:#x} unwind={}\n", module.path,
                     checked.copy().functions.size(),
                     checked.copy().functions.size() - plan.unreachable.size(), proof.proved_bytes,
                     proof.proved_bytes + proof.refused_bytes, room.address, unwind.bytes.size());
}

// Under another name first, so that no part of it is read.
void write_report(const std::string& path, const std::string& report) {
  if (path.empty()) return;
  const std::string unfinished = path + ".part";
  FILE* const file = std::fopen(unfinished.c_str(), "w");
  if (file == nullptr) give_up(path);
  std::fwrite(report.data(), 1, report.size(), file);
  std::fclose(file);
  if (std::rename(unfinished.c_str(), path.c_str()) != 0) give_up(path);
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

// All that was waited for: the command alone.
std::string time_of_command() {
  struct rusage usage {};
  if (getrusage(RUSAGE_CHILDREN, &usage) != 0) give_up("getrusage");
  return fmt::format("seconds user={:.6f} system={:.6f}\n", seconds(usage.ru_utime),
                     seconds(usage.ru_stime));
}

std::string copy_all(inline_::Attachment& attachment, pid_t pid, const Options& options) {
  std::string report = fmt::format("process {}\n", pid);
  const auto modules = expect(target::read_modules(pid), "modules");
  Target target = {attachment, expect(inline_::Answers::install(attachment, modules), "answers")};
  for (const target::ProcessModule& module : modules) {
    if (is_left_out(options, module.path) || !module.problem.empty()) continue;
    report += copy_module(target, module, options);
  }
  write_report(options.report, report);
  return report;
}

}  // namespace

int main(int count, char** arguments) {
  const Options options = parse(count, arguments);
  auto launched = expect(inline_::Launched::start({.command = options.command}), "start");
  inline_::OpenOptions open;
  open.region.size_log2 = 12;
  auto attachment = expect(inline_::Attachment::open(launched.pid(), open), "open");
  const std::string report = copy_all(attachment, launched.pid(), options);
  expect(launched.resume(), "resume");
  const int status = expect(launched.wait_for_exit(), "wait");
  write_report(options.report, report + time_of_command());
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const struct rlimit none {};
  (void)setrlimit(RLIMIT_CORE, &none);
  (void)raise(WTERMSIG(status));
  return 128 + WTERMSIG(status);
}
