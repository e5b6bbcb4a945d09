// SPDX-License-Identifier: Apache-2.0
// Where exceptions are seen: the functions of gcc's unwinder, in libgcc_s and in modules that have
// a copy of their own. Each notes where it begins, and where it leaves its frame for an outer one
// the calls between are over. So the hooks know nothing of languages, and a handler in the function
// that catches comes after them. docs/decisions/exception-probes.md has more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "code/module_code.h"
#include "code/windows.h"
#include "plan/lower.h"
#include "query/query.h"
#include "target/catalog.h"

namespace clew::engine {

struct UnwinderFunction {
  size_t module = 0;
  uint64_t address = 0;  // Link time.
  std::string name;
  bool is_armed = false;
};

bool has_exception_source(const query::Query& query);

// The unwinder's functions in these modules, and glibc's longjmp, which leaves calls as well; in
// all that are loaded when the list is empty. Known by their names, and in stripped modules by the
// code that only they have.
Expected<std::vector<UnwinderFunction>> find_unwinders(target::Catalog& catalog,
                                                       const std::vector<size_t>& modules);

// The places where this function goes on in an outer frame, and the programs for them. Empty: not
// an unwinder that we know.
using Landings = std::vector<std::pair<plan::ProgramPoint, code::Request>>;
Landings landings_of(const code::ModuleCode& code, uint64_t function);

}  // namespace clew::engine
