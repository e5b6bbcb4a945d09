// SPDX-License-Identifier: Apache-2.0
// Programs -> verified bodies at the points of planned windows, installed: translate, lay out,
// relocate, verify. What the programs are for is the caller's to know.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "code/windows.h"
#include "inline/attachment.h"
#include "isa/program.h"
#include "native/code.h"
#include "target/process.h"
#include "verify/verified_code.h"

namespace clew::engine {

// Where a probe's hits without fuel are counted.
struct FuelCounts {
  uint32_t of_thread = 0;            // In the window.
  std::optional<uint32_t> of_all{};  // From BodyRules::spent_address.
};

// What runs at one point.
struct PointProgram {
  const isa::Program* program = nullptr;  // Borrowed.
  std::vector<uint64_t> constants;        // Of the site.
  uint64_t fuel = verify::Policy{}.fuel_max;
  std::optional<FuelCounts> fuel_counts;
  abi::RegisterSet saved{};  // By the stub, besides what the body writes.
};

// The programs of one module's plan, by its points.
struct ModulePoints {
  const code::Plan* plan = nullptr;  // Borrowed.
  uint64_t load_bias = 0;
  std::vector<PointProgram> programs;
  std::span<const target::Mapping> text = {};  // See inline_::ModuleRequest, and so is the next.
  std::vector<inline_::CopyWay> copies = {};
};

// Where bodies run, and what they may do. What differs by point is filled in here.
struct BodyRules {
  native::Environment environment;
  verify::Policy policy;
  uint32_t spent_address = 0;  // Absolute: of a query's session.
};

// The machine code at one point.
struct ArmedBody {
  uint32_t module = 0;  // Index in the modules,
  uint32_t point = 0;   // and in its plan.
  uint64_t address = 0;
  bool has_fuel_counts = false;
  std::vector<inline_::CodeSpan> code{};  // Of its window: all that runs for probes there.
};

// The same, as one of several of a site; or at an unwinder, for all.
struct ArmedSite {
  std::optional<size_t> site;
  uint64_t address = 0;
  bool has_fuel_counts = false;
  std::vector<inline_::CodeSpan> code{};
};

// What became of the functions of one module that may run on copies (copied_functions.h).
struct CopiedReport {
  std::string module;
  uint32_t asked = 0;
  uint32_t copied = 0;
  std::map<std::string, uint32_t> others = {};  // Why others are not: names of reasons.
};

// What keeps most functions from it, where none is copied; else empty.
std::string why_none_copied(const std::vector<CopiedReport>& reports);

struct ArmReport {
  inline_::InstallReport install;
  std::vector<ArmedBody> bodies;
  std::vector<ArmedSite> sites;  // Of the bodies, for queries.
  std::set<size_t> gone;         // Modules of the catalog that went before; for queries.
  std::vector<CopiedReport> copied;
  uint64_t code_bytes = 0;
};

// Installs all windows of the plans. Points that are refused are in the report.
Expected<ArmReport> arm_points(inline_::Attachment& attachment,
                               std::span<const ModulePoints> modules, const BodyRules& rules);

// The code, which calls nothing, as it is at this address: may it be there?
[[nodiscard]] Expected<void> check_at(uint64_t address, const native::Code& code,
                                      const PointProgram& program, const code::Point& point,
                                      const BodyRules& rules);

// The machine code of one program at one point.
Expected<native::Code> translate_point(const PointProgram& program, const code::Point& point,
                                       const BodyRules& rules);

}  // namespace clew::engine
