// SPDX-License-Identifier: Apache-2.0
// Copies of windows must do what the originals do. Windows of installed binaries are run in a child
// process twice, in place and from a copy, from the same random registers, flags and memory.
#include "code/relocate.h"

#include <algorithm>
#include <csignal>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "code/decode.h"
#include "code/differ.h"
#include "code/image_text.h"
#include "code/text_cases.h"
#include "code/windows.h"

namespace clew::code {
namespace {

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

// In a child: every window from three random states. The exit status is the number of differences.
int run_all(const std::vector<Window>& windows) {
  Differ differ(7);
  int differences = 0;
  size_t completed = 0;
  for (const Window& window : windows) {
    for (unsigned round = 0; round < 3 && differences < 20; ++round) {
      differ.transplant(window);
      const Comparison comparison = differ.compare();
      if (comparison.signal == SIGTRAP) ++completed;
      if (comparison.problem.empty()) continue;
      ++differences;
      dprintf(STDERR_FILENO, "%s (%s): %s\n", hex(window).c_str(), hex(differ.window()).c_str(),
              comparison.problem.c_str());
    }
  }
  // Most windows must not merely fault.
  if (completed < windows.size()) {
    dprintf(STDERR_FILENO, "only %zu runs were completed\n", completed);
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
}  // namespace clew::code
