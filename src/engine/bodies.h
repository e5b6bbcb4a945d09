// SPDX-License-Identifier: Apache-2.0
// Programs -> verified bodies at the places of a layout: translate, lay out, relocate, verify.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "engine/sites.h"
#include "inline/attachment.h"
#include "native/code.h"
#include "plan/lower.h"

namespace clew::engine {

struct ArmReport {
  inline_::InstallReport install;
  uint64_t code_bytes = 0;
};

// Installs all planned windows of one process. The attachment must be open for lowered.layout.
// Refused points are added to set.refused.
Expected<ArmReport> arm(inline_::Attachment& attachment, SiteSet& set, const plan::Lowered& lowered,
                        const target::Catalog& catalog);

// The machine code of one program at one site, as `clew explain --code` prints it.
Expected<native::Code> translate_site(const plan::ProbeProgram& program, const Site& site,
                                      const plan::Lowered& lowered, inline_::PointKind point,
                                      const inline_::Geometry& geometry);

}  // namespace clew::engine
