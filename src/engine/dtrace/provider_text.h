// SPDX-License-Identifier: Apache-2.0
// A provider's description -> the header that its program includes, and the assembly of the object
// that it is linked with.
//
// A probe is a note of the form that <sys/sdt.h> of SystemTap leaves (its wiki: user space probe
// implementation), written by the header itself: no other header is needed. What that form lacks,
// the types of the arguments and how args[] is made of them, is in notes of our own
// (target/usdt.h). The counters that say whether anybody listens, and these notes, are weak and in
// COMDAT groups: a program has each once, whether it links the object or not, and libraries have
// their own.
//
// The object defines what headers that were made elsewhere call: the counters that SystemTap's
// `dtrace -h` declares, and functions of Solaris' kind (__dtrace_provider___name), each of which is
// a probe.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "query/d/provider.h"
#include "query/d/types.h"

namespace clew::engine {

using Definitions = std::span<const query::d::ProviderDefinition>;

// `file_name` is what it will be called: its guard is made of that.
std::string provider_header(Definitions providers, query::d::TypeTable& types,
                            std::string_view file_name);

// `called`: names of functions of Solaris' kind that the program's objects call, one a line.
// Error: one of them is no probe of the providers.
Expected<std::string> provider_assembly(Definitions providers, query::d::TypeTable& types,
                                        std::string_view called);

}  // namespace clew::engine
