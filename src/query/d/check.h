// SPDX-License-Identifier: Apache-2.0
// Program -> Script: names are resolved, every node gets its type, every rule of the language is
// checked with its tag. Probes are asked for because the types of arguments depend on them.
//
// What the code generator can rely on in a Script, besides what syntax.h says:
// - A variable is an Identifier of Storage::Variable (Script::variables has its scope). An element
//   of an associative array is an Index of Storage::Variable, operands[0] that Identifier,
//   operands[1…] the keys, each converted to the array's key type.
// - `args[i]` is an Identifier of Storage::Argument, `integer` the number of the *raw* argument
//   that it is made of; `uregs[i]` an Index of Storage::Builtin.
// - Index of Storage::Memory: operands[0] is a pointer, or an array in place (not decayed; count 0
//   = no bounds), operands[1] an int64_t, not scaled. All other sums of pointers are scaled: the
//   tree has a Multiply, and a Divide for differences. ++ and -- have their step in `integer`.
//   An element of an array in place that lies in a variable has Storage::Variable instead, and that
//   variable is not associative.
// - Member and Arrow have the place of the member; their operand is an object in place or a
//   pointer. Storage is Memory, or Variable for a member of a struct variable.
// - Operands of arithmetic, comparison and ?: have one type (shifts: each its own). A compound
//   Assign computes in the type of operands[1] (shifts: in the promoted type of operands[0]).
// - A Cast of an array to a pointer is the array's address. A Cast to a record does not exist.
// - Strings are of string type everywhere: a char pointer or array became StringOf. An Integer of
//   string type is the NULL string. Assigning an Integer 0 of whatever type deletes (fact 18).
// - Inlines and translators are gone. Constants are folded. A Translate is an object, or a pointer
//   to one, that is made of its operands: Members (places in the object), each with its value.
// - A Call with is_extension has one operand for each parameter, converted to its type.
// - A statement's operands are values only: printf's format, printa's aggregations and the
//   aggregation of clear() and kin are in the fields of Statement. stack() and ustack() have their
//   number of frames in operands[0], here and in expressions and keys (Calls of dynamic type, by
//   name); jstack's and ustack's string size is operands[1] if it is there.
// - An Aggregate's expression is Assign(Aggregation(keys…), Call(values…)); of lquantize and
//   llquantize the constants are in Aggregation::parameters, and only value and weight stay.
#pragma once

#include <string>
#include <vector>

#include "query/d/script.h"
#include "query/d/source.h"
#include "query/d/stability.h"
#include "query/d/syntax.h"

namespace clew::query::d {

// The arguments of the probes that a clause's descriptions match.
struct ProbeArguments {
  uint64_t matched = 0;       // Probes; 0 is D_PDESC_ZERO unless unmatched ones are allowed.
  std::vector<TypeId> types;  // args[i], where all of them agree.
  // What the attach point gives for args[i], if that is another type: a translator turns it into
  // types[i] (or, for pointers, into what that points to). Empty, or as long as `types`.
  std::vector<TypeId> native_types;
  std::vector<uint8_t> mapping;  // args[i] is made of arg<mapping[i]>; empty: of arg<i>.
  bool disagree = false;         // D_ARGS_MULTI when args[] is used.
  bool is_userland = false;      // Pointers among arg0… are the traced program's.
  // Of the first probe; without it what is known of its provider's name.
  std::optional<ProviderStability> stability;
};

// What the checker asks about probes; the engine answers from its catalogue of providers.
class ProbeSource {
 public:
  virtual ~ProbeSource() = default;
  // Error: a message without place, e.g. "probe description ::f: does not match any probes".
  virtual Expected<ProbeArguments> arguments(TypeTable& table,
                                             const ProbeDescription& description) = 0;
  // Of a description that matches nothing: the one that was probably meant; empty when none is
  // near.
  virtual std::string nearest(const ProbeDescription& /*description*/) { return ""; }
  // Why a description of a process's probes matches nothing or was refused, if there is a tag
  // for that.
  struct Problem {
    std::string tag;
    std::string message;
  };
  virtual std::optional<Problem> problem(const ProbeDescription& /*description*/) {
    return std::nullopt;
  }
};

Compiled<Script> check(const Program& program, TypeTable types, ProbeSource& probes,
                       const CompileOptions& options);

}  // namespace clew::query::d
