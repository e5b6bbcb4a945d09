// SPDX-License-Identifier: Apache-2.0
// The types of C that need no debug information: for casts of queries, for D, and for the names of
// base types in DWARF and BTF.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace clew::target {

struct CInteger {
  std::string_view name;
  uint8_t size_bytes;
  bool is_signed;
  bool is_character = false;
};

// The x86-64 psABI's sizes (3.1.2); char is signed there.
inline constexpr std::array<CInteger, 12> kCIntegers = {{{"char", 1, true, true},
                                                         {"signed char", 1, true, true},
                                                         {"unsigned char", 1, false, true},
                                                         {"short", 2, true},
                                                         {"unsigned short", 2, false},
                                                         {"int", 4, true},
                                                         {"unsigned int", 4, false},
                                                         {"long", 8, true},
                                                         {"unsigned long", 8, false},
                                                         {"long long", 8, true},
                                                         {"unsigned long long", 8, false},
                                                         {"_Bool", 1, false}}};

struct CTypedef {
  std::string_view name;
  std::string_view target;
};

// Those that are the same in the kernel and in all programs.
inline constexpr std::array<CTypedef, 13> kCTypedefs = {{{"int8_t", "signed char"},
                                                         {"int16_t", "short"},
                                                         {"int32_t", "int"},
                                                         {"int64_t", "long"},
                                                         {"uint8_t", "unsigned char"},
                                                         {"uint16_t", "unsigned short"},
                                                         {"uint32_t", "unsigned int"},
                                                         {"uint64_t", "unsigned long"},
                                                         {"intptr_t", "long"},
                                                         {"uintptr_t", "unsigned long"},
                                                         {"size_t", "unsigned long"},
                                                         {"ssize_t", "long"},
                                                         {"pid_t", "int"}}};

// One spelling for "long unsigned int", "unsigned long int" and "unsigned long": the last. What is
// no integer of C stays as it is.
std::string c_base_name(std::string_view name);

}  // namespace clew::target
