// SPDX-License-Identifier: Apache-2.0
// For tests: functions written in assembly as the input of the analysis. The bytes are those of the
// test program itself, so nothing is encoded by hand.
#pragma once

#include <cstdint>
#include <vector>

#include "code/module_text.h"

// Defines the byte ranges NAME .. NAME_end in the text; the body may define more labels.
#define CLEW_TEXT_CASE(name, body)                                                \
  extern "C" const uint8_t name[], name##_end[];                                  \
  asm(".pushsection .text.cases,\"ax\"\n.balign 64\n" #name ":\n" body "\n" #name \
      "_end:\n.fill 64,1,0x90\n.popsection\n")
#define CLEW_LABEL(name) extern "C" const uint8_t name[]

namespace clew::code {

inline uint64_t at(const uint8_t* label) {
  return reinterpret_cast<uint64_t>(label);
}

class TextCase {
 public:
  TextCase(const uint8_t* begin, const uint8_t* end) {
    text.sections.push_back({at(begin), {begin, end}, true});
  }
  TextCase& function(const uint8_t* begin, const uint8_t* end) {
    text.functions.push_back({.address = at(begin), .size_bytes = at(end) - at(begin)});
    return *this;
  }
  TextCase& part(const uint8_t* begin, const uint8_t* end, uint32_t owner) {
    function(begin, end);
    text.functions.back().owner = owner;
    return *this;
  }
  TextCase& data(const uint8_t* begin, const uint8_t* end) {
    text.sections.push_back({at(begin), {begin, end}, false});
    return *this;
  }

  ModuleText text;
};

}  // namespace clew::code
