// SPDX-License-Identifier: Apache-2.0
// Tracefs: the kernel's files about its trace events, read wherever tracefs is mounted; if it is
// not, through a mount of our own that no other process sees and that ends with this object.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file_descriptor.h"

namespace clew::kernel {

class Tracefs {
 public:
  // Refused when it can neither be found nor mounted.
  static Expected<Tracefs> open();

  // A whole file; `path` is relative ("available_events"). NotFound, Io, or Limit beyond 64 MiB.
  [[nodiscard]] Expected<std::string> read(const std::string& path) const;
  [[nodiscard]] bool exists(const std::string& path) const;

 private:
  FileDescriptor root_;
};

}  // namespace clew::kernel
