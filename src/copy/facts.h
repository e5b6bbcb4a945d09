// SPDX-License-Identifier: Apache-2.0
// What is known of a module before any of its functions is proved.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.h"
#include "code/flag_use.h"
#include "code/module_code.h"
#include "code/noreturn.h"
#include "target/frame_tables.h"
#include "target/module_image.h"

namespace clew::copy {

// What the facts are made from, as plain data. Any order.
struct FactsInput {
  code::ModuleText text;
  std::vector<uint64_t> noreturn_slots;        // As code::noreturn_slots() gives them.
  std::vector<target::CodePointerSlot> slots;  // As ModuleImage::code_pointer_slots() does.
  std::vector<uint64_t> resolvers;
  std::vector<uint64_t> caller_slots;  // Imports that look at where they were called from.
  // Calls that have a landing pad, as exception tables say; nothing when they are not known.
  std::optional<std::vector<target::CallSite>> call_sites;
};

// Borrows the image. Errors: Io when the file was truncated since it was read.
Expected<FactsInput> facts_input(const target::ModuleImage& image);

// Borrows the text's sections, which are the image's. Not to be moved: its parts refer to each
// other.
class Facts {
  struct Key {
    explicit Key() = default;
  };

 public:
  // Errors: Io when the file was truncated since it was read.
  static Expected<std::unique_ptr<Facts>> of(const target::ModuleImage& image);
  // The same of what others know.
  static std::unique_ptr<Facts> of(FactsInput input);
  Facts(Key, FactsInput input);

  const code::ModuleCode code;
  const code::NoReturn noreturn;
  code::FlagValues flags;
  // Words of data that hold addresses of code, by the loader. Ascending; none in a program at a
  // fixed address, whose file has them.
  const std::vector<target::CodePointerSlot> slots;
  const std::vector<uint64_t> landing_pads;  // Of exception tables. Ascending.
  const std::vector<uint64_t> resolvers;     // Of IFUNCs. Ascending.
  const std::vector<uint64_t> caller_slots;  // Of imports that look at their caller. Ascending.
  // Where exceptions land that come out of a call: the place, or nothing. By address.
  const std::optional<std::vector<target::CallSite>> call_sites;
  const bool is_position_independent;
};

}  // namespace clew::copy
