// SPDX-License-Identifier: Apache-2.0
// Bytes of a trampoline -> right, or where they are not. An independent reader of what trampoline.h
// and relocate.h write: stubs are compared with the template, and each copy with what Zydis decodes
// from the window's original bytes, not with the forms that the analysis found. So a mistake of the
// analysis, of the relocation or of memory is found before a thread gets there.
//
// Bodies are skipped: they have a judge of their own (verify/verified_code.h).
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"
#include "inline/trampoline.h"

namespace clew::inline_ {

// `bytes`: those at request.destination, all of them. `patches`: what is to be written over the
// text. Errors: Refused, with the offset of the first byte that is not understood.
Expected<void> check_trampoline(const TrampolineRequest& request,
                                const StubEnvironment& environment, std::span<const uint8_t> bytes,
                                std::span<const code::Patch> patches);

}  // namespace clew::inline_
