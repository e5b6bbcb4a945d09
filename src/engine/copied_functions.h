// SPDX-License-Identifier: Apache-2.0
// A query over many functions pays two jumps for each hit, which may be a third of a program's
// speed, whatever the probe does (docs/decisions/wide-queries.md). So its functions run on copies
// with the probe in them, where that can be: which of a module's can, and the copies themselves.
//
// A copied function has an ordinary probe at its original as well, for who comes by a pointer or
// from code that is no copy: there it is found out whether the thread has a slot. Probes in copies
// do not ask that. What they do ask is whether this is still the process that has the slots:
//
//     cmp dword [A + cookie + 4], 0      none in a forked child
//     je over
//     [push r10 ; push clobbers]
//     body
//     [pop clobbers ; pop r10]
//   over:
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/points.h"
#include "inline/attachment.h"
#include "plan/lower.h"
#include "target/module_image.h"
#include "target/process.h"

namespace clew::engine {

// Why no function of the session runs on a copy; empty: some may. Names of reasons, in brackets.
std::string why_no_copies(const plan::Lowered& lowered, bool follows_forks);

// One module of the session.
struct CopyInput {
  const target::ModuleImage& image;
  const target::ProcessModule& module;
  const ModulePoints& points;
  std::vector<uint64_t> functions;  // By point: its function's address.
};

// What would be done, without a process that is changed. One report for each.
Expected<std::vector<CopiedReport>> judge_copies(pid_t pid, std::span<const CopyInput> modules,
                                                 const BodyRules& rules);

// The copies, where nobody comes to them yet.
struct Copies {
  std::vector<std::vector<inline_::CopyWay>> ways;  // By module, and by its points; or none.
  std::vector<CopiedReport> reports;
};
// Of an attachment that may_run_on_copies(). Errors: Io. What cannot be copied has no way.
Expected<Copies> make_copies(inline_::Attachment& attachment, std::span<const CopyInput> modules,
                             const BodyRules& rules);

}  // namespace clew::engine
