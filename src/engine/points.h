// SPDX-License-Identifier: Apache-2.0
// Programs -> verified bodies at the points of planned windows, installed: translate, lay out,
// relocate, verify. What the programs are for is the caller's to know.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "inline/attachment.h"
#include "inline/windows.h"
#include "isa/program.h"
#include "native/code.h"
#include "verify/verified_code.h"

namespace clew::engine {

// What runs at one point.
struct PointProgram {
  const isa::Program* program = nullptr;  // Borrowed.
  std::vector<uint64_t> constants;        // Of the site.
  uint64_t fuel = verify::Policy{}.fuel_max;
  abi::RegisterSet saved{};  // By the stub, besides what the body writes.
};

// The programs of one module's plan, by its points.
struct ModulePoints {
  const inline_::Plan* plan = nullptr;  // Borrowed.
  uint64_t load_bias = 0;
  std::vector<PointProgram> programs;
};

// Where bodies run, and what they may do. What differs by point is filled in here.
struct BodyRules {
  native::Environment environment;
  verify::Policy policy;
};

struct ArmReport {
  inline_::InstallReport install;
  uint64_t code_bytes = 0;
};

// Installs all windows of the plans. Points that are refused are in the report.
Expected<ArmReport> arm_points(inline_::Attachment& attachment,
                               std::span<const ModulePoints> modules, const BodyRules& rules);

// The machine code of one program at one point.
Expected<native::Code> translate_point(const PointProgram& program, inline_::PointKind point,
                                       const BodyRules& rules);

}  // namespace clew::engine
