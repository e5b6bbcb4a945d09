// SPDX-License-Identifier: Apache-2.0
// For tests: the debug information of an invented program, shopd, and of no other.
//
//     enum state { OPEN = 0, PAID = 1, FAILED = -1 };
//     struct owner { char *name; int age; struct owner *next; };
//     struct card { long number; struct owner *owner; char label[16]; int limits[4];
//                   unsigned flags : 3; int bias : 5; float score; double weight;
//                   enum state state; unsigned char tag; struct owner holder; __int128 wide; };
//     int charge_card(struct card *card, long cents, unsigned short currency, enum state state,
//                     double rate, struct card by_value);
//     struct card *find_card(const char *name);   void close_card(int id);
//     double rate_of(int id);
//     enum class Mood { GOOD = 0, BAD = -1 };   Mood set_mood(Mood mood);
//     struct owner copy_owner(int id);   struct hidden;
//     long vfs_read(struct owner *file, char *, long count);   // Of the kernel.
#pragma once

#include <map>
#include <string>

#include "query/extension_source.h"
#include "query/type_source.h"

namespace clew::query {

class FakeTypes : public TypeSource {
 public:
  FakeTypes();
  Expected<std::vector<Parameter>> parameters(const Source& source) override;
  Expected<TypeHandle> return_type(const Source& source) override;
  TypeHandle find_type(std::string_view name) override;
  CType describe(TypeHandle type) override;
  std::vector<CMember> members(TypeHandle type) override;
  std::vector<Enumerator> enumerators(TypeHandle type) override;

 private:
  struct Function {
    std::vector<Parameter> parameters;
    TypeHandle result = 0;
  };
  TypeHandle add(CType type);
  TypeHandle pointer_to(TypeHandle target);

  std::vector<CType> types_;  // [handle]; 0 is void.
  std::map<TypeHandle, std::vector<CMember>> members_;
  std::map<TypeHandle, std::vector<Enumerator>> enumerators_;
  std::map<std::string, Function> functions_;
};

// Functions of extensions that nobody wrote: sketch_sample(u64), moving_average(s64),
// walk(const void *, u32), and nothing(), which cannot be called.
class FakeExtensions : public ExtensionSource {
 public:
  FakeExtensions();
  const ExtensionFunction* find(std::string_view name) override;
  std::vector<std::string> names() override;

 private:
  std::vector<ExtensionFunction> functions_;
};

}  // namespace clew::query
