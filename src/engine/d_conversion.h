// SPDX-License-Identifier: Apache-2.0
// Types of debug information become D's: those of the kernel (d_types.h) and those of programs
// (d_user_types.h).
#pragma once

#include <string>
#include <string_view>

#include "query/d/types.h"
#include "target/type_description.h"

namespace clew::engine {

// Makes a type of `from` in the table. A record's members are converted with it, records that they
// hold too; what they only point to stays a Forward until TypeTable::complete() asks for it by
// name, and so does what `from` only declares.
//
// `program`, in front of the names of records and enumerations, says whose they are. Without one
// they are the kernel's: names that the table has already stand for the kernel's where they are as
// large. Of a program's typedefs only numbers are looked for there.
query::d::TypeId convert_type(target::TypeReader& from, target::TypeId type,
                              query::d::TypeTable& table, std::string_view program = "");

// As C writes the name of a type: "struct client".
std::string spelled(query::d::Tag tag, std::string_view name);

}  // namespace clew::engine
