// SPDX-License-Identifier: Apache-2.0
// The programs of a query at the sites of one process: which program runs at which point, with
// which constants (points.h does the rest).
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "engine/points.h"
#include "engine/sites.h"
#include "inline/attachment.h"
#include "native/code.h"
#include "plan/lower.h"

namespace clew::engine {

// Installs all planned windows of one process. The attachment must be open for lowered.layout.
// Refused points are added to set.refused. Functions run on copies where that is wanted and can be.
Expected<ArmReport> arm(inline_::Attachment& attachment, SiteSet& set, const plan::Lowered& lowered,
                        target::Catalog& catalog, bool wants_copies);
// Which functions would, without a change of the process.
Expected<std::vector<CopiedReport>> judge_copies(const SiteSet& set, const plan::Lowered& lowered,
                                                 target::Catalog& catalog,
                                                 const inline_::Geometry& geometry);

// The functions with a time of which a call may leave by a jump to another function.
std::vector<std::string> left_by_jump(const SiteSet& set, const plan::Lowered& lowered);

// Which of the counts of hits out of fuel is that of the site (plan/lower.h).
uint32_t fuel_word(const Site& site);

// The machine code of one program at one site, as `clew explain --code` prints it.
Expected<native::Code> translate_site(const plan::ProbeProgram& program, const Site& site,
                                      const plan::Lowered& lowered, code::PointKind point,
                                      const inline_::Geometry& geometry);

}  // namespace clew::engine
