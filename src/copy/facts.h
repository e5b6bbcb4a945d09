// SPDX-License-Identifier: Apache-2.0
// What is known of a module before any of its functions is proved.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "code/flag_use.h"
#include "code/module_code.h"
#include "code/noreturn.h"
#include "target/module_image.h"

namespace clew::copy {

// Borrows the image. Not to be moved: its parts refer to each other.
class Facts {
  struct Key {
    explicit Key() = default;
  };

 public:
  // Errors: Io when the file was truncated since it was read.
  static Expected<std::unique_ptr<Facts>> of(const target::ModuleImage& image);
  Facts(Key, const target::ModuleImage& image, const code::ModuleText& text,
        std::vector<uint64_t> noreturn_slots);

  const code::ModuleCode code;
  const code::NoReturn noreturn;
  code::FlagValues flags;
  // Words of data that hold addresses of code, by the loader. Ascending; none in a program at a
  // fixed address, whose file has them.
  const std::vector<target::CodePointerSlot> slots;
  const std::vector<uint64_t> landing_pads;  // Of exception tables. Ascending.
  const std::vector<uint64_t> resolvers;     // Of IFUNCs. Ascending.
  const bool is_position_independent;
};

}  // namespace clew::copy
