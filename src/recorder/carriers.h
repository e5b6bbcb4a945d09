// SPDX-License-Identifier: Apache-2.0
// Which functions keep the cursor in r11 while they run. That is what makes a record cheap: a
// cursor in memory is loaded, changed and stored by each, one behind the other.
//
//   entry from outside     mov r11, gs:[cursor]           (copy::Insertions::entry)
//   calls between carriers                                r11 is passed on
//   other calls, tail      mov gs:[cursor], r11           in front of them, and of returns
//   jumps
//   behind calls           mov r11, gs:[cursor]           but of those that leave it in r11
//   landing pads           mov r11, gs:[cursor]           unwinders do not restore r11
//
// A carrier never touches r11 itself, nobody wants it behind calls of it, no switch of it leads
// into other functions or to its own start, and only unwinders lead to its landing pads. It leaves
// the cursor in r11 if all ways out of it do.
#pragma once

#include <cstdint>
#include <vector>

#include "code/call_effects.h"
#include "copy/facts.h"
#include "copy/prove_module.h"
#include "recorder/flow.h"

namespace clew::recorder {

struct Carriers {
  // By ModuleProof::proved, and so is the next one.
  std::vector<bool> carries;
  std::vector<bool> leaves;
};

// The facts' flag values are looked up.
Carriers find_carriers(copy::Facts& facts, const copy::ModuleProof& proof, const Copied& copied,
                       const code::ModuleEffects& effects);

}  // namespace clew::recorder
