// SPDX-License-Identifier: Apache-2.0
// Where code is, in the words of the source: the function, what was inlined there, and the line of
// each. Places are numbered; two are the same number if nothing of that differs. Debug information
// is read for the blocks that are asked for, once each.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "recorder/snap_modules.h"

namespace clew::recorder {

struct Frame {
  std::string function;   // Without a symbol: module+0x12.
  std::string file = {};  // Empty where it is not known.
  uint32_t line = 0;      // In frames further out: of the call that was inlined.
  bool is_inlined = false;

  bool operator==(const Frame&) const = default;
};

struct Place {
  std::string module;         // Without folders. Empty: no code that is known.
  std::vector<Frame> frames;  // The innermost first; at least one.
};

// Instructions of a block, one behind the other, of one place.
struct Piece {
  uint64_t address = 0;  // Of the first one, in the file.
  uint32_t place = 0;
};

class Places {
 public:
  // Borrowed.
  explicit Places(SnapModules& modules) : modules_(modules) {}

  [[nodiscard]] const Place& operator[](uint32_t number) const { return places_[number]; }
  // Of an instruction.
  uint32_t at(ReadModule& module, uint64_t address);
  // Of what is in no module.
  uint32_t nowhere(uint64_t pc);
  // Neighbours differ. To be used before the next call.
  std::span<const Piece> pieces_of(const Step& step);

 private:
  uint32_t number_of(Place place);

  SnapModules& modules_;
  std::vector<Place> places_;
  std::map<std::string, uint32_t> numbers_;
  // By module, and the block's address.
  std::vector<std::unordered_map<uint64_t, std::vector<Piece>>> pieces_;
};

}  // namespace clew::recorder
