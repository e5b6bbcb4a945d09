/* SPDX-License-Identifier: Apache-2.0
 * What C++ exceptions say, read from outside: no function of the program is called, so not what().
 */
#include "clew.h"

/* typeid(T) as the ABI of C++ has it (Itanium, 2.9.4): of a class with one base also the base. */
struct type_info {
  u64 vtable;
  u64 name;
  u64 base;
};

#define BASES_MAX 8

static bool is_name(u64 address, const char* name, u32 size) {
  char text[24];
  if (!clew_read(text, sizeof text, (const void*)address)) return false;
  for (u32 i = 0; i < size; ++i)
    if (text[i] != name[i]) return false;
  return true;
}

/*
 * The text of an exception of libstdc++ that is a std::logic_error or std::runtime_error, or comes
 * from one: they hold a pointer to it behind their vtable. Otherwise an empty text. Whether a type
 * has a base is said by the vtable of its typeid, which is that of std::runtime_error's own.
 */
const char* exception_text(const void* object, const struct type_info* type) {
  struct type_info first;
  if (!clew_read(&first, sizeof first, type)) return 0;
  struct type_info at = first;
  for (u32 i = 0; i < BASES_MAX; ++i) {
    const bool is_known =
        is_name(at.name, "St13runtime_error", 18) || is_name(at.name, "St11logic_error", 16);
    if (is_known && at.vtable == first.vtable) {
      u64 text = 0;
      char byte;
      if (clew_read(&text, sizeof text, (const char*)object + 8) &&
          clew_read(&byte, 1, (const void*)text))
        return (const char*)text;
    }
    if (is_known || at.base == 0 || at.vtable != first.vtable) break;
    if (!clew_read(&at, sizeof at, (const void*)at.base)) break;
  }
  /* The end of the type's name. */
  for (u32 i = 0; i < 1024; ++i) {
    char byte;
    if (!clew_read(&byte, 1, (const char*)first.name + i)) return 0;
    if (byte == 0) return (const char*)first.name + i;
  }
  return 0;
}
